from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lousho_cli.errors import ConfigurationError, NotFoundError, StorageError
from lousho_cli.stores.ids import encode_id
from lousho_cli.workspace import (
    agent_folder,
    create_workspace,
    find_workspace,
    list_agents,
    require_workspace,
)


def make_agent(workspace: Path, folder: str, text: str = "") -> Path:
    path = workspace / "agents" / folder
    path.mkdir(parents=True)
    (path / "agent.toml").write_text(text)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_nearest_workspace_upwards_is_found(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    assert find_workspace(None, deep) is None
    (tmp_path / ".lousho").mkdir()
    assert find_workspace(None, deep) == tmp_path / ".lousho"
    (tmp_path / "a" / ".lousho").mkdir()
    assert find_workspace(None, deep) == tmp_path / "a" / ".lousho"
    assert find_workspace(None, tmp_path) == tmp_path / ".lousho"


def test_a_file_of_that_name_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / ".lousho").mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".lousho").write_text("")
    assert find_workspace(None, tmp_path / "a") == tmp_path / ".lousho"


def test_a_workspace_is_named_by_itself_or_by_the_folder_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "p" / ".lousho"
    workspace.mkdir(parents=True)
    make_agent(tmp_path / "renamed", "bot")
    (tmp_path / "here" / ".lousho").mkdir(parents=True)
    cwd = tmp_path / "here"
    assert find_workspace(str(tmp_path / "p"), cwd) == workspace
    assert find_workspace(str(workspace), cwd) == workspace
    assert find_workspace("../renamed", cwd) == cwd / ".." / "renamed"
    monkeypatch.setenv("LOUSHO_WORKSPACE", str(tmp_path / "p"))
    assert find_workspace(None, cwd) == workspace
    assert find_workspace(str(cwd), cwd) == cwd / ".lousho"
    monkeypatch.setenv("LOUSHO_WORKSPACE", "")
    assert find_workspace(None, cwd) == cwd / ".lousho"


def test_a_named_workspace_that_is_not_there_is_an_error_and_no_other_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".lousho").mkdir()
    (tmp_path / "empty").mkdir()
    for name in ("nowhere", "empty"):
        with pytest.raises(ConfigurationError, match=f"--workspace names .*{name}"):
            find_workspace(name, tmp_path)
    monkeypatch.setenv("LOUSHO_WORKSPACE", "nowhere")
    with pytest.raises(ConfigurationError, match=r"LOUSHO_WORKSPACE names .*nowhere"):
        find_workspace(None, tmp_path)


def test_a_command_that_needs_a_workspace_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        require_workspace(None, tmp_path)
    assert str(tmp_path) in caught.value.message
    assert "lousho init" in caught.value.hint


def test_a_new_workspace_holds_the_example(tmp_path: Path) -> None:
    workspace, created = create_workspace(tmp_path / "new" / "project")
    assert (workspace, created) == (tmp_path / "new" / "project" / ".lousho", True)
    assert [agent.name for agent in list_agents(workspace)] == ["concierge"]
    assert (workspace / ".gitignore").is_file()
    assert (workspace / "agents" / "concierge" / "tools").is_dir()
    assert not list(workspace.rglob("__pycache__"))
    assert [path.name for path in workspace.parent.iterdir()] == [".lousho"]


def test_a_workspace_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    workspace = tmp_path / ".lousho"
    make_agent(workspace, "mine", 'description = "mine"')
    before = contents(tmp_path)
    assert create_workspace(tmp_path) == (workspace, False)
    assert contents(tmp_path) == before


def test_an_empty_folder_becomes_a_workspace(tmp_path: Path) -> None:
    (tmp_path / ".lousho").mkdir()
    assert create_workspace(tmp_path) == (tmp_path / ".lousho", True)


def test_of_several_at_once_one_makes_it_and_it_is_whole(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = [created for _, created in pool.map(create_workspace, [tmp_path] * 4)]
    assert made.count(True) == 1
    create_workspace(tmp_path / "other")
    assert contents(tmp_path / ".lousho") == contents(tmp_path / "other" / ".lousho")


def test_a_file_in_the_way_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / ".lousho").write_text("mine")
    with pytest.raises(ConfigurationError, match="is not a folder"):
        create_workspace(tmp_path)
    assert contents(tmp_path) == {".lousho": b"mine"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX file modes")
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_a_storage_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageError, match="cannot be made"):
            create_workspace(tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_where_no_folder_can_be_made_is_a_storage_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError) as caught:
        create_workspace(tmp_path / "file")
    assert caught.value.code == "LOUSHO_STORAGE_FAILED"
    assert str(tmp_path / "file") in caught.value.message


def test_a_copy_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StorageError, match="No space left"):
        create_workspace(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_agents_are_listed_without_running_their_code(tmp_path: Path) -> None:
    tools = make_agent(tmp_path, "b", 'description = "B"\nmodel = "demo"') / "tools"
    tools.mkdir()
    (tools / "t.py").write_text("raise SystemExit('ran')")
    make_agent(tmp_path, "+my+bot")
    make_agent(tmp_path, "HandMade")
    (tmp_path / "agents" / "only-state" / "checkpoints").mkdir(parents=True)
    listed = [(agent.name, agent.description, agent.model) for agent in list_agents(tmp_path)]
    assert listed == [("HandMade", "", None), ("MyBot", "", None), ("b", "B", "demo")]
    assert list_agents(tmp_path / "nowhere") == []


@pytest.mark.parametrize("id", ["bot", "MyBot", "a/b", "é" * 200])
def test_an_agent_is_found_under_its_encoded_name(tmp_path: Path, id: str) -> None:
    folder = make_agent(tmp_path, encode_id(id))
    assert agent_folder(tmp_path, id) == folder


def test_an_agent_is_found_under_the_name_a_person_gave_its_folder(tmp_path: Path) -> None:
    folder = make_agent(tmp_path, "MyBot")
    assert agent_folder(tmp_path, "MyBot") == folder
    assert agent_folder(tmp_path, "MyBot") != make_agent(tmp_path, "+my+bot")
    assert agent_folder(tmp_path, "MyBot") == tmp_path / "agents" / "+my+bot"


@pytest.mark.parametrize("id", ["nobody", "../agents/bot", "bot/../bot", "*", "[b]ot", str(Path.cwd())])
def test_f23_an_unknown_agent_lists_those_there_are(tmp_path: Path, id: str) -> None:
    make_agent(tmp_path, "bot")
    make_agent(tmp_path, "broken", "not toml")
    with pytest.raises(NotFoundError) as caught:
        agent_folder(tmp_path, id)
    assert caught.value.code == "LOUSHO_AGENT_NOT_FOUND"
    assert "bot, broken" in caught.value.hint


def test_a_typing_error_in_an_agents_name_gets_a_suggestion(tmp_path: Path) -> None:
    make_agent(tmp_path, "concierge")
    with pytest.raises(NotFoundError) as caught:
        agent_folder(tmp_path, "concierg")
    assert "did you mean 'concierge'?" in caught.value.hint
    with pytest.raises(ConfigurationError) as invalid:
        agent_folder(tmp_path, "..")
    assert invalid.value.code == "LOUSHO_SESSION_ID_INVALID"
