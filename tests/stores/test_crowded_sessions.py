"""Several sessions in one event loop: their saves wait for the disk in threads, and are as good."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from store_bench import TWO_STEPS, Bench

from lousho_cli import AgentExecutor
from lousho_cli.errors import SessionBusyError, StorageError
from lousho_cli.execution.session import OpenSession
from lousho_cli.execution.state import Record
from lousho_cli.stores import writer


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


class SlowDisk:
    """Data syncs that take until they are let go.

    Attributes:
        waiting: a sync waits.
        go: let them go.
        threads: the threads that synced.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting = threading.Event()
        self.go = threading.Event()
        self.threads: list[threading.Thread] = []
        self.error: OSError | None = None
        monkeypatch.setattr(writer, "data_sync", self._sync)

    def _sync(self, fd: int) -> None:
        self.threads.append(threading.current_thread())
        self.waiting.set()
        if threading.current_thread() is not threading.main_thread():
            self.go.wait()
        if self.error is not None:
            raise self.error

    async def is_waiting(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.waiting.wait)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    return SlowDisk(monkeypatch)


async def opened(bench: Bench, *names: str) -> list[OpenSession]:
    """Sessions with a first save each."""
    sessions = [await bench.store.checkpoints.open_session(name) for name in names]
    for session in sessions:
        await session.save(Record("save", "in-progress", 1))
    return sessions


def test_a_session_that_is_alone_syncs_where_it_is(bench: Bench, disk: SlowDisk) -> None:
    async def scene() -> None:
        (session,) = await opened(bench, "a")
        await session.save(Record("save", "in-progress", 2))
        await session.close()

    asyncio.run(scene())
    assert disk.threads == [threading.main_thread()]


def test_no_session_makes_another_wait_for_the_disk(bench: Bench, disk: SlowDisk) -> None:
    async def scene() -> None:
        a, b = await opened(bench, "a", "b")
        saving = asyncio.ensure_future(a.save(Record("save", "in-progress", 2)))
        await disk.is_waiting()
        assert not saving.done()
        assert a.state.step == 1
        disk.go.set()
        await saving
        assert a.state.step == 2
        await a.close()
        await b.save(Record("save", "in-progress", 2))
        await b.close()

    asyncio.run(scene())
    assert threading.main_thread() not in disk.threads[:1]
    assert disk.threads[-1] is threading.main_thread()


def test_saves_of_one_session_are_made_one_after_another(bench: Bench) -> None:
    async def scene() -> None:
        a, b = await opened(bench, "a", "b")
        states = await asyncio.gather(*(a.save(Record("save", "in-progress", n)) for n in range(2, 30)))
        assert [state.seq for state in states] == list(range(2, 30))
        await a.close()
        await b.close()

    asyncio.run(scene())
    assert (bench.state("a").seq, bench.state("a").step) == (29, 29)
    assert bench.seqs("a")[0] == bench.kept_in_file("a")[-1] == 29


def test_a_cancelled_save_is_made_to_its_end(bench: Bench, disk: SlowDisk) -> None:
    async def scene() -> None:
        a, b = await opened(bench, "a", "b")
        saving = asyncio.ensure_future(a.save(Record("save", "in-progress", 2)))
        await disk.is_waiting()
        saving.cancel()
        closing = asyncio.ensure_future(a.close())
        disk.go.set()
        with pytest.raises(asyncio.CancelledError):
            await saving
        assert a.state.step == 2
        await closing
        await b.close()

    asyncio.run(scene())
    assert bench.state("a").step == 2


def test_closing_waits_for_the_save_that_is_being_made(bench: Bench, disk: SlowDisk) -> None:
    async def scene() -> None:
        a, b = await opened(bench, "a", "b")
        saving = asyncio.ensure_future(a.save(Record("save", "in-progress", 2)))
        await disk.is_waiting()
        closing = asyncio.ensure_future(a.close())
        with pytest.raises(SessionBusyError):
            await bench.store.checkpoints.open_session("a")
        disk.go.set()
        await asyncio.gather(saving, closing)
        await (await bench.store.checkpoints.open_session("a")).close()
        await b.close()

    asyncio.run(scene())
    assert bench.journal("a").read_bytes().endswith(b"\n")


def test_a_save_that_fails_in_a_thread_fails_where_it_was_asked_for(bench: Bench, disk: SlowDisk) -> None:
    async def scene() -> None:
        a, b = await opened(bench, "a", "b")
        disk.go.set()
        disk.error = OSError(5, os.strerror(5))
        with pytest.raises(StorageError, match=r"a\.jsonl"):
            await a.save(Record("save", "in-progress", 2))
        assert a.state.step == 1
        disk.error = None
        await a.close()
        a = await bench.store.checkpoints.open_session("a")
        await a.save(Record("save", "in-progress", 3))
        await a.close()
        await b.close()

    asyncio.run(scene())
    assert (bench.state("a").seq, bench.state("a").step) == (2, 3)


def test_many_runs_at_once_leave_whole_sessions_and_no_threads(bench: Bench) -> None:
    async def scene() -> None:
        runs: list[Any] = [
            AgentExecutor.execute(
                agent=bench.agent, input="go", provider=bench.model(TWO_STEPS), session_id=f"s{n}",
                checkpoint_store=bench.store.checkpoints,
            )
            for n in range(24)
        ]  # fmt: skip
        results = await asyncio.gather(*runs)
        assert {result.finish_reason for result in results} == {"stop"}

    asyncio.run(scene())
    for n in range(24):
        assert bench.state(f"s{n}").seq == 6
        assert bench.kept_in_file(f"s{n}")[-1] == 6
    for thread in threading.enumerate():
        if thread.name == "lousho-save":
            thread.join(30)
            assert not thread.is_alive()
