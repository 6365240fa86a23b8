"""Space reserved behind the last save: no reader sees it, and no kill leaves it in the way."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from store_bench import Bench, python

from lousho_cli.errors import SessionBusyError
from lousho_cli.execution.messages import MessageData
from lousho_cli.execution.state import Record
from lousho_cli.stores import system
from lousho_cli.stores.writer import JournalWriter

reserves = pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="reserves nothing on this system")

KILLED = """
import asyncio, os, signal, sys
from lousho_cli import FileStore
from lousho_cli.execution.state import Record
async def main():
    session = await FileStore(sys.argv[1]).checkpoints.open_session("s")
    for n in range(5):
        await session.save(Record("save", "in-progress", n))
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def message(n: int) -> MessageData:
    return {"role": "user", "content": f"{n} " * 400}


def tail(path: Path) -> int:
    """How many zeros a file ends with."""
    data = path.read_bytes()
    return len(data) - len(data.rstrip(b"\0"))


@reserves
def test_readers_of_a_live_journal_see_each_save_and_nothing_behind_it(bench: Bench) -> None:
    async def scene() -> None:
        session = await bench.store.checkpoints.open_session("s")
        for n in range(1, 60):
            await session.save(Record("save", "in-progress", n, add=[message(n)]))
            if n > 1:
                assert tail(bench.journal()) > 0
            checkpoint = await bench.store.checkpoints.load("s")
            assert checkpoint is not None
            assert len(checkpoint.messages) == n
            assert [(each.seq, each.step, each.problem) for each in bench.sessions()] == [(n, n, None)]
            assert bench.seqs()[0] == n
        await session.close()

    asyncio.run(scene())
    assert tail(bench.journal()) == 0


@reserves
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_what_a_kill_leaves_reserved_is_read_past_and_gone_after_the_next_run(bench: Bench) -> None:
    killed = python(KILLED, bench.home)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert tail(bench.journal()) > 0
    assert bench.state().seq == 5
    assert bench.seqs()[0] == 5
    assert [each.seq for each in bench.sessions()] == [5]
    fork = bench.fork(at=5)
    assert tail(bench.journal(fork.session_id)) == 0
    bench.run("s", "go", ["done"])
    assert tail(bench.journal()) == 0
    assert bench.loaded().status == "finished"


@reserves
def test_a_runner_is_refused_where_another_wrote_into_a_file_of_the_same_size(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    old = JournalWriter(path, "s", lambda: True, 0)
    old.append(b"first\n")
    old.append(b"second\n")
    size = path.stat().st_size
    new = JournalWriter(path, "s", lambda: True, old.end)
    new.append(b"of the new one\n")
    os.truncate(path, size)
    with pytest.raises(SessionBusyError):
        old.append(b"of the old one\n")
    old.close()
    assert path.read_bytes().rstrip(b"\0") == b"first\nsecond\nof the new one\n"


def test_a_session_that_was_closed_saves_no_more(bench: Bench) -> None:
    async def scene() -> None:
        session = await bench.store.checkpoints.open_session("s")
        await session.save(Record("save", "in-progress", 1))
        await session.close()
        with pytest.raises(SessionBusyError):
            await session.save(Record("save", "in-progress", 2))

    asyncio.run(scene())
    assert bench.state().step == 1


def test_a_system_that_reserves_nothing_is_as_good(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(fd: int, start: int, length: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(system, "here", replace(system.here, reserve=refused))
    bench.run()
    assert tail(bench.journal()) == 0
    assert bench.loaded().status == "finished"
    bench.run("s", "again", ["one", "two", "three", "four"])
    assert bench.loaded().status == "finished"
