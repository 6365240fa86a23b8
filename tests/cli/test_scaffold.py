from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from lousho_cli.cli import app
from lousho_cli.cli.errors import exit_code, guarded
from lousho_cli.cli.globals import Globals, command
from lousho_cli.errors import (
    AgentChangedError,
    ConfigurationError,
    NotFoundError,
    PropagatingToolError,
    ProviderError,
    SDKError,
    SessionAwaitingApprovalError,
    SessionBusyError,
    StorageError,
)
from lousho_cli.trust import is_trusted

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lousho_cli", *arguments],
            cwd=tmp_path,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Adds a command `probe [TEXT] [--times N] [--as NAME]` that notes what it gets and raises `raises`."""
    seen: dict[str, Any] = {"raises": None}

    @command
    def run_probe(
        options: Globals,
        text: Annotated[str, typer.Argument()] = "x",
        times: int = 1,
        agent: Annotated[str, typer.Option("--as")] = "own",
    ) -> int:
        """Note what it is given."""
        seen.update(options=options, text=text, times=times, agent=agent)
        if seen["raises"] is not None:
            raise seen["raises"]
        return times - 1

    build = app.build_app

    def with_probe(words: Collection[str]) -> typer.Typer:
        built = build(words)
        built.command("probe")(run_probe)
        return built

    monkeypatch.setattr(app, "build_app", with_probe)
    return seen


@pytest.mark.parametrize(
    "line",
    [
        "-q -v --no-color --json --agent b --workspace w probe t --times 3",
        "probe t --times 3 -q -v --no-color --json --agent b --workspace w",
        "-a x -q --workspace w probe -v t --json --times 3 -a b --no-color",
    ],
)
def test_global_options_work_before_and_after_the_command(probe: dict[str, Any], line: str) -> None:
    assert app.run(line.split()) == 2
    assert probe["options"] == Globals("w", "b", json=True, quiet=True, verbose=True, no_color=True)
    assert (probe["text"], probe["times"], probe["agent"]) == ("t", 3, "own")


def test_without_options_a_command_gets_its_defaults(probe: dict[str, Any]) -> None:
    assert app.run(["probe"]) == 0
    assert probe["options"] == Globals()
    assert (probe["text"], probe["times"]) == ("x", 1)


def test_an_error_is_one_paragraph_on_stderr(
    probe: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    probe["raises"] = NotFoundError("there is no session '\x1b[2J\u202e'", hint="list them: lousho sessions")
    assert app.run(["probe"]) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "there is no session '\\x1b[2J\\u202e'. [LOUSHO_SESSION_NOT_FOUND] list them: lousho sessions.\n"
    )


@pytest.mark.parametrize("line", ["--json probe", "probe --json"])
def test_with_json_an_error_is_an_object_on_stdout(
    probe: dict[str, Any], capsys: pytest.CaptureFixture[str], line: str
) -> None:
    probe["raises"] = SessionBusyError("busy \x1b\x7f\u202e", hint="wait")
    assert app.run(line.split()) == 5
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.isascii()
    assert not set(captured.out) & {"\x1b", "\x7f"}
    assert json.loads(captured.out) == {
        "error": {"code": "LOUSHO_SESSION_BUSY", "message": "busy \x1b\x7f\u202e", "hint": "wait"}
    }


@pytest.mark.parametrize("line", ["-v probe", "probe --verbose --json"])
def test_only_verbose_shows_a_traceback(
    probe: dict[str, Any], capsys: pytest.CaptureFixture[str], line: str
) -> None:
    probe["raises"] = KeyError("odd\x1b")
    assert app.run(["probe"]) == 1
    plain = capsys.readouterr().err
    assert "[LOUSHO_INTERNAL]" in plain
    assert "--verbose" in plain
    assert "Traceback" not in plain
    assert app.run(line.split()) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["probe -a ..", "--agent .. probe", "-a x probe --agent="])
def test_f23_the_agent_named_must_be_a_valid_id(
    probe: dict[str, Any], capsys: pytest.CaptureFixture[str], line: str
) -> None:
    assert app.run(line.split()) == 2
    assert "[LOUSHO_SESSION_ID_INVALID]" in capsys.readouterr().err
    assert "options" not in probe


def test_an_interrupt_and_an_answer_that_never_comes_end_with_130(
    probe: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for raised in (KeyboardInterrupt(), typer.Abort()):
        probe["raises"] = raised
        assert app.run(["probe"]) == 130
        assert capsys.readouterr().err == "interrupted\n"
    probe["raises"] = typer.Exit(3)
    assert app.run(["probe"]) == 3


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("x"), 2),
        (ConfigurationError("x", code="LOUSHO_SESSION_ID_INVALID"), 2),
        (ProviderError("x", code="LOUSHO_PROVIDER_MISSING_API_KEY"), 2),
        (ProviderError("x", code="LOUSHO_PEER_MISSING"), 2),
        (SessionAwaitingApprovalError("s", "a"), 3),
        (NotFoundError("x"), 4),
        (NotFoundError("x", code="LOUSHO_AGENT_NOT_FOUND"), 4),
        (SDKError("x", code="LOUSHO_CHECKPOINT_NOT_FOUND"), 4),
        (SDKError("x", code="LOUSHO_APPROVAL_NOT_FOUND"), 4),
        (SessionBusyError("x"), 5),
        (AgentChangedError("x"), 6),
        (SDKError("x", code="LOUSHO_RESUME_TOOL_MISSING"), 6),
        (StorageError("x"), 7),
        (SDKError("x", code="LOUSHO_SESSION_FILE_CORRUPT"), 7),
        (SDKError("x", code="LOUSHO_CHECKPOINT_VERSION"), 7),
        (ProviderError("x"), 1),
        (PropagatingToolError("x"), 1),
        (SDKError("x", code="LOUSHO_EVALS_OTHER"), 1),
    ],
)
def test_f38_every_error_has_its_exit_code(error: SDKError, code: int) -> None:
    assert exit_code(error) == code


def test_a_closed_output_pipe_is_left_to_the_caller() -> None:
    def write() -> int:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        guarded(write, as_json=True, verbose=True)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("agnets", "Did you mean 'agents'?"),
        ("frobnicate", "No such command 'frobnicate'"),
        ("agents --jsn", "--json"),
        ("agents extra", "unexpected extra argument"),
        ("--quiet", "Missing command"),
        ("agents --agent", "requires an argument"),
    ],
)
def test_wrong_usage_ends_with_2(line: str, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(line.split()) == 2
    captured = capsys.readouterr()
    assert part in captured.err
    assert "[LOUSHO_USAGE_INVALID]" in captured.err
    assert "--help" in captured.err
    assert captured.out == ""
    assert app.run([*line.split(), "--json"] if line != "agents --agent" else ["--json", *line.split()]) == 2
    assert part in json.loads(capsys.readouterr().out)["error"]["message"]


@pytest.mark.parametrize("line", ["", "--help", "-h"])
def test_the_help_names_every_command(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(line.split()) == 0
    shown = capsys.readouterr().out
    for name, summary in app.COMMANDS.items():
        assert f"  {name}  " in shown
        assert app.run([name, "--help"]) == 0
        own = capsys.readouterr().out
        assert "--workspace" in own
        assert " ".join(own.split("\n\n")[1].split()).startswith(summary)


def imported(line: str, *wanted: str, **environ: str) -> list[str]:
    """Which of the modules a process of that command line imports."""
    code = (
        "import json, sys\n"
        "from lousho_cli.cli.app import run\n"
        f"try: run({line.split()!r})\n"
        f"finally: print(json.dumps([name for name in {wanted!r} if name in sys.modules]), file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        check=False,
    )
    found: list[str] = json.loads(ran.stderr.splitlines()[-1])
    return found


COMMAND_MODULES = [f"lousho_cli.cli.{name}" for name in app.COMMANDS]


def test_the_help_and_completion_import_no_command() -> None:
    heavy = ("asyncio", "rich", "pydantic", "lousho_cli.execution", "lousho_cli.config")
    assert imported("--help", *COMMAND_MODULES, *heavy) == []
    completing = {"_LOUSHO_COMPLETE": "complete_bash", "COMP_WORDS": "lousho se", "COMP_CWORD": "1"}
    assert imported("", *COMMAND_MODULES, "asyncio", "lousho_cli.execution", **completing) == []


def test_a_command_imports_no_other() -> None:
    assert imported("sessions", *COMMAND_MODULES) == ["lousho_cli.cli.sessions"]


def test_init_makes_a_workspace_and_trusts_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["init"]) == 0
    made = capsys.readouterr()
    assert str(here / ".lousho") in made.out
    assert "concierge" in made.out
    assert 'next: lousho run chat-42 "Book a table for 2 tonight"' in made.err
    assert is_trusted(here / ".lousho")
    assert app.run(["init", "-q"]) == 0
    again = capsys.readouterr()
    assert again.out.startswith("already there: ")
    assert again.err == ""


def test_init_takes_the_folder_it_is_given(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["init", "new dir"]) == 0
    assert "cd " in capsys.readouterr().err
    assert app.run(["init", "--workspace", "other/.lousho", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "workspace": str(here / "other" / ".lousho"),
        "created": True,
        "agents": ["concierge"],
    }
    assert (here / "new dir" / ".lousho" / "agents").is_dir()


def test_init_trusts_a_workspace_that_came_from_elsewhere(here: Path) -> None:
    (here / ".lousho" / "agents").mkdir(parents=True)
    assert not is_trusted(here / ".lousho")
    assert app.run(["init"]) == 0
    assert is_trusted(here / ".lousho")
    assert list((here / ".lousho" / "agents").iterdir()) == []


def test_agents_are_listed_one_a_line_in_a_pipe(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("b", 'description = "Two\\nlines\\u001b"\nmodel = "demo"'), ("a", "")):
        folder = here / ".lousho" / "agents" / name
        folder.mkdir(parents=True)
        (folder / "agent.toml").write_text(text)
    assert app.run(["agents"]) == 0
    assert capsys.readouterr().out == "a\t-\t\nb\tdemo\tTwo\\nlines\\x1b\n"
    assert app.run(["agents", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agents"] == [
        {"name": "a", "description": "", "model": None},
        {"name": "b", "description": "Two\nlines\x1b", "model": "demo"},
    ]


def test_agents_are_a_table_on_a_terminal(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = here / ".lousho" / "agents" / "bot"
    folder.mkdir(parents=True)
    (folder / "agent.toml").write_text('model = "demo"')
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert app.run(["agents"]) == 0
    coloured = capsys.readouterr().out
    assert "\x1b[" in coloured
    assert "model" in coloured
    assert app.run(["agents", "--no-color"]) == 0
    assert "\x1b[" not in capsys.readouterr().out


def test_a_command_without_a_workspace_makes_none(cli: Cli, tmp_path: Path) -> None:
    ran = cli("agents")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "lousho init" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_told_without_importing_what_is_heavy() -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "lousho_cli", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {line.split("|")[-1].strip() for line in ran.stderr.splitlines()}
    assert ran.stdout.startswith("lousho ")
    assert not imported & {"pydantic", "typer", "rich", "asyncio"}


def test_the_version_is_told_among_other_options_too(cli: Cli) -> None:
    assert cli("-q", "--version").stdout == cli("--version").stdout != ""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX pipe")
@pytest.mark.parametrize("line", [["--help"], ["--version"], ["agents", "--json"]])
def test_f46_a_closed_output_pipe_ends_quietly(line: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "lousho_cli", *line], stdout=writer, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (1, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell's completion")
def test_a_shell_completes_commands_and_options(cli: Cli) -> None:
    def complete(words: str) -> list[str]:
        ran = cli(_LOUSHO_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
        assert ran.returncode == 0
        return ran.stdout.split()

    assert complete("lousho ag") == ["agents"]
    assert complete("lousho agents --works") == ["--workspace"]


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell's completion")
def test_completion_is_installed_for_the_shell_it_is_asked_from(isolated_environment: Path) -> None:
    def ask(option: str) -> str:
        line = f"'{sys.executable}' -m lousho_cli {option}; exit $?"
        return subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True).stdout

    assert "_LOUSHO_COMPLETE=complete_bash" in ask("--show-completion")
    assert "bash completion installed" in ask("--install-completion")
    assert "lousho" in (isolated_environment / ".bashrc").read_text()
