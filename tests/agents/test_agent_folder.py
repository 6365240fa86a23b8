from __future__ import annotations

import asyncio
import sys
import textwrap
from pathlib import Path

import pytest

from lousho_cli.agents.folder import load_agent
from lousho_cli.errors import ConfigurationError, NotFoundError
from lousho_cli.execution.tools import ToolRegistry

# What `@tool` makes, without what it reads from signatures.
PRELUDE = """\
from lousho_cli.execution.tools import Tool
def tool(function):
    return Tool(function.__name__, function.__doc__ or "", {"type": "object"}, function, dict)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "agents" / "bot"
    (path / "tools").mkdir(parents=True)
    (path / "agent.toml").write_text("")
    return path


def write_tools(folder: Path, name: str, text: str) -> Path:
    file = folder / "tools" / name
    file.write_text(PRELUDE + textwrap.dedent(text))
    return file


def tools_of(folder: Path) -> ToolRegistry:
    tools = load_agent(folder).agent.tools
    assert isinstance(tools, ToolRegistry)
    return tools


def tool_names(folder: Path) -> list[str]:
    return tools_of(folder).names()


def refused(folder: Path) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load_agent(folder)
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    return caught.value


def test_an_agent_is_what_its_files_say(folder: Path) -> None:
    (folder / "agent.toml").write_text(
        'description = "d"\nmodel = "m"\nmax_steps = 3\ntool_concurrency = 2\non_agent_drift = "error"\n'
    )
    (folder / "instructions.md").write_bytes("\ufeffBe brief.\r\nSay é.\r\n".encode())
    write_tools(folder, "a.py", "@tool\ndef look(): 'l'")
    loaded = load_agent(folder)
    assert (loaded.description, loaded.model, loaded.max_steps) == ("d", "m", 3)
    assert (loaded.tool_concurrency, loaded.on_agent_drift, loaded.folder) == (2, "error", folder)
    assert (loaded.agent.name, loaded.agent.model) == ("bot", "m")
    assert loaded.agent.instructions == "Be brief.\nSay é."
    assert tool_names(folder) == ["look"]


def test_an_empty_agent_leaves_everything_open(folder: Path) -> None:
    (folder / "instructions.md").write_text(" \n")
    (folder / "tools").rmdir()
    loaded = load_agent(folder, name="MyBot", model="other")
    assert (loaded.agent.name, loaded.agent.instructions, loaded.agent.model) == ("MyBot", None, "other")
    assert (loaded.description, loaded.model) == ("", "other")
    assert (loaded.max_steps, loaded.tool_concurrency, loaded.on_agent_drift) == (None, None, None)


def test_the_model_asked_for_wins(folder: Path) -> None:
    (folder / "agent.toml").write_text('model = "own"')
    assert load_agent(folder).model == "own"
    assert load_agent(folder, model="asked").agent.model == "asked"


def test_a_wrong_key_names_file_line_and_likely_key(folder: Path) -> None:
    (folder / "agent.toml").write_text('description = "d"\nmax_step = 3\n')
    error = refused(folder)
    assert error.message == f"{folder / 'agent.toml'}, line 2: unknown key 'max_step'"
    assert "did you mean 'max_steps'?" in error.hint


def test_instructions_that_are_not_utf_8_are_refused(folder: Path) -> None:
    (folder / "instructions.md").write_bytes(b"caf\xe9")
    assert "instructions.md is not UTF-8" in refused(folder).message


def test_a_folder_without_agent_toml_is_no_agent_and_its_neighbours_are_named(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    for name in ("bott", "other"):
        with pytest.raises(NotFoundError) as caught:
            load_agent(folder.parent / name)
        assert caught.value.code == "LOUSHO_AGENT_NOT_FOUND"
        assert "agents here: bot" in caught.value.hint


def test_tools_come_file_by_file_in_the_order_of_definition(folder: Path) -> None:
    write_tools(folder, "b.py", "@tool\ndef b2(): ''\n@tool\ndef b1(): ''")
    write_tools(folder, "a.py", "@tool\ndef z(): ''")
    write_tools(folder, "my-tools.py", "@tool\ndef m(): ''")
    write_tools(folder, ".hidden.py", "raise ValueError")
    (folder / "tools" / "notes.txt").write_text("no python")
    assert tool_names(folder) == ["z", "b2", "b1", "m"]


def test_files_import_one_another_and_a_tool_is_one_object(folder: Path) -> None:
    write_tools(folder, "a.py", "from .b import shared, again\n@tool\ndef own(): ''")
    write_tools(folder, "b.py", "@tool\ndef shared(): ''\nagain = shared")
    assert tool_names(folder) == ["shared", "own"]


def test_two_tools_of_one_name_name_both_files(folder: Path) -> None:
    first = write_tools(folder, "a.py", "@tool\ndef look(): ''")
    second = write_tools(folder, "b.py", "@tool\ndef look(): ''")
    error = refused(folder)
    assert error.message == f"two tools are named 'look': in {first} and in {second}"


def test_neither_the_import_path_nor_other_modules_are_touched(folder: Path) -> None:
    write_tools(folder, "json.py", "@tool\ndef mine(): ''")
    import json

    path, modules = list(sys.path), set(sys.modules)
    assert tool_names(folder) == ["mine"]
    assert sys.path == path
    assert sys.modules["json"] is json
    assert all(name.startswith("_lousho_tools_") for name in set(sys.modules) - modules)


def test_nothing_is_written_beside_the_tools(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    write_tools(folder, "a.py", "from .b import x")
    write_tools(folder, "b.py", "x = 1")
    load_agent(folder)
    assert sorted(path.name for path in (folder / "tools").iterdir()) == ["a.py", "b.py"]


def test_a_changed_file_is_loaded_as_it_is_now(folder: Path) -> None:
    write_tools(folder, "a.py", "from .b import one")
    write_tools(folder, "b.py", "@tool\ndef one(): ''")
    assert tool_names(folder) == ["one"]
    write_tools(folder, "a.py", "from .c import two")
    write_tools(folder, "b.py", "@tool\ndef six(): ''")
    write_tools(folder, "c.py", "@tool\ndef two(): ''")
    assert tool_names(folder) == ["two", "six"]


def test_two_agents_with_files_of_one_name_stay_apart(folder: Path) -> None:
    other = folder.parent / "other"
    (other / "tools").mkdir(parents=True)
    (other / "agent.toml").write_text("")
    write_tools(folder, "a.py", "@tool\ndef mine(): return WHO\nWHO = 'bot'")
    write_tools(other, "a.py", "@tool\ndef mine(): return WHO\nWHO = 'other'")
    tools = [tools_of(each).get("mine") for each in (folder, other)]
    assert [tool() for tool in tools if tool] == ["bot", "other"]


def test_types_named_in_a_file_can_be_looked_up_in_its_module(folder: Path) -> None:
    text = "from __future__ import annotations\nimport typing\nclass A:\n    a: A\ntyping.get_type_hints(A)"
    (folder / "tools" / "a.py").write_text(text)
    assert tool_names(folder) == []


@pytest.mark.parametrize(
    ("text", "line", "parts"),
    [
        ("x = 1\ny = nope", 2, ["NameError: name 'nope' is not defined", "`y = nope`"]),
        ("def f(:\n    pass", 1, ["SyntaxError", "`def f(:`"]),
        ("raise SystemExit(3)", 1, ["SystemExit: 3"]),
        ("import asyncio\nraise asyncio.CancelledError", 2, ["CancelledError"]),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", 3, ["E: (its text cannot"]),
        ("import json\njson.loads('{')", 2, ["JSONDecodeError", "`json.loads('{')`"]),
    ],
)
def test_a_file_that_does_not_import_shows_the_line(
    folder: Path, text: str, line: int, parts: list[str]
) -> None:
    file = write_tools(folder, "a.py", text)
    error = refused(folder)
    assert error.message.startswith(f"{file}, line {PRELUDE.count(chr(10)) + line} does not import: ")
    for part in parts:
        assert part in error.message


def test_a_folder_may_be_named_from_the_current_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    write_tools(folder, "a.py", "from .b import one")
    write_tools(folder, "b.py", "@tool\ndef one(): ''")
    assert tool_names(Path("bot")) == ["one"]
    write_tools(folder, "b.py", "one")
    assert "b.py, line 4 does not import" in refused(Path("bot")).message


def test_the_line_shown_is_in_the_file_at_fault(folder: Path) -> None:
    write_tools(folder, "a.py", "from .b import x")
    broken = write_tools(folder, "b.py", "x = 1 / 0")
    assert refused(folder).message.startswith(f"{broken}, line 4 does not import: ZeroDivisionError")
    write_tools(folder, "b.py", "x = (")
    assert refused(folder).message.startswith(f"{broken}, line 4 does not import: SyntaxError")


def test_a_missing_package_or_a_sibling_without_a_dot_gets_advice(folder: Path) -> None:
    write_tools(folder, "a.py", "import surely_not_installed.part")
    assert "install surely_not_installed" in refused(folder).hint
    write_tools(folder, "a.py", "from helpers import x")
    write_tools(folder, "helpers.py", "x = 1")
    assert "from .helpers import" in refused(folder).hint


def test_a_failed_import_leaves_no_module_behind(folder: Path) -> None:
    before = set(sys.modules)
    write_tools(folder, "a.py", "from .b import x\nraise ValueError")
    write_tools(folder, "b.py", "x = 1")
    refused(folder)
    assert set(sys.modules) == before


def test_a_user_interrupt_is_no_fault_of_the_file(folder: Path) -> None:
    write_tools(folder, "a.py", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load_agent(folder)


def test_a_second_dot_in_a_files_name_is_refused(folder: Path) -> None:
    file = write_tools(folder, "a.b.py", "")
    assert str(file) in refused(folder).message


def test_what_a_file_prints_on_import_is_no_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tools(folder, "a.py", "print('hello')")
    load_agent(folder)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


def test_an_agent_can_be_loaded_inside_a_running_loop(folder: Path) -> None:
    write_tools(folder, "a.py", "@tool\nasync def later(): return 1")

    async def load() -> list[str]:
        return tool_names(folder)

    assert asyncio.run(load()) == ["later"]


def test_subagents_are_folders_and_may_have_a_model_of_their_own(folder: Path) -> None:
    own = folder / "subagents" / "scribe"
    shared = folder / "subagents" / "scout"
    for each in (own, shared):
        each.mkdir(parents=True)
    (own / "agent.toml").write_text('model = "demo"\ndescription = "writes"')
    (shared / "agent.toml").write_text("")
    scout, scribe = load_agent(folder).agent.subagents
    assert (scout.name, scout.provider) == ("scout", None)
    assert (scribe.name, scribe.description) == ("scribe", "writes")
    assert scribe.provider is not None


def test_a_link_among_the_subagents_is_not_followed(folder: Path) -> None:
    (folder / "subagents").mkdir()
    (folder / "subagents" / "self").symlink_to(folder)
    assert load_agent(folder).agent.subagents == ()
