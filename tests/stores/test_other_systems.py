"""The file store on macOS and on Windows, as far as their layers over fakes can tell."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lousho_cli import ApprovalStore, CheckpointStore, FileStore, StorageError
from lousho_cli.execution.state import Record
from lousho_cli.stores import files, system
from lousho_cli.stores.folder import agent_folder
from lousho_cli.stores.reader import session_summary
from lousho_cli.stores.saves_reader import read_history, read_state
from lousho_cli.stores.system import extended_length
from lousho_cli.testing import approval_store_contract, checkpoint_store_contract

if sys.platform == "win32":
    pytest.skip("the fakes stand on what Windows lacks", allow_module_level=True)

from other_systems import Mac, OtherSystem, Windows

Checkpoints = Callable[[], CheckpointStore]


class _Checkpoints(checkpoint_store_contract):
    @pytest.fixture
    def store(self, reopen: Checkpoints) -> CheckpointStore:
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Checkpoints:
        return lambda: FileStore(tmp_path / ".lousho").checkpoints

    @pytest.fixture
    def with_limit(self, tmp_path: Path) -> Callable[[int], CheckpointStore]:
        return lambda limit: FileStore(tmp_path / ".limited", history_limit=limit).checkpoints


class _Approvals(approval_store_contract):
    @pytest.fixture
    def store(self, reopen: Callable[[], ApprovalStore]) -> ApprovalStore:
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], ApprovalStore]:
        return lambda: FileStore(tmp_path / ".lousho").approvals


class TestMacCheckpoints(_Checkpoints):
    @pytest.fixture(autouse=True)
    def _system(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Mac(monkeypatch)


class TestMacApprovals(_Approvals):
    @pytest.fixture(autouse=True)
    def _system(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Mac(monkeypatch)


class TestWindowsCheckpoints(_Checkpoints):
    @pytest.fixture(autouse=True)
    def _system(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Windows(monkeypatch)


class TestWindowsApprovals(_Approvals):
    @pytest.fixture(autouse=True)
    def _system(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Windows(monkeypatch)


def say(root: Path, *texts: str) -> None:
    async def run() -> None:
        session = await FileStore(root).checkpoints.open_session("s")
        for text in texts:
            await session.save(Record("input", "in-progress", 0, add=[{"role": "user", "content": text}]))
        await session.close()

    asyncio.run(run())


def texts(root: Path) -> list[Any]:
    found = asyncio.run(FileStore(root).checkpoints.load("s"))
    return [] if found is None else [message.content for message in found.messages]


def everything(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file() and path.parent.name != "locks")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


# macOS


def test_each_save_leaves_the_drives_cache_on_macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mac = Mac(monkeypatch)
    say(tmp_path, "one")
    before = mac.synced
    say(tmp_path, "two", "three", "four")
    assert mac.synced - before >= 3
    assert texts(tmp_path) == ["one", "two", "three", "four"]


def test_a_file_system_without_a_full_sync_gets_a_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mac = Mac(monkeypatch)
    mac.fails = errno.ENOTSUP
    plain: list[int] = []
    mac.os.fsync = plain.append
    say(tmp_path, "one", "two")
    assert len(plain) >= 2
    assert texts(tmp_path) == ["one", "two"]


def test_a_full_sync_that_fails_is_a_failed_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mac = Mac(monkeypatch)
    say(tmp_path, "one")

    mac.fails = errno.EIO
    with pytest.raises(StorageError, match="could not be"):
        say(tmp_path, "two")
    assert texts(tmp_path) == ["one"]


# Windows


class Refusing:
    """A call that others are in the way of, so many times."""

    def __init__(self, times: float, real: Callable[..., Any], about: str) -> None:
        self.times = times
        self.tries = 0
        self._real = real
        self._about = about

    def __call__(self, *arguments: Any) -> Any:
        if self._about in str(arguments[-1]):
            self.tries += 1
            if self.tries <= self.times:
                raise PermissionError(errno.EACCES, "Access is denied")
        return self._real(*arguments)


@pytest.mark.parametrize("name", ["replace", "unlink", "rename"])
def test_f45_what_is_refused_twice_is_tried_again_on_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    windows = Windows(monkeypatch)
    target = tmp_path / "target"
    if name != "rename":
        target.write_bytes(b"old")
    refusing = Refusing(2, getattr(windows.os, name), "target")
    setattr(windows.os, name, refusing)
    if name == "replace":
        files.replace_file(target, b"new", durable=True)
    elif name == "unlink":
        assert files.remove_file(target)
    else:
        assert files.create_once(target, b"new")
    assert refusing.tries == 3
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([] if name == "unlink" else [b"new"])


def test_f45_a_replacement_that_always_fails_leaves_the_old_state_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = Windows(monkeypatch)
    say(tmp_path, "one")
    before = everything(tmp_path)
    history = tmp_path / "agents" / "default" / "checkpoint-history"
    refusing = Refusing(float("inf"), os.replace, str(history))
    windows.os.replace = refusing
    with pytest.raises(StorageError) as caught:
        say(tmp_path, "two")
    assert "s.json could not be written: Access is denied: another program has it open" in str(caught.value)
    after = everything(tmp_path)
    assert after.keys() == before.keys()
    assert {name: data for name, data in after.items() if name.endswith(".json")} == {
        name: data for name, data in before.items() if name.endswith(".json")
    }
    # What was appended counts: the history file is only behind.
    assert texts(tmp_path) == ["one", "two"]


def test_nobody_waits_where_only_permissions_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = Refusing(float("inf"), os.replace, "target")
    OtherSystem(monkeypatch, system.linux(), ()).os.replace = refusing
    with pytest.raises(StorageError, match=r"could not be written: Access is denied$"):
        files.replace_file(tmp_path / "target", b"new", durable=True)
    assert refusing.tries == 1
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed_where_no_flag_forbids_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(tmp_path, "one")
    journal = agent_folder(tmp_path, "default").journal("s")
    journal.rename(tmp_path / "elsewhere")
    journal.symlink_to(tmp_path / "elsewhere")
    Windows(monkeypatch)
    with pytest.raises(StorageError, match="could not be read"):
        texts(tmp_path)


@pytest.mark.parametrize(
    ("folder", "used"),
    [
        (r"C:\work\.lousho\agents\bot", r"C:\work\.lousho\agents\bot"),
        (rf"C:\{'x' * 60}\.lousho\agents\bot", rf"\\?\C:\{'x' * 60}\.lousho\agents\bot"),
        (rf"\\server\share\{'x' * 60}\agents\bot", rf"\\?\UNC\server\share\{'x' * 60}\agents\bot"),
        (rf"\\?\C:\{'x' * 60}\agents\bot", rf"\\?\C:\{'x' * 60}\agents\bot"),
    ],
)
def test_a_path_that_windows_would_find_too_long_is_written_in_the_form_without_a_limit(
    folder: str, used: str
) -> None:
    assert extended_length(folder) == used


# Every system


@pytest.mark.parametrize("name", ["this", "mac", "windows"])
def test_f45_a_reader_may_loop_over_the_state_while_300_saves_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name != "this":
        (Mac if name == "mac" else Windows)(monkeypatch)
    say(tmp_path, "first")
    folder = agent_folder(tmp_path, "default")
    seen: list[tuple[int, int, int]] = []
    wrong: list[BaseException] = []
    begun, ended = threading.Event(), threading.Event()

    def read() -> None:
        try:
            while not ended.is_set():
                newest = session_summary(folder, "s")
                history = read_history(folder, "s", 50)
                assert newest is not None
                seen.append((newest.seq, history[0].seq, read_state(folder, "s", 50).seq))
                begun.set()
        except BaseException as error:
            wrong.append(error)
            begun.set()

    reader = threading.Thread(target=read)
    reader.start()
    begun.wait()
    try:
        say(tmp_path, *(str(number) for number in range(300)))
    finally:
        ended.set()
        reader.join()
    assert wrong == []
    for place in range(3):
        column = [each[place] for each in seen]
        assert column == sorted(column)
    assert len(texts(tmp_path)) == 301
