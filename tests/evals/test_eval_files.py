"""Eval files: what they may hold, and what is told of one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from lousho_cli import ConfigurationError
from lousho_cli.evals.datasets import UnknownColumnError, fill
from lousho_cli.evals.files import read_eval, read_evals
from lousho_cli.evals.places import line_of
from lousho_cli.evals.turns import script_of

CASE = '[[cases]]\nlabel = "one"\ninput = "hi"\n'


def read(folder: Path, text: str) -> list[tuple[str, str]]:
    """The cases of an eval with that text: label and first turn."""
    file = folder / "some.toml"
    file.write_text(text)
    return [(case.label, case.input[0].text) for case in read_eval(file).eval.cases]


def test_a_minimal_eval(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(CASE)
    found = read_eval(tmp_path / "small.toml")
    assert (found.eval.name, found.eval.tags) == ("small", ())
    assert found.eval.cases[0].tools is None
    assert found.cassette("one") == tmp_path / "__cassettes__" / "small" / "one.json"


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("naem = 'x'\n" + CASE, 1, "unknown key naem", "did you mean 'name'?"),
        (CASE + "lable = 'x'\n", 4, "unknown key lable", "did you mean 'label'?"),
        (CASE + "datset = 'x'\n", 4, "unknown key datset", "did you mean 'dataset'?"),
        (CASE + "[cases.expect]\ncaled = []\n", 5, "unknown key caled", "did you mean 'called'?"),
        (
            CASE + "[cases.expect]\ncalled = [\n  { tool = 'x', arg = {} },\n]\n",
            5,
            "unknown key arg",
            "did you mean 'args'?",
        ),
        (CASE + "[cases.expect.reply]\nincldes = 'x'\n", 5, "unknown key incldes", "'includes'"),
        (CASE + "[cases.expect]\nmax_steps = -1\n", 5, "expect.max_steps cannot be -1", "greater than"),
        (CASE + "[cases.expect]\nmax_steps = true\n", 5, "max_steps cannot be True", "a number"),
        (CASE + "[cases.expect.reply]\nmatches = '('\n", 5, "cannot be '('", "regular expression"),
        (CASE + "[cases.expect.soft]\nthreshold = 2\n", 5, "threshold cannot be 2", "less than"),
        (CASE + "[cases.decisions]\npay = 'yes'\n", 5, "decisions.pay cannot be 'yes'", '"approve"'),
        (CASE + "tools = 'fake'\n", 4, "tools cannot be 'fake'", "'live', 'recorded' or 'stub'"),
        (CASE + "stubs = [{ tool = 'x' }]\n", 1, "stubs without tools", 'tools = "stub"'),
        (CASE + CASE.replace("one", "One!"), 5, "the label 'One!' is taken by 'one'", "rename"),
        ("[[cases]]\nlabel = 'x'\n", 1, "input is missing", ""),
        ("[[cases]]\nlabel = 'x'\ninput = []\n", 3, "input cannot be []", "at least 1"),
        ("[[cases]]\nlabel = 'x'\ninput = ['']\n", 3, "input.0 cannot be", "a text, or files"),
        (CASE + "dataset = 'none.csv'\n", 4, "there is no file none.csv", "beside its eval"),
        ("cases = 3\n", 1, "cases cannot be 3", "a valid list"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, text: str, line: int, message: str, hint: str
) -> None:
    with pytest.raises(ConfigurationError, match=r"some\.toml") as told:
        read(tmp_path, text)
    assert told.value.code == "LOUSHO_EVALS_INVALID"
    assert f"some.toml, line {line}: " in told.value.message
    assert message in told.value.message
    assert hint in told.value.hint


@pytest.mark.parametrize("content", [b"a = ", b"\xff", b""])
def test_a_file_that_is_no_eval(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "some.toml").write_bytes(content)
    with pytest.raises(ConfigurationError) as told:
        read_eval(tmp_path / "some.toml")
    assert told.value.code == "LOUSHO_EVALS_INVALID"


def test_evals_that_would_share_recordings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    for name in ("a", "b"):
        (tmp_path / "evals" / f"{name}.toml").write_text(f'name = "Same {"!" * (name == "b")}"\n' + CASE)
    with pytest.raises(ConfigurationError, match="is named like"):
        read_evals(tmp_path)


def test_an_agent_may_have_no_evals(tmp_path: Path) -> None:
    assert read_evals(tmp_path) == []


def test_a_case_is_made_of_each_row(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('order,city\n42,Oslo\n43,"Rome, Italy"\n')
    text = (
        "[[cases]]\ndataset = 'rows.csv'\nlabel = '{}'\ninput = 'Where is {{order}} in {{city}}? {{{{}}}}'\n"
    )
    assert read(tmp_path, text.format("order {order}")) == [
        ("order 42", "Where is 42 in Oslo? {}"),
        ("order 43", "Where is 43 in Rome, Italy? {}"),
    ]
    assert [label for label, _ in read(tmp_path, text.format("where"))] == ["where 1", "where 2"]


def test_rows_of_json_keep_their_types(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"n": 3, "args": {"a": [1, null]}}\n\n{"n": 4, "args": {}}\n')
    (tmp_path / "some.toml").write_text(
        "[[cases]]\ndataset = 'rows.jsonl'\nlabel = 'at most {n}'\ninput = 'hi'\n"
        "[cases.expect]\nmax_steps = '{n}'\ncalled = [{ tool = 't', args = '{args}' }]\n"
    )
    first = read_eval(tmp_path / "some.toml").eval.cases[0].expect
    assert (first.max_steps, first.called[0].args) == (3, {"a": [1, None]})


@pytest.mark.parametrize(
    ("name", "rows", "told"),
    [
        ("rows.csv", "a,b\n1\n", "line 2 has not as many cells"),
        ("rows.csv", "a,b\n", "has no rows"),
        ("rows.jsonl", '{"a": 1}\n{"a"\n', "line 2 is no JSON"),
        ("rows.jsonl", "[1]\n", "line 1 holds no object"),
        ("rows.txt", "a\n", "a .csv or a .jsonl file"),
        ("rows.csv", "ordr\n42\n", "row 1 of rows.csv: there is no column 'order'; did you mean {ordr}?"),
    ],
)
def test_a_dataset_that_is_wrong(tmp_path: Path, name: str, rows: str, told: str) -> None:
    (tmp_path / name).write_text(rows)
    with pytest.raises(ConfigurationError) as error:
        read(tmp_path, f"[[cases]]\nlabel = 'x'\ndataset = '{name}'\ninput = '{{order}}'\n")
    assert told in error.value.message


def test_a_value_that_is_wrong_names_its_row(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("n\n3\nmany\n")
    text = "[[cases]]\nlabel = 'x'\ndataset = 'rows.csv'\ninput = 'hi'\n[cases.expect]\nmax_steps = '{n}'\n"
    with pytest.raises(
        ConfigurationError, match=r"line 6: row 2 of rows\.csv: expect\.max_steps cannot be 'many'"
    ):
        read(tmp_path, text)


def test_templates_are_filled_at_every_depth() -> None:
    row = {"a": 1, "b": "x", "c d": None}
    assert fill({"{b}": ["{a}", "{a}{b}", "{c d}", 3]}, row) == {"x": [1, "1x", None, 3]}
    assert fill('{"json": 1} {{a}} {1}', row) == '{"json": 1} {a} {1}'
    with pytest.raises(UnknownColumnError, match=r"for braces write \{\{ and \}\}"):
        fill("{nothing like it}", row)


def test_files_of_a_turn_become_parts_of_its_message(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A")
    (tmp_path / "b.png").write_bytes(b"PNG")
    (tmp_path / "some.toml").write_text(
        "[[cases]]\nlabel = 'x'\ninput = [{ text = 'look', files = ['a.txt', 'b.png'] }, 'and?']\n"
    )
    case = read_eval(tmp_path / "some.toml").eval.cases[0]
    assert script_of(case, tmp_path).turns == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,QQ=="}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,UE5H"}},
            ],
        },
        "and?",
    ]
    (tmp_path / "a.txt").unlink()
    with pytest.raises(ConfigurationError, match=r"a\.txt cannot be read") as told:
        script_of(case, tmp_path)
    assert told.value.code == "LOUSHO_EVALS_INVALID"


def test_lines_are_found_in_spite_of_texts_that_look_like_keys() -> None:
    content = (
        'a = """\n[[cases]]\nlabel = 1\n"""\n[[cases]]\n"label" = 2\n[[cases]]\nx.y = 3\n[cases.z.q]\nw = 4\n'
    )
    assert line_of(content, ["cases", 0, "label"]) == 6
    assert line_of(content, ["cases", 1, "x", "y"]) == 8
    assert line_of(content, ["cases", 1, "z", "q", "w", 0]) == 10
    assert line_of(content, ["cases", 1, "nothing"]) == 7
    assert line_of(content, ["nothing"]) is None
