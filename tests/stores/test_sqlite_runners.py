"""R3.9, F08: who may run a session of a SQLite store, when processes come, stop and die at any instant."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from sqlite_bench import TWO_STEPS, SqliteBench, close, contents, save
from store_bench import python

from lousho_cli.errors import SessionBusyError
from lousho_cli.execution.state import Record

HOLD = """
import asyncio, sys
from pathlib import Path
import sqlite_bench as b
from lousho_cli.errors import SDKError
session = b.SqliteBench(Path(sys.argv[1])).take()
print("held", flush=True)
for line in sys.stdin:
    try:
        if line.strip() == "save":
            b.save(session, "held")
            print("saved", flush=True)
        else:
            b.close(session)
            print("closed", flush=True)
    except SDKError as error:
        print(error.code, flush=True)
"""

RUN = """
import sys
from pathlib import Path
import sqlite_bench as b
b.SqliteBench(Path(sys.argv[1])).run("s", sys.argv[2], [f"answer to {sys.argv[2]}"] * 99, wait=30)
"""

SAVE_ON = """
import sys
from pathlib import Path
import sqlite_bench as b
session = b.SqliteBench(Path(sys.argv[1]), 5).take()
for n in range(session.state.seq + 1, 10_000):
    b.save(session, f"message {n}")
    print(n, flush=True)
"""

DECIDE = """
import sys
from pathlib import Path
import sqlite_bench as b
stored = b.SqliteBench(Path(sys.argv[1])).decide(sys.argv[2], approved=sys.argv[3] == "yes", by=sys.argv[3])
print(stored.decision.by, stored.decided_at)
"""

Start = Callable[..., subprocess.Popen[str]]

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals that stop a process")


@pytest.fixture
def bench(tmp_path: Path) -> SqliteBench:
    return SqliteBench(tmp_path)


@pytest.fixture
def start(bench: SqliteBench) -> Iterator[Start]:
    """Start processes on the bench's file, which end with the test."""
    processes: list[subprocess.Popen[str]] = []

    def begin(code: str, *arguments: object) -> subprocess.Popen[str]:
        processes.append(python(code, bench.path.parent, *arguments, cwd=Path(__file__).parent))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        with process:
            pass


def tell(process: subprocess.Popen[str], order: str = "") -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    if order:
        process.stdin.write(order + "\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def hold(start: Start) -> subprocess.Popen[str]:
    process = start(HOLD)
    assert tell(process) == "held"
    return process


def rob(bench: SqliteBench) -> None:
    """What a careless clean-up does: the lock files are gone."""
    for path in bench.path.with_name("s.db.locks").iterdir():
        path.unlink()


def test_f08_a_second_process_is_refused_at_once_and_told_who_holds_it(
    bench: SqliteBench, start: Start
) -> None:
    holder = hold(start)
    began = time.monotonic()
    with pytest.raises(SessionBusyError) as caught:
        bench.run()
    assert time.monotonic() - began < 1
    assert caught.value.code == "LOUSHO_SESSION_BUSY"
    assert f"process {holder.pid} on {socket.gethostname()} since 2" in caught.value.message
    assert bench.did == []
    assert bench.run("other").finish_reason == "stop"
    assert bench.load() is None
    assert tell(holder, "close") == "closed"
    assert bench.run().finish_reason == "stop"


def test_readers_and_deletion_while_a_session_is_held(bench: SqliteBench, start: Start) -> None:
    bench.run()
    holder = hold(start)
    assert tell(holder, "save") == "saved"
    assert contents(bench.loaded())[-1] == "held"
    assert bench.fork(from_step=1).session_id == "s.fork-1"
    with pytest.raises(SessionBusyError):
        bench.delete()
    with pytest.raises(SessionBusyError):
        bench.delete(keep_history=True)
    assert tell(holder, "save") == "saved"


def test_threads_of_one_process_exclude_each_other(bench: SqliteBench) -> None:
    session = bench.take()
    caught: list[str] = []

    def second() -> None:
        try:
            bench.run()
        except SessionBusyError as error:
            caught.append(error.message)

    thread = threading.Thread(target=second)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert f"process {os.getpid()} " in caught[0]
    close(session)


def test_a_killed_holder_does_not_block(bench: SqliteBench, start: Start) -> None:
    holder = hold(start)
    assert tell(holder, "save") == "saved"
    holder.kill()
    holder.wait()
    session = bench.take()
    assert session.state.message_count == 1
    close(session)


@posix
def test_a_stopped_holder_is_not_robbed(bench: SqliteBench, start: Start) -> None:
    holder = hold(start)
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(SessionBusyError):
        bench.take(wait=0.3)
    holder.send_signal(signal.SIGCONT)
    assert tell(holder, "save") == "saved"


@posix
@pytest.mark.parametrize("saved_before", [True, False])
@pytest.mark.parametrize("saved_meanwhile", [True, False])
def test_a_holder_that_lost_its_lease_while_it_slept_is_refused(
    bench: SqliteBench, start: Start, saved_before: bool, saved_meanwhile: bool
) -> None:
    holder = hold(start)
    if saved_before:
        assert tell(holder, "save") == "saved"
    holder.send_signal(signal.SIGSTOP)
    rob(bench)
    session = bench.take()
    if saved_meanwhile:
        save(session)
    holder.send_signal(signal.SIGCONT)
    assert tell(holder, "save") == "LOUSHO_SESSION_BUSY"
    assert tell(holder, "close") == "closed"
    save(session)
    close(session)
    assert contents(bench.loaded()) == ["held"] * saved_before + ["taken"] * (1 + saved_meanwhile)


def test_a_runner_of_a_deleted_session_cannot_write_to_its_successor(bench: SqliteBench) -> None:
    old = bench.take()
    save(old, "old")
    rob(bench)
    bench.delete()
    new = bench.take()
    save(new, "new")
    assert (new.fence, new.state.seq) == (old.fence, old.state.seq)
    with pytest.raises(SessionBusyError):
        save(old, "old")
    close(old)
    close(new)
    assert contents(bench.loaded()) == ["new"]


def test_each_runner_has_a_larger_fencing_token_and_its_saves_carry_it(bench: SqliteBench) -> None:
    for text in ("one", "two", "three"):
        bench.run("s", text, ["answer"] * 3)
    fences = [json.loads(data)["fence"] for (data,) in bench.sql("SELECT data FROM records ORDER BY id")]
    assert fences == [1, 1, 2, 2, 3, 3]


def test_f08_the_state_is_read_after_the_lock_is_held(bench: SqliteBench, start: Start) -> None:
    processes = [start(RUN, f"question {n}") for n in range(5)]
    assert [process.wait() for process in processes] == [0] * 5
    messages = contents(bench.loaded())[1:]
    assert messages[1::2] == [f"answer to {question}" for question in messages[::2]]
    assert sorted(messages[::2]) == [f"question {n}" for n in range(5)]
    assert bench.sql("PRAGMA journal_mode") == [("wal",)]


def test_of_many_deciding_processes_one_wins(bench: SqliteBench, start: Start) -> None:
    approval_id = bench.pause()
    processes = [start(DECIDE, approval_id, word) for word in ("yes", "no") * 3]
    answers = {process.communicate()[0] for process in processes}
    assert len(answers) == 1
    (stored,) = bench.approvals("approved" if answers.pop().startswith("yes") else "rejected")
    assert stored.pending.id == approval_id


def test_deciding_records_while_the_session_is_held(bench: SqliteBench) -> None:
    approval_id = bench.pause()
    session = bench.take()
    bench.decide(approval_id, by="ann")
    close(session)
    assert bench.run(text="", turns=[*TWO_STEPS[:1], "paid"]).finish_reason == "stop"
    assert bench.did == ["model", "pay-1", "model"]


@posix
def test_a_process_killed_at_any_instant_loses_no_save_it_reported(bench: SqliteBench, start: Start) -> None:
    reported = 0
    delays = random.Random(7)
    for _ in range(12):
        process = start(SAVE_ON)
        assert process.stdout is not None
        first = int(process.stdout.readline())
        time.sleep(delays.uniform(0, 0.05))
        process.kill()
        numbers = [first, *(int(line) for line in process.stdout if line.endswith("\n"))]
        process.wait()
        said = contents(bench.loaded())
        assert said == [f"message {n}" for n in range(1, len(said) + 1)]
        assert first == reported + 1
        assert numbers[-1] <= len(said) <= numbers[-1] + 1
        assert SqliteBench(bench.path.parent, 5).seqs() == list(range(len(said), 0, -1))[:5]
        assert bench.is_sound()
        reported = len(said)
    assert reported > 12


def test_the_file_is_made_by_one_at_a_time(bench: SqliteBench) -> None:
    locks = bench.path.with_name("s.db.locks")
    locks.mkdir()
    first_uses = [threading.Thread(target=bench.run, args=(f"s{n}",)) for n in range(4)]
    with FileLock(locks / "~schema.lock"):
        for thread in first_uses:
            thread.start()
        time.sleep(0.3)
        assert bench.sql("SELECT name FROM sqlite_master") == []
    for thread in first_uses:
        thread.join()
    assert [bench.loaded(f"s{n}").status for n in range(4)] == ["finished"] * 4
    assert bench.sql("PRAGMA journal_mode") == [("wal",)]


def test_a_session_waits_for_nobody_but_its_own_runner(bench: SqliteBench) -> None:
    async def scene() -> None:
        held = await bench.store.checkpoints.open_session("a")
        other = await bench.store.checkpoints.open_session("b")
        await other.save(Record("save", "in-progress", 1))
        await held.save(Record("save", "in-progress", 1))
        await other.close()
        await held.close()

    asyncio.run(scene())
    assert bench.loaded("a").step_index == bench.loaded("b").step_index == 1
