"""R3.9, F08: one runner at a time; a dead one never blocks, one that lost its lease is refused."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from store_bench import TWO_STEPS, Bench, python, sealed

from lousho_cli.errors import SessionBusyError
from lousho_cli.execution.session import OpenSession, open_session
from lousho_cli.execution.state import Record

HOLD = """
import asyncio, os, sys, time
from lousho_cli import FileStore
from lousho_cli.errors import SDKError
from lousho_cli.execution.state import Record
async def main():
    session = await FileStore(sys.argv[1]).checkpoints.open_session(sys.argv[2])
    print("held", flush=True)
    for line in sys.stdin:
        try:
            if line.strip() == "save":
                message = {"role": "user", "content": "held"}
                await session.save(Record("save", "in-progress", 1, add=[message]))
                print("saved", flush=True)
            elif line.strip() == "child":
                if os.fork() == 0:
                    os.close(1)
                    time.sleep(60)
                    os._exit(0)
                print("child", flush=True)
            else:
                await session.close()
                print("closed", flush=True)
        except SDKError as error:
            print(error.code, flush=True)
asyncio.run(main())
"""

RUN = """
import sys
from lousho_cli import Agent, AgentExecutor, FileStore
from lousho_cli.testing import ScriptedModel
store = FileStore(sys.argv[1])
AgentExecutor.execute_sync(
    agent=Agent(), input=sys.argv[2], provider=ScriptedModel([f"answer to {sys.argv[2]}"]), session_id="s",
    checkpoint_store=store.checkpoints, wait=30,
)
"""

Start = Callable[..., subprocess.Popen[str]]

posix = pytest.mark.skipif(sys.platform == "win32", reason="stops a process, or removes a file that is open")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes in groups of their own, which end with the test."""
    processes: list[subprocess.Popen[str]] = []

    def begin(code: str, *arguments: object) -> subprocess.Popen[str]:
        processes.append(python(code, *arguments, start_new_session=True))
        return processes[-1]

    yield begin
    for process in processes:
        with suppress(ProcessLookupError):
            process.kill() if sys.platform == "win32" else os.killpg(process.pid, signal.SIGKILL)
        with process:
            pass


def tell(process: subprocess.Popen[str], order: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    if order:
        process.stdin.write(order + "\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def hold(start: Start, bench: Bench, session: str = "s") -> subprocess.Popen[str]:
    process = start(HOLD, bench.home, session)
    assert tell(process, "") == "held"
    return process


def take(bench: Bench, session: str = "s", wait: float = 0.0) -> OpenSession:
    return asyncio.run(open_session(bench.store.checkpoints, session, wait=wait))


def save(session: OpenSession, text: str = "taken") -> None:
    record = Record("save", "in-progress", 1, add=[{"role": "user", "content": text}])
    asyncio.run(session.save(record))


def close(session: OpenSession) -> None:
    asyncio.run(session.close())


def rob(bench: Bench) -> None:
    """What a broken lock server or a careless clean-up does: the lock files are gone."""
    for path in (bench.folder.path / "locks").iterdir():
        path.unlink()


def test_f08_a_second_process_is_refused_at_once_and_told_who_holds_it(bench: Bench, start: Start) -> None:
    holder = hold(start, bench)
    began = time.monotonic()
    with pytest.raises(SessionBusyError) as caught:
        bench.run()
    assert time.monotonic() - began < 5
    assert caught.value.code == "LOUSHO_SESSION_BUSY"
    assert f"process {holder.pid} on {socket.gethostname()} since 2" in caught.value.message
    assert bench.did == []
    assert tell(holder, "close") == "closed"
    assert bench.run().finish_reason == "stop"


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"pid": 1e999, "host": 1, "since": 1}'])
def test_a_damaged_note_about_the_holder_is_still_a_busy_session(
    bench: Bench, start: Start, note: bytes
) -> None:
    hold(start, bench)
    for path in (bench.folder.path / "locks").glob("*.json"):
        path.write_bytes(note)
    with pytest.raises(SessionBusyError):
        take(bench)


def test_a_killed_holder_does_not_block(bench: Bench, start: Start) -> None:
    holder = hold(start, bench)
    assert tell(holder, "save") == "saved"
    holder.kill()
    holder.wait()
    session = take(bench)
    assert session.state.message_count == 1
    close(session)


@posix
def test_a_killed_holder_does_not_block_while_its_children_live(bench: Bench, start: Start) -> None:
    holder = hold(start, bench)
    assert tell(holder, "child") == "child"
    holder.kill()
    holder.wait()
    close(take(bench, wait=10))


@posix
def test_a_stopped_holder_is_not_robbed(bench: Bench, start: Start) -> None:
    holder = hold(start, bench)
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(SessionBusyError):
        take(bench, wait=0.3)
    holder.send_signal(signal.SIGCONT)
    assert tell(holder, "save") == "saved"


@posix
def test_a_stopped_holder_that_lost_its_lease_is_refused_when_it_wakes(bench: Bench, start: Start) -> None:
    holder = hold(start, bench)
    assert tell(holder, "save") == "saved"
    holder.send_signal(signal.SIGSTOP)
    rob(bench)
    session = take(bench)
    save(session)
    holder.send_signal(signal.SIGCONT)
    assert tell(holder, "save") == "LOUSHO_SESSION_BUSY"
    save(session)
    close(session)
    assert tell(holder, "close") == "closed"
    assert [m.content for m in bench.loaded().messages] == ["held", "taken", "taken"]
    assert all(map(sealed, bench.journal().read_bytes().splitlines()))


@posix
def test_a_runner_that_lost_its_lease_is_refused_before_the_new_one_has_saved(bench: Bench) -> None:
    bench.run()
    before = bench.journal().read_bytes()
    old = take(bench)
    rob(bench)
    new = take(bench)
    with pytest.raises(SessionBusyError):
        save(old, "old")
    assert bench.journal().read_bytes() == before
    save(new, "new")
    close(new)
    assert [m.content for m in bench.loaded().messages][-1] == "new"
    close(old)


@posix
def test_a_runner_whose_journal_was_replaced_is_refused(bench: Bench) -> None:
    bench.run()
    old = take(bench)
    copy = bench.journal().read_bytes()
    bench.journal().unlink()
    bench.journal().write_bytes(copy)
    with pytest.raises(SessionBusyError):
        save(old)
    assert bench.journal().read_bytes() == copy
    close(old)


@posix
def test_a_runner_that_lost_its_lease_leaves_the_history_file_of_the_new_one_alone(bench: Bench) -> None:
    async def scene() -> None:
        old = await bench.store.checkpoints.open_session("s")
        record = Record("save", "in-progress", 1)
        await old.save(record)
        await old.save(Record("save", "in-progress", 1))
        rob(bench)
        new = await bench.store.checkpoints.open_session("s")
        await new.save(Record("finish", "finished", 1))
        await new.close()
        await asyncio.sleep(0.1)
        await old.close()

    asyncio.run(scene())
    assert bench.kept_in_file()[-1] == bench.state().seq == 3


def test_each_runner_has_a_larger_fencing_token_and_its_saves_carry_it(bench: Bench) -> None:
    for text in ("one", "two", "three"):
        bench.run("s", text, [text] * 3)
    lines = bench.journal().read_text().splitlines()[1:]
    fences = [json.loads(line)["fence"] for line in lines]
    assert fences == sorted(fences)
    assert set(fences) == {1, 2, 3}


def test_waiting_ends_when_the_holder_lets_go(bench: Bench, start: Start) -> None:
    holder = hold(start, bench)
    with pytest.raises(SessionBusyError):
        take(bench, wait=0.2)
    letting_go = threading.Timer(0.3, lambda: tell(holder, "close"))
    letting_go.start()
    close(take(bench, wait=20))
    letting_go.join()


def test_threads_of_one_process_exclude_each_other(bench: Bench) -> None:
    session = take(bench)
    caught: list[BaseException] = []

    def second() -> None:
        try:
            bench.run()
        except SessionBusyError as error:
            caught.append(error)

    thread = threading.Thread(target=second)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert f"process {os.getpid()} " in str(caught[0])
    close(session)


def test_other_sessions_do_not_wait_and_readers_neither(bench: Bench, start: Start) -> None:
    bench.run()
    hold(start, bench)
    assert bench.run("other").finish_reason == "stop"
    assert bench.loaded().status == "finished"
    assert bench.seqs()
    assert {session.session_id for session in bench.sessions()} == {"s", "other"}
    assert bench.fork(from_step=1).session_id == "s.fork-1"


def test_f08_the_state_is_read_after_the_lock_is_held(bench: Bench, start: Start) -> None:
    processes = [start(RUN, bench.home, f"question {n}") for n in range(5)]
    assert [process.wait() for process in processes] == [0] * 5
    messages = [str(m.content) for m in bench.loaded().messages]
    assert messages[1::2] == [f"answer to {question}" for question in messages[::2]]
    assert sorted(messages[::2]) == [f"question {n}" for n in range(5)]
    lines = [json.loads(line) for line in bench.journal().read_bytes().splitlines()[1:]]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))


def test_a_run_that_fails_lets_the_session_go(bench: Bench) -> None:
    with pytest.raises(Exception, match="list index out of range"):
        bench.run("s", "go", TWO_STEPS[:1])
    assert bench.run("s", "").finish_reason == "stop"
    assert not list((bench.folder.path / "locks").glob("*.json"))
