"""R5.2, R5.3, F23: private from the first instant, links not followed, odd files refused."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from store_bench import Bench, calls

from lousho_cli import ApprovalDecision
from lousho_cli.errors import StorageError

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX"),
    pytest.mark.timeout(20),
]


STATE_FOLDERS = {"checkpoints", "checkpoint-history", "approvals", "locks"}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / ".lousho" / "agents" / "default").mkdir(parents=True)
    return Bench(tmp_path)


@pytest.fixture(params=[0, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def use_everything(bench: Bench) -> str:
    """A paused run, a decision, a fork: every kind of file. Returns the approval's id."""
    approval_id = str(bench.run(turns=[calls("echo", "pay", step=1)]).approval_id)
    decision = ApprovalDecision(id=approval_id, approved=True, by="me")
    asyncio.run(bench.store.approvals.decide(approval_id, decision))
    bench.fork(from_step=1)
    return approval_id


def modes(bench: Bench) -> dict[str, str]:
    return {
        str(path.relative_to(bench.folder.path)): oct(stat.S_IMODE(path.lstat().st_mode))
        for path in bench.folder.path.rglob("*")
    }


def test_files_are_0600_and_folders_0700_whatever_the_umask(bench: Bench, umask: int) -> None:
    use_everything(bench)
    found = modes(bench)
    assert {name.split("/")[0] for name in found} == STATE_FOLDERS
    assert {mode for name, mode in found.items() if "/" in name} == {"0o600"}
    assert {mode for name, mode in found.items() if "/" not in name} == {"0o700"}


def test_nothing_is_readable_by_others_even_for_an_instant(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_modes: dict[str, int] = {}
    real_open, real_mkdir = os.open, os.mkdir

    def noted_open(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        new = not os.path.lexists(path)
        fd = real_open(path, flags, mode, **options)
        if new:
            first_modes[str(path)] = stat.S_IMODE(os.fstat(fd).st_mode)
        return fd

    def noted_mkdir(path: Any, mode: int = 0o777, **options: Any) -> None:
        real_mkdir(path, mode, **options)
        first_modes[str(path)] = stat.S_IMODE(os.lstat(path).st_mode)

    monkeypatch.setattr(os, "open", noted_open)
    monkeypatch.setattr(os, "mkdir", noted_mkdir)
    before = os.umask(0)
    try:
        use_everything(bench)
    finally:
        os.umask(before)
    below = {path: mode for path, mode in first_modes.items() if str(bench.folder.path) in path}
    assert len(below) > 10
    assert {path: oct(mode) for path, mode in below.items() if mode & 0o077} == {}


def test_what_is_replaced_stays_private(bench: Bench) -> None:
    use_everything(bench)
    bench.history_file().chmod(0o644)
    before = os.umask(0)
    try:
        bench.run("s", "", [calls("echo", "pay", step=1), "done"])
    finally:
        os.umask(before)
    assert stat.S_IMODE(bench.history_file().stat().st_mode) == 0o600


STRANGE = ["link", "dangling link", "fifo", "folder"]


def put(kind: str, path: Path, outside: Path) -> None:
    """Put something that is no regular file in a file's place; a link leads to a copy of it outside."""
    data = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    if kind == "link":
        outside.write_bytes(data)
    if kind.endswith("link"):
        path.symlink_to(outside)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", STRANGE)
def test_a_journal_that_is_no_regular_file_is_refused(bench: Bench, kind: str, tmp_path: Path) -> None:
    bench.run()
    outside = tmp_path / "outside"
    put(kind, bench.journal(), outside)
    there = outside.exists() and outside.read_bytes()
    for enter in (bench.load, bench.run, bench.history, lambda: bench.fork(from_step=1)):
        with pytest.raises(StorageError, match=r"s\.jsonl"):
            enter()
    assert [session.problem is not None for session in bench.sessions()] == [True]
    assert (outside.exists() and outside.read_bytes()) == there
    assert bench.journal().is_symlink() == kind.endswith("link")


@pytest.mark.parametrize("kind", STRANGE)
def test_a_history_file_that_is_no_regular_file_is_not_followed(
    bench: Bench, kind: str, tmp_path: Path
) -> None:
    bench.run()
    kept = bench.seqs()
    outside = tmp_path / "outside"
    put(kind, bench.history_file(), outside)
    there = outside.exists() and outside.read_bytes()
    assert bench.seqs() == kept
    if kind == "folder":
        with pytest.raises(StorageError, match=r"s\.json"):
            bench.run("s", "more", ["x", "x", "x", "more"])
    else:
        bench.run("s", "more", ["x", "x", "x", "more"])
        assert bench.kept_in_file() == bench.seqs()[::-1]
    assert (outside.exists() and outside.read_bytes()) == there


@pytest.mark.parametrize("kind", ["link", "dangling link", "folder"])
def test_a_lock_that_is_no_regular_file_is_refused(bench: Bench, kind: str, tmp_path: Path) -> None:
    bench.run()
    lock = next((bench.folder.path / "locks").glob("*.lock"))
    put(kind, lock, tmp_path / "outside")
    with pytest.raises(StorageError, match=r"s\.lock"):
        bench.run("s", "more", ["x", "x", "x", "more"])
    assert not (tmp_path / "outside").exists() or not (tmp_path / "outside").read_bytes()


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("decided", [True, False])
def test_an_approval_that_is_no_regular_file_is_refused(
    bench: Bench, kind: str, decided: bool, tmp_path: Path
) -> None:
    approval_id = use_everything(bench)
    bench.did.clear()
    folder = bench.folder
    path = folder.decision(approval_id) if decided else folder.request(approval_id)
    put(kind, path, tmp_path / "outside")
    with pytest.raises(StorageError, match=path.name):
        asyncio.run(bench.store.approvals.get(approval_id))
    if decided:
        with pytest.raises(StorageError):
            bench.run("s", "")
        assert bench.did == []


@pytest.mark.parametrize("name", ["checkpoints", "checkpoint-history", "approvals", "locks"])
def test_f23_a_link_in_place_of_a_state_folder_is_refused_and_nothing_is_written_through_it(
    bench: Bench, name: str, tmp_path: Path
) -> None:
    approval_id = use_everything(bench)
    folder = bench.folder.path / name
    outside = tmp_path / "outside"
    folder.rename(outside)
    folder.symlink_to(outside)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}

    def enter() -> None:
        if name == "approvals":
            asyncio.run(bench.store.approvals.get(approval_id))
        bench.run("s", "", [calls("echo", "pay", step=1), "done"])

    with pytest.raises(StorageError, match=name):
        enter()
    if name == "checkpoints":
        with pytest.raises(StorageError, match=name):
            bench.load()
        with pytest.raises(StorageError, match=name):
            bench.delete()
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before


@pytest.mark.parametrize("name", ["checkpoints", "checkpoint-history", "locks"])
def test_a_file_in_place_of_a_state_folder_is_refused(bench: Bench, name: str) -> None:
    (bench.folder.path / name).write_text("not a folder")
    with pytest.raises(StorageError, match=name):
        bench.run()
    assert "model" not in bench.did[1:]


@pytest.mark.parametrize(("one", "other"), [("X", "+x"), ("a/b", "a%2fb"), ("é", "%c3%a9")])
def test_two_agents_never_share_a_folder(tmp_path: Path, one: str, other: str) -> None:
    Bench(tmp_path, agent=one).run()
    assert Bench(tmp_path, agent=other).load() is None


@pytest.mark.parametrize(
    "id", ["../../escape", "a/b", "/etc/x", "CON", "x:y", "x.", "*", "é" * 200, "@last", " "]
)
def test_f23_no_session_id_reaches_outside_its_folder(bench: Bench, id: str) -> None:
    bench.run(id)
    assert bench.loaded(id).session_id == id
    assert [session.session_id for session in bench.sessions()] == [id]
    for path in bench.home.parent.rglob("*"):
        assert path.is_relative_to(bench.folder.path) or bench.folder.path.is_relative_to(path)
    assert bench.folder.journal(id).parent == bench.folder.path / "checkpoints"


def test_no_file_is_opened_but_as_a_private_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    flags_of: list[int] = []
    real_open = os.open

    def noted(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if "default/" in str(path) and not Path(path).is_dir():
            flags_of.append(flags)
        return real_open(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", noted)
    use_everything(bench)
    assert flags_of
    assert all(flags & os.O_NOFOLLOW for flags in flags_of)
