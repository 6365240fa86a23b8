"""R3.9 in a key-value store: one runner of a session at a time, by a lease where there is `put_if`."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kv_bench import TWO_STEPS, DictKV, KVBench, SwapKV, texts

from lousho_cli.errors import SessionBusyError, StorageError
from lousho_cli.execution.session import OpenSession, open_session
from lousho_cli.execution.state import Record
from lousho_cli.stores import kv_lease
from lousho_cli.stores.kv import KVStore
from lousho_cli.stores.kv_lease import LEASE_SECONDS, RENEW_SECONDS

Scene = Coroutine[Any, Any, None]


class Clock:
    """The time that leases are judged by."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.passed)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(kv_lease, "_now", clock.now)
    return clock


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases of a moment."""
    monkeypatch.setattr(kv_lease, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(kv_lease, "RENEW_SECONDS", 0.05)


def machines(count: int = 2, make: Callable[[dict[str, str]], DictKV] = SwapKV) -> list[KVStore]:
    """Stores of as many processes over one key-value store."""
    data: dict[str, str] = {}
    return [KVStore(make(data)) for _ in range(count)]


def data_of(store: KVStore) -> dict[str, str]:
    kv: Any = store.checkpoints._access.kv
    data: dict[str, str] = kv.data
    return data


def lease(store: KVStore) -> dict[str, Any]:
    note: dict[str, Any] = json.loads(data_of(store)["s#lease"])
    return note


async def take(store: KVStore, wait: float = 0.0) -> OpenSession:
    return await open_session(store.checkpoints, "s", wait=wait)


async def save(session: OpenSession, text: str) -> None:
    await session.save(Record("save", "in-progress", 1, add=[{"role": "user", "content": text}]))


async def said(store: KVStore) -> list[str]:
    loaded = await store.checkpoints.load("s")
    return [] if loaded is None else [str(message.content) for message in loaded.messages]


def play(scene: Scene) -> None:
    asyncio.run(scene)


def test_the_lease_says_who_holds_the_session_and_until_when() -> None:
    async def scene() -> None:
        (store,) = machines(1)
        session = await take(store)
        note = lease(store)
        assert set(note) == {"fence", "pid", "host", "since", "expires", "token"}
        assert (note["fence"], note["pid"], note["host"]) == (1, os.getpid(), socket.gethostname())
        left = datetime.fromisoformat(note["expires"]) - datetime.now(UTC)
        assert LEASE_SECONDS - 5 < left.total_seconds() <= LEASE_SECONDS
        assert left > timedelta(seconds=RENEW_SECONDS)
        await session.close()
        assert lease(store) == {"fence": 1}

    play(scene())


def test_another_process_is_refused_and_told_who_holds_the_session() -> None:
    async def scene() -> None:
        one, two = machines()
        session = await take(one)
        with pytest.raises(SessionBusyError) as caught:
            await take(two)
        expected = f"process {os.getpid()} on {socket.gethostname()} since {lease(one)['since']}"
        assert expected in caught.value.message
        await session.close()
        other = await take(two)
        assert other.fence == 2
        await other.close()

    play(scene())


def test_a_session_that_is_held_is_not_deleted() -> None:
    async def scene() -> None:
        one, two = machines()
        session = await take(one)
        await save(session, "held")
        before = dict(data_of(two))
        with pytest.raises(SessionBusyError):
            await two.checkpoints.delete("s")
        assert data_of(two) == before
        await session.close()
        await two.checkpoints.delete("s")
        assert data_of(two) == {}

    play(scene())


def test_of_processes_that_take_a_session_at_the_same_time_one_gets_it() -> None:
    async def scene() -> None:
        stores = machines(6)
        taken = await asyncio.gather(*(take(store) for store in stores), return_exceptions=True)
        sessions = [each for each in taken if not isinstance(each, BaseException)]
        assert len(sessions) == 1
        assert all(isinstance(each, SessionBusyError) for each in taken if isinstance(each, BaseException))
        await sessions[0].close()

    play(scene())


@pytest.mark.usefixtures("fast")
def test_a_live_holder_keeps_its_session_for_as_long_as_it_runs() -> None:
    async def scene() -> None:
        one, two = machines()
        session = await take(one)
        with pytest.raises(SessionBusyError):
            await take(two, wait=0.8)
        await save(session, "still mine")
        await session.close()

    play(scene())


@pytest.mark.usefixtures("fast")
def test_waiting_ends_when_the_holder_lets_go() -> None:
    async def scene() -> None:
        one, two = machines()
        session = await take(one)
        waiting = asyncio.create_task(take(two, wait=20))
        await asyncio.sleep(0.1)
        await session.close()
        await (await waiting).close()

    play(scene())


def die(session: OpenSession) -> None:
    """The process is gone: nobody renews, nobody lets go."""
    held: Any = session
    held._session._hold._lease._heartbeat.cancel()


def test_a_dead_holder_is_succeeded_once_its_lease_is_over(clock: Clock) -> None:
    async def scene() -> None:
        one, two = machines()
        session = await take(one)
        await save(session, "said")
        die(session)
        clock.passed = LEASE_SECONDS - 5
        with pytest.raises(SessionBusyError):
            await take(two)
        clock.passed = LEASE_SECONDS + 1
        successor = await take(two)
        assert successor.fence > session.fence
        assert await said(two) == ["said"]
        await successor.close()

    play(scene())


def test_a_runner_that_lost_its_lease_is_refused_before_the_new_one_has_saved(clock: Clock) -> None:
    async def scene() -> None:
        one, two = machines()
        old = await take(one)
        die(old)
        clock.passed = LEASE_SECONDS + 1
        new = await take(two)
        for _ in range(2):
            with pytest.raises(SessionBusyError, match="taken over by another runner"):
                await save(old, "old")
        assert await said(two) == []
        await save(new, "new")
        await old.close()
        await save(new, "newer")
        await new.close()
        assert await said(two) == ["new", "newer"]

    play(scene())


def test_a_runner_that_does_not_know_that_it_lost_its_lease_is_refused_by_the_store(clock: Clock) -> None:
    async def scene() -> None:
        one, two = machines()
        old = await take(one)
        await save(old, "both")
        die(old)
        clock.passed = LEASE_SECONDS + 1
        new = await take(two)
        await save(new, "new")
        before = dict(data_of(two))
        clock.passed = 0.0
        with pytest.raises(SessionBusyError):
            await save(old, "old")
        assert data_of(two) == before
        await save(new, "newer")
        await new.close()
        assert await said(two) == ["both", "new", "newer"]

    play(scene())


def test_a_runner_that_stops_inside_a_save_leaves_the_index_of_the_new_one_alone(clock: Clock) -> None:
    async def scene() -> None:
        one, two = machines()
        old = await take(one)
        await save(old, "first")
        reached, go_on = asyncio.Event(), asyncio.Event()
        kv: Any = one.checkpoints._access.kv
        put = kv.put

        async def stopping(key: str, value: str, *, ttl: float | None = None) -> None:
            reached.set()
            await go_on.wait()
            await put(key, value, ttl=ttl)

        kv.put = stopping
        saving = asyncio.create_task(save(old, "second"))
        await reached.wait()
        die(old)
        clock.passed = LEASE_SECONDS + 1
        new = await take(two)
        await save(new, "third")
        go_on.set()
        with pytest.raises(SessionBusyError):
            await saving
        await new.close()
        history = await two.checkpoints.history("s")
        assert [entry.seq for entry in history] == [3, 2, 1]
        assert await said(two) == ["first", "second", "third"]

    play(scene())


def test_a_loop_that_was_blocked_for_longer_than_its_lease_goes_on_if_nobody_came(clock: Clock) -> None:
    async def scene() -> None:
        one, two = machines()
        session = await take(one)
        clock.passed = LEASE_SECONDS * 3
        await save(session, "late")
        with pytest.raises(SessionBusyError):
            await take(two)
        await session.close()
        assert await said(two) == ["late"]

    play(scene())


@pytest.mark.usefixtures("fast")
def test_a_run_that_loses_its_lease_stops_before_its_next_call() -> None:
    data: dict[str, str] = {}
    bench = KVBench(SwapKV(data))

    def robbed() -> None:
        data["s#lease"] = json.dumps({**json.loads(data["s#lease"]), "token": "another"})

    with pytest.raises(SessionBusyError):
        bench.run("s", "go", [*TWO_STEPS[:1], "never"], on_event=lambda event: robbed_at_tool(event, robbed))
    assert bench.did == ["model", "echo-1"]


def robbed_at_tool(event: Any, rob: Callable[[], None]) -> Any:
    if event.type != "tool.start":
        return None
    rob()
    return asyncio.sleep(0.4)


class Unreliable(SwapKV):
    """Carries out what it is asked, and then answers as `answers` says, one call after the other."""

    def __init__(self, data: dict[str, str] | None = None) -> None:
        super().__init__(data)
        self.answers: list[bool | Exception] = []

    async def put_if(self, key: str, value: str, expected: str | None) -> bool:
        done = await super().put_if(key, value, expected)
        answer = self.answers.pop(0) if self.answers else done
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_write_whose_first_answer_was_lost_is_recognised_as_ones_own() -> None:
    async def scene() -> None:
        kv = Unreliable()
        store = KVStore(kv)
        kv.answers = [False]
        session = await take(store)
        kv.answers = [False, False]
        await save(session, "kept")
        await session.close()
        assert await said(store) == ["kept"]
        assert [entry.seq for entry in await store.checkpoints.history("s")] == [1]

    play(scene())


@pytest.mark.usefixtures("fast")
def test_a_renewal_that_failed_but_was_carried_out_does_not_cost_the_lease() -> None:
    async def scene() -> None:
        kv = Unreliable()
        session = await take(KVStore(kv))
        kv.answers = [ConnectionError("lost"), ConnectionError("lost")]
        await asyncio.sleep(0.5)
        assert kv.answers == []
        await save(session, "mine")
        with pytest.raises(SessionBusyError):
            await take(KVStore(SwapKV(kv.data)))
        await session.close()

    play(scene())


def test_a_lease_that_cannot_be_given_back_expires(clock: Clock) -> None:
    async def scene() -> None:
        kv = SwapKV()
        session = await take(KVStore(kv))
        kv.dies_at = len(kv.did)
        await session.close()
        with pytest.raises(SessionBusyError):
            await take(KVStore(SwapKV(kv.data)))
        clock.passed = LEASE_SECONDS + 1
        await (await take(KVStore(SwapKV(kv.data)))).close()

    play(scene())


@pytest.mark.parametrize("value", ["", "{", "[]", '{"fence": "x"}', '{"fence": 1, "expires": "soon"}'])
def test_a_damaged_lease_is_an_error_that_names_its_key(value: str) -> None:
    (store,) = machines(1)
    data_of(store)["s#lease"] = value
    with pytest.raises(StorageError, match="key 's#lease' is damaged"):
        play(_take_and_close(store))
    assert data_of(store)["s#lease"] == value


def test_a_put_if_that_never_succeeds_is_reported_and_not_tried_for_ever() -> None:
    class Stubborn(SwapKV):
        async def put_if(self, key: str, value: str, expected: str | None) -> bool:
            return False

    with pytest.raises(SessionBusyError):
        play(_take_and_close(KVStore(Stubborn())))


async def _take_and_close(store: KVStore) -> None:
    await (await take(store)).close()


@pytest.mark.parametrize("make", [DictKV, SwapKV])
def test_threads_and_stores_of_one_process_exclude_each_other(make: Callable[[], DictKV]) -> None:
    kv = make()
    caught: list[BaseException] = []

    def second() -> None:
        try:
            KVBench(kv).run()
        except SessionBusyError as error:
            caught.append(error)

    async def scene() -> None:
        session = await take(KVStore(kv))
        thread = threading.Thread(target=second)
        thread.start()
        await asyncio.to_thread(thread.join)
        await session.close()

    play(scene())
    assert f"process {os.getpid()} " in str(caught[0])
    assert KVBench(kv).run().text == "done"


@pytest.mark.parametrize("make", [DictKV, SwapKV])
def test_a_session_may_be_used_by_one_loop_after_the_other(make: Callable[[], DictKV]) -> None:
    store = KVStore(make())
    session = asyncio.run(take(store))
    asyncio.run(save(session, "one"))
    asyncio.run(save(session, "two"))
    asyncio.run(session.close())
    assert asyncio.run(said(store)) == ["one", "two"]
    play(_take_and_close(store))


@pytest.mark.parametrize("make", [DictKV, SwapKV])
def test_threads_with_loops_of_their_own_run_their_sessions_side_by_side(make: Callable[[], DictKV]) -> None:
    kv = make()
    store = KVStore(kv)
    benches = [KVBench(kv) for _ in range(4)]
    threads = []
    for number, bench in enumerate(benches):
        bench.store = store
        threads.append(threading.Thread(target=bench.run, args=(f"s{number}", f"question {number}")))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, bench in enumerate(benches):
        assert texts(bench.load(f"s{number}"))[1] == f"user: question {number}"
        assert bench.load(f"s{number}").status == "finished"


@pytest.mark.parametrize("make", [DictKV, SwapKV])
def test_a_run_that_fails_lets_the_session_go(make: Callable[[], DictKV]) -> None:
    bench = KVBench(make())
    with pytest.raises(Exception, match="list index out of range"):
        bench.run("s", "go", TWO_STEPS[:1])
    assert bench.run("s", []).text == "done"


def test_each_runner_has_a_larger_fencing_token() -> None:
    bench = KVBench(SwapKV())
    fences = []
    for text in ("one", "two", "three"):
        bench.run("s", text, [text] * 3)
        fences.append(bench.load().model_dump()["engine"]["fence"])
    bench.kv.data.pop("s#lease")
    bench.run("s", "four", ["four"] * 4)
    fences.append(bench.load().model_dump()["engine"]["fence"])
    assert fences == [1, 2, 3, 4]
