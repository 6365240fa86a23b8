"""A sync that failed: the system forgets what it could not write, and the next sync reports success."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lousho_cli import Agent, AgentExecutor, FileStore, tool
from lousho_cli.errors import StorageError
from lousho_cli.execution.session import OpenSession
from lousho_cli.execution.state import Record
from lousho_cli.stores import files, system, writer
from lousho_cli.testing import ScriptedModel

PAGE = 4096


class ForgetfulDisk:
    """Files as this process sees them, and of each journal what is really on the disk.

    A sync writes the pages that were written to since the one before. One that fails writes none of them, and
    takes them for written.

    Attributes:
        failing: which syncs of journals fail, counted from 1.
        cuts_fail: whether a file can be shortened.
        syncs: how many there were.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failing: set[int] = set()
        self.cuts_fail = False
        self.syncs = 0
        self._names: dict[int, Path] = {}
        self._disk: dict[Path, bytearray] = {}
        self._dirty: dict[Path, set[int]] = {}
        double = SimpleNamespace(**vars(os))
        for name in ("open", "close", "write", "pwrite", "ftruncate", "fsync", "fdatasync", "unlink"):
            setattr(double, name, getattr(self, name))
        for module in (files, system, writer):
            monkeypatch.setattr(module, "os", double)

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        fd = os.open(path, flags, mode)
        if str(path).endswith(".jsonl"):
            self._names[fd] = Path(path)
        return fd

    def close(self, fd: int) -> None:
        self._names.pop(fd, None)
        os.close(fd)

    def write(self, fd: int, data: bytes) -> int:
        self._mark(fd, os.lseek(fd, 0, os.SEEK_CUR), len(data))
        return os.write(fd, data)

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        self._mark(fd, offset, len(data))
        return os.pwrite(fd, data, offset)

    def _mark(self, fd: int, offset: int, length: int) -> None:
        if fd in self._names:
            pages = range(offset // PAGE, (offset + length - 1) // PAGE + 1)
            self._dirty.setdefault(self._names[fd], set()).update(pages)

    def ftruncate(self, fd: int, length: int) -> None:
        if self.cuts_fail and fd in self._names:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.ftruncate(fd, length)

    def unlink(self, path: Path) -> None:
        if self.cuts_fail and path.suffix == ".jsonl" and path.exists():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        path.unlink()

    def fsync(self, fd: int) -> None:
        path = self._names.get(fd)
        if path is None:
            return
        self.syncs += 1
        dirty = self._dirty.pop(path, set())
        if self.syncs in self.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        seen, disk = path.read_bytes(), self._disk.setdefault(path, bytearray())
        del disk[len(seen) :]
        for page in sorted(dirty):
            part = seen[page * PAGE : (page + 1) * PAGE]
            disk.extend(bytes(max(0, page * PAGE + len(part) - len(disk))))
            disk[page * PAGE : page * PAGE + len(part)] = part

    fdatasync = fsync

    def cut_power(self) -> None:
        """What was only in memory is gone."""
        for path, content in self._disk.items():
            path.write_bytes(content)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> ForgetfulDisk:
    return ForgetfulDisk(monkeypatch)


class Life:
    """A run with two tools, whose results are as long as wanted."""

    def __init__(self, path: Path, length: int) -> None:
        self.store = FileStore(path / ".lousho", "bot")
        self.ran: list[str] = []

        @tool
        async def works() -> str:
            "works"
            self.ran.append("works")
            return "x" * length

        self._agent = Agent("bot", "be brief", [works])

    def run(self) -> str:
        turns = [{"tool_calls": [{"name": "works", "args": {}}]}] * 2 + ["done"]

        def play(request: Any) -> Any:
            return turns[sum(message.role == "assistant" for message in request.messages)]

        model = ScriptedModel([play], on_exhausted="repeat-last")
        running = AgentExecutor.execute(
            agent=self._agent, input="go", provider=model, session_id="s",
            checkpoint_store=self.store.checkpoints,
        )  # fmt: skip
        return asyncio.run(running).text

    def saved(self) -> int:
        """How many saves a reader finds."""
        found = asyncio.run(self.store.checkpoints.load("s"))
        return 0 if found is None else int((found.model_extra or {})["engine"]["seq"])


@pytest.mark.parametrize("length", [10, 3 * PAGE, 50_000])
@pytest.mark.parametrize("cuts_fail", [False, True])
def test_what_a_run_goes_on_from_is_on_the_disk_whichever_sync_failed(
    tmp_path: Path, disk: ForgetfulDisk, length: int, cuts_fail: bool
) -> None:
    saves = 6
    for failing in range(1, saves + 1):
        life = Life(tmp_path / f"{failing}", length)
        disk.failing, disk.cuts_fail = {disk.syncs + failing}, cuts_fail
        with pytest.raises(StorageError):
            life.run()
        disk.failing, disk.cuts_fail = set(), False
        found = life.saved()

        async def take(life: Life = life) -> None:
            session = await life.store.checkpoints.open_session("s")
            await session.close()

        asyncio.run(take())
        disk.cut_power()
        assert life.saved() == found, f"sync {failing} failed, and a save that was built on is lost"
        if found < saves:
            assert life.run() == "done"
        disk.cut_power()
        assert life.saved() >= saves
        assert len(life.ran) <= 3


def test_after_a_failed_sync_nothing_is_saved_until_the_session_is_opened_again(
    tmp_path: Path, disk: ForgetfulDisk
) -> None:
    life = Life(tmp_path, 10)
    life.run()

    async def save(session: OpenSession) -> None:
        await session.save(Record("input", "in-progress", 0))

    async def fail_and_try_again() -> None:
        session = await life.store.checkpoints.open_session("s")
        disk.failing = {disk.syncs + 1}
        for _ in range(2):
            with pytest.raises(StorageError, match=os.strerror(errno.EIO)):
                await save(session)
        syncs = disk.syncs
        await session.close()
        assert disk.syncs == syncs == max(disk.failing)
        session = await life.store.checkpoints.open_session("s")
        await save(session)
        await session.close()

    before = life.saved()
    asyncio.run(fail_and_try_again())
    disk.cut_power()
    assert life.saved() == before + 1
