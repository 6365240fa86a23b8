"""The runner of the documents' blocks fails where a document is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_blocks import DocError
from doc_match import ApprovalIds
from doc_runner import run_document

NEXT_ID = "next_id() { n=$((${n:-0} + 1)); echo ap_real$n; }"


def document(*blocks: str) -> str:
    """A document of blocks, each given as its opening line and its content."""
    return "# Title\n\n" + "\n".join(f"```{block}\n```\n" for block in blocks)


def run(scratch: Path, *blocks: str, seconds: float = 20) -> Path:
    run_document("doc.md", document(*blocks), scratch, seconds=seconds)
    return scratch / "work"


def assert_fails(scratch: Path, says: str, *blocks: str, seconds: float = 20) -> None:
    with pytest.raises(DocError, match=says):
        run(scratch, *blocks, seconds=seconds)


def test_a_console_block_that_shows_what_is_printed_passes(tmp_path: Path) -> None:
    run(tmp_path, "console\n$ echo one; echo two >&2\none\ntwo\n$ true")


def test_a_console_block_that_shows_something_else_fails_and_says_what_was_printed(tmp_path: Path) -> None:
    assert_fails(tmp_path, r"doc\.md:3: \$ echo one\n(.*\n)*-two\n\+one", "console\n$ echo one\ntwo")


@pytest.mark.parametrize("shown", ["", "one", "one\ntwo\nthree", "One\ntwo", "one\n\ntwo"])
def test_missing_and_additional_output_fails(tmp_path: Path, shown: str) -> None:
    assert_fails(tmp_path, "the document", f"console\n$ echo one; echo two\n{shown}")


def test_a_command_may_go_on_in_the_next_line(tmp_path: Path) -> None:
    run(tmp_path, "console\n$ echo one \\\n  two\none two")


@pytest.mark.parametrize("text", ["", "one\n$ echo one"])
def test_a_console_block_without_a_command_first_fails(tmp_path: Path, text: str) -> None:
    assert_fails(tmp_path, "a console block", f"console\n{text}")


def test_a_failing_command_fails_unless_its_exit_code_is_shown(tmp_path: Path) -> None:
    assert_fails(tmp_path, "exit code 3, the document says 0", "console\n$ (exit 3)\n$ true")


def test_a_shown_exit_code_is_checked(tmp_path: Path) -> None:
    run(tmp_path / "right", "console\n$ (exit 3)\n$ echo $?\n3")
    assert_fails(tmp_path / "wrong", r"\+3", "console\n$ (exit 3)\n$ echo $?\n4")


@pytest.mark.parametrize("language", ["sh\n", "console\n$ "])
def test_an_announced_exit_code_is_checked(tmp_path: Path, language: str) -> None:
    first, _, prompt = language.partition("\n")
    run(tmp_path / "right", f"{first} exit=3\n{prompt}(exit 3)")
    assert_fails(tmp_path / "wrong", "exit code 0, the document says 3", f"{first} exit=3\n{prompt}true")


def test_a_sh_block_stops_at_the_first_line_that_fails(tmp_path: Path) -> None:
    assert_fails(tmp_path, "exit code 1", "sh\ntouch before\nfalse\ntouch after")
    assert (tmp_path / "work" / "before").exists()
    assert not (tmp_path / "work" / "after").exists()


def test_a_sh_block_may_handle_a_failure(tmp_path: Path) -> None:
    assert (run(tmp_path, "sh\nfalse || touch handled\nif false; then :; fi") / "handled").exists()


def test_folder_and_variables_carry_over_to_the_next_block(tmp_path: Path) -> None:
    run(tmp_path, "sh\nmkdir deeper\ncd deeper\nname=value", "console\n$ echo $name ${PWD##*/}\nvalue deeper")


def test_a_failed_sh_block_leaves_the_terminal_usable(tmp_path: Path) -> None:
    run(tmp_path, "sh exit=1\nfalse", "console\n$ false; echo still here\nstill here")


def test_a_command_that_ends_the_shell_fails(tmp_path: Path) -> None:
    assert_fails(tmp_path, "ended the shell", "sh\nexit 0")


def test_a_command_that_does_not_end_fails(tmp_path: Path) -> None:
    assert_fails(tmp_path, "did not end within 0.2 s", "sh\nsleep 30", seconds=0.2)


def test_commands_have_no_standard_input(tmp_path: Path) -> None:
    run(tmp_path, "console\n$ cat")


def test_commands_print_to_a_terminal_of_100_columns(tmp_path: Path) -> None:
    run(tmp_path, 'console\n$ test -t 1 && test -t 2 && stty size <&1\n40 100\n$ echo "$COLUMNS"\n100')


def test_the_reader_has_a_name(tmp_path: Path) -> None:
    run(tmp_path, 'console\n$ python -c "import getpass; print(getpass.getuser())"\nana')


def test_more_output_than_a_terminal_buffers_is_read_whole(tmp_path: Path) -> None:
    run(tmp_path, "console\n$ seq 20000 | tee numbers; wc -l < numbers\n1\n...\n20000\n20000")


def test_lousho_is_the_one_of_this_tree(tmp_path: Path) -> None:
    run(tmp_path, 'sh\ntest "$(command -v lousho)" = "$(dirname "$PWD")/terminal/bin/lousho"')


def test_an_approval_id_stands_for_the_real_one_from_then_on(tmp_path: Path) -> None:
    run(
        tmp_path,
        f"sh\n{NEXT_ID}",
        "console\n$ next_id\nap_first\n$ next_id\nap_second\n$ echo ap_second ap_first\nap_second ap_first",
        'sh\ntest "ap_first ap_second" = "$(echo ap_re)al1 $(echo ap_re)al2"',
    )


def test_one_approval_id_cannot_stand_for_two(tmp_path: Path) -> None:
    assert_fails(tmp_path, "ap_real2", f"sh\n{NEXT_ID}", "console\n$ next_id\nap_x\n$ next_id\nap_x")


def test_two_approval_ids_cannot_stand_for_one() -> None:
    assert not ApprovalIds().matches("ap_a\nap_b", "ap_1\nap_1")
    assert not ApprovalIds().matches("ap_a\nap_a", "ap_1\nap_2")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a\n...\nz", "a\nz"),
        ("a\n...\nz", "a\nb\nc\nz"),
        ("...", ""),
        ("from ... to here", "from there to here"),
        ("a  b", "a b"),
        ("saved 2026-11-30T10:00:00Z", "saved 2027-01-02T03:04:05.678Z"),
        ("on 2026-11-30 at 10:00", "on 2027-01-02 at 23:59"),
        ("now", "3m ago"),
        ("2s ago", "14s ago"),
        ("took 0ms", "took 1.5s"),
        ("took 3ms", "took 2m 05s"),
        ("[1] (x) *", "[1] (x) *"),
    ],
)
def test_what_varies_may_vary(shown: str, printed: str) -> None:
    assert ApprovalIds().matches(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a\n...\nz", "a\nb"),
        ("from ... to here", "from\nthere to here"),
        ("step 1", "step 2"),
        ("a b", "ab"),
        ("ap_a", "approval"),
        ("2s ago", "2s"),
        ("2ms", "2m"),
        ("1.5s", "now"),
        ("2026-11-30", "10:00"),
        (".", "x"),
    ],
)
def test_nothing_else_may_vary(shown: str, printed: str) -> None:
    assert not ApprovalIds().matches(shown, printed)


def test_python_blocks_share_names_and_may_await(tmp_path: Path) -> None:
    work = run(
        tmp_path,
        "python\nimport asyncio, pathlib\nlock = asyncio.Event()",
        'python\nlock.set()\nawait lock.wait()\npathlib.Path("done").touch()',
    )
    assert (work / "done").exists()


def test_a_python_block_has_only_the_imports_it_shows(tmp_path: Path) -> None:
    run(tmp_path, "python\ndef f(x: int) -> None: ...\nassert f.__annotations__['x'] is int")


@pytest.mark.parametrize("text", ["1 / 0", "x = (", "await missing()", "import warnings; warnings.warn('')"])
def test_a_python_block_that_raises_fails(tmp_path: Path, text: str) -> None:
    assert_fails(tmp_path, r"doc\.md:3: \w+", f"python\n{text}")


@pytest.mark.parametrize("block", ['json\n{"a": 1}', "toml\na = 1", "text\n├── a tree"])
def test_data_that_parses_passes(tmp_path: Path, block: str) -> None:
    run(tmp_path, block)


@pytest.mark.parametrize("block", ["json\n{a: 1}", "toml\na 1"])
def test_data_that_does_not_parse_fails(tmp_path: Path, block: str) -> None:
    assert_fails(tmp_path, "DecodeError", block)


@pytest.mark.parametrize("opening", ["", "sh quickly", "sh exit=x"])
def test_an_opening_line_that_cannot_be_read_fails(tmp_path: Path, opening: str) -> None:
    assert_fails(tmp_path, "the opening line is", f"{opening}\ntrue")


@pytest.mark.parametrize("language", ["bash", "yaml", "py"])
def test_an_unknown_language_fails(tmp_path: Path, language: str) -> None:
    assert_fails(tmp_path, f"unknown language '{language}'; known: sh, console, python", f"{language}\ntrue")


def test_data_has_no_exit_code(tmp_path: Path) -> None:
    assert_fails(tmp_path, "a json block has no exit code", "json exit=1\n1")


def test_only_a_block_marked_for_ci_is_left_out(tmp_path: Path) -> None:
    markdown = "<!-- ci: install -->\n```sh\ntouch one\n```\n\n<!-- a remark -->\n```sh\ntouch two\n```\n"
    run_document("doc.md", markdown, tmp_path)
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["two"]


def test_a_block_inside_a_list_is_run(tmp_path: Path) -> None:
    markdown = "1. First:\n\n   ```sh\n   touch listed\n   ```\n"
    run_document("doc.md", markdown, tmp_path)
    assert (tmp_path / "work" / "listed").exists()
