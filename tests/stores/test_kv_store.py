"""The store over a key-value store: its keys, the order of its writes, what a crash between them leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kv_bench import (
    KINDS,
    TWO_STEPS,
    DictKV,
    ExpiringSwapKV,
    KVBench,
    SwapKV,
    Turns,
    calls,
    dump,
    texts,
)

from lousho_cli import Agent, AgentExecutor, ForkPatch, MemoryStore
from lousho_cli.errors import ConfigurationError, NotFoundError, StorageError
from lousho_cli.execution.session import open_session
from lousho_cli.execution.state import Record
from lousho_cli.stores.kv import KVStore

ENTRIES = [f"{seq:012d}" for seq in (1, 2, 3, 4, 6, 7)]
"""Of a run of TWO_STEPS: input, turn, result, turn, result (absorbed), result, finish."""

each_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def of_session(kv: DictKV, name: str = "s") -> list[tuple[str, str]]:
    """The writes of a session's own keys, its lease aside, by what follows its name."""
    return [
        (what.removesuffix("_if"), key.removeprefix(name))
        for what, key in kv.did
        if key.startswith(name) and not key.endswith("#lease")
    ]


def test_a_session_lies_under_exactly_the_documented_keys() -> None:
    bench = KVBench(prefix="app:")
    bench.run("trip")
    entries = {f"app:trip#history/{id}" for id in ENTRIES}
    assert set(bench.kv.data) == {"app:trip", "app:trip#history", *entries}
    assert bench.kv.json("app:trip#history") == ENTRIES


def test_the_checkpoint_key_holds_the_public_json_of_the_checkpoint() -> None:
    bench = KVBench()
    bench.run()
    stored = bench.kv.json("s")
    assert stored == dump(bench.load())
    assert stored["agentId"] == "bot"
    assert [message["role"] for message in stored["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "tool", "assistant",
    ]  # fmt: skip
    assert [call["id"] for call in stored["toolCalls"]] == ["echo-1", "echo-2", "echo2-2"]
    assert bench.kv.data["s"].isascii()


def test_an_entry_is_a_save_with_the_whole_checkpoint() -> None:
    bench = KVBench()
    bench.run()
    entry = bench.kv.json(f"s#history/{ENTRIES[-1]}")
    assert list(entry) == [
        "seq", "step", "savedAt", "status", "event", "lastStep", "checkpoint",
    ]  # fmt: skip
    assert (entry["seq"], entry["step"], entry["status"], entry["event"]) == (7, 3, "finished", "finish")
    assert entry["checkpoint"] == bench.kv.json("s")
    assert dump(bench.history()[0]) == {key: entry[key] for key in entry if key not in ("event", "lastStep")}


@each_kind
def test_a_save_writes_checkpoint_entry_and_index_and_then_deletes(make: Callable[..., DictKV]) -> None:
    bench = KVBench(make(), history_limit=2)
    bench.run()
    entry = [f"#history/{seq:012d}" for seq in range(8)]
    expected = []
    for seq, dropped in enumerate([None, None, 1, 2, 3, 5, 4], start=1):
        expected += [("put", ""), ("put", entry[seq]), ("put", "#history")]
        if dropped is not None:
            expected.append(("delete", entry[dropped]))
    assert of_session(bench.kv) == expected
    assert bench.seqs() == [7, 6]


@each_kind
@pytest.mark.parametrize("limit", [0, 1, 3, 50])
def test_the_history_is_the_one_a_memory_store_keeps(make: Callable[..., DictKV], limit: int) -> None:
    def shape(store: Any) -> tuple[Any, ...]:
        bench = KVBench()
        bench.store = store
        bench.run()
        bench.run("s", "more", [*TWO_STEPS, calls("pay", step=1), "paid"])
        approval = bench.load().approval_id
        entries = [(e.seq, e.step, e.status, texts(e.checkpoint)) for e in bench.history()]
        kept = asyncio.run(store.checkpoints.kept_saves("s"))
        if limit == 0:
            kept = replace(kept, last_step=0)
        return entries, kept, texts(bench.load()), approval is not None

    assert shape(KVStore(make(), history_limit=limit)) == shape(MemoryStore(limit))


def test_results_of_one_turn_share_an_entry_over_a_crash_between_them() -> None:
    bench = KVBench()
    turns: Turns = [calls("echo", "echo2", step=1), "done"]

    async def interrupted() -> None:
        session = await open_session(bench.store.checkpoints, "s")
        await session.save(Record("input", "in-progress", 0, add=[{"role": "user", "content": "go"}]))
        made = [
            {"id": f"{name}-1", "type": "function", "function": {"name": name, "arguments": '{"n": 1}'}}
            for name in ("echo", "echo2")
        ]
        turn: Any = {"role": "assistant", "content": "", "toolCalls": made}
        await session.save(Record("turn", "in-progress", 1, add=[turn]))
        result: Any = {"role": "tool", "content": "1", "toolCallId": "echo-1", "toolName": "echo"}
        await session.save(Record("result", "in-progress", 1, results={"echo-1": result}))
        await session.close()

    asyncio.run(interrupted())
    assert bench.seqs() == [3, 2, 1]
    bench.run("s", [], turns)
    assert bench.did == ["echo2-1", "model"]
    assert bench.seqs() == [5, 4, 2, 1]
    assert "s#history/000000000003" not in bench.kv.data


def test_without_a_history_only_the_checkpoint_is_kept() -> None:
    bench = KVBench(history_limit=0)
    bench.run()
    assert set(bench.kv.data) == {"s"}
    assert bench.history() == []
    assert bench.run("s", "and?", [*TWO_STEPS, "yes"]).text == "yes"


def test_a_smaller_limit_drops_with_the_next_save_what_it_does_not_keep() -> None:
    bench = KVBench()
    bench.run()
    smaller = KVBench(bench.kv, history_limit=2)
    assert smaller.seqs() == [7, 6]
    smaller.run("s", "and?", [*TWO_STEPS, "yes"])
    assert smaller.seqs() == [9, 8]
    assert len([key for key in bench.kv.data if "#history/" in key]) == 2
    none = KVBench(bench.kv, history_limit=0)
    none.run("s", "and?", [*TWO_STEPS, "yes", "no"])
    assert bench.kv.json("s#history") == []
    assert not [key for key in bench.kv.data if "#history/" in key]


async def look(bench: KVBench) -> None:
    """Hold the session for a moment."""
    await (await bench.store.checkpoints.open_session("s")).close()


def count_writes(make: Callable[..., DictKV]) -> int:
    """How many writes a run makes, giving back the lease aside, which may fail."""
    bench = KVBench(make(), history_limit=3)
    bench.run()
    return len(bench.kv.did) - (bench.kv.did[-1][1] == "s#lease")


@each_kind
def test_a_crash_between_any_two_writes_loses_nothing_that_was_reported(make: Callable[..., DictKV]) -> None:
    for dies_at in range(count_writes(make)):
        before = KVBench(make(), history_limit=3)
        before.kv.dies_at = dies_at
        with pytest.raises(StorageError):
            before.run()
        data = {key: value for key, value in before.kv.data.items() if not key.endswith("#lease")}
        after = KVBench(make(data), history_limit=3)
        reported = max(before.saved, default=0)
        seqs = after.seqs()
        absorbed_by_next = reported + 1 in seqs
        assert reported == 0 or reported in seqs or absorbed_by_next
        assert all(entry.seq == entry.checkpoint.model_dump()["engine"]["seq"] for entry in after.history())
        if "s" in data:
            assert after.load().model_dump()["engine"]["seq"] in (reported, reported + 1)
        if "s" in data and after.load().status == "finished":
            asyncio.run(look(after))
        else:
            assert after.run().text == "done"
        recorded = [texts(entry.checkpoint) for entry in after.history()]
        assert recorded[0] == texts(after.load())
        assert len(texts(after.load())) == 8
        tools = [each for each in before.did + after.did if each != "model"]
        assert set(tools) == {"echo-1", "echo-2", "echo2-2"}
        # Only the call whose result was not reported may have run a second time.
        assert len(tools) <= 4
        assert after.seqs() == sorted(after.seqs(), reverse=True)
        assert len(after.seqs()) == 3


@each_kind
def test_the_entry_that_a_crash_left_out_is_written_when_the_session_is_next_opened(
    make: Callable[..., DictKV],
) -> None:
    bench = KVBench(make())
    bench.run()
    bench.kv.data["s#history"] = json.dumps(ENTRIES[:-1])
    del bench.kv.data[f"s#history/{ENTRIES[-1]}"]
    assert bench.seqs() == [6, 4, 3, 2, 1]
    asyncio.run(look(bench))
    assert bench.seqs() == [7, 6, 4, 3, 2, 1]
    assert bench.history()[0].checkpoint == bench.load()


def test_an_entry_that_is_missing_is_skipped() -> None:
    bench = KVBench()
    bench.run()
    del bench.kv.data[f"s#history/{ENTRIES[-1]}"]
    del bench.kv.data[f"s#history/{ENTRIES[2]}"]
    assert bench.seqs() == [6, 4, 2, 1]
    assert [entry.seq for entry in bench.history(limit=2)] == [6, 4]
    with pytest.raises(NotFoundError):
        bench.fork(at=3)
    assert bench.run("s", "and?", [*TWO_STEPS, "yes"]).text == "yes"
    assert bench.seqs() == [9, 8, 6, 4, 2, 1]


def test_a_fork_starts_from_a_kept_save_and_leaves_its_source_alone() -> None:
    bench = KVBench()
    bench.run()
    before = dict(bench.kv.data)
    fork = bench.fork(from_step=1, patch=ForkPatch(append_input="other way"))
    assert fork.session_id == "s.fork-1"
    assert {key: bench.kv.data[key] for key in before} == before
    assert bench.seqs(fork.session_id) == [4]
    assert dump(bench.load(fork.session_id))["engine"]["parent"] == {"sessionId": "s", "seq": 3, "step": 1}
    bench.delete()
    assert bench.run(fork.session_id, []).text == "done"
    assert bench.fork(fork.session_id, from_step=2).session_id == "s.fork-1.fork-1"
    with pytest.raises(NotFoundError, match=r"steps kept: 1, 2, 3"):
        bench.fork(fork.session_id, from_step=0)


@each_kind
def test_forks_made_at_the_same_time_get_names_of_their_own(make: Callable[..., DictKV]) -> None:
    bench = KVBench(make())
    bench.run()

    async def both() -> list[str]:
        made = [
            AgentExecutor.fork(session_id="s", from_step=1, checkpoint_store=bench.store.checkpoints)
            for _ in range(3)
        ]
        return [fork.session_id for fork in await asyncio.gather(*made)]

    assert sorted(asyncio.run(both())) == ["s.fork-1", "s.fork-2", "s.fork-3"]
    with pytest.raises(ConfigurationError, match="exists already"):
        bench.fork(from_step=1, new_session_id="s.fork-2")


@each_kind
def test_deleting_leaves_no_key(make: Callable[..., DictKV]) -> None:
    bench = KVBench(make())
    bench.run()
    bench.delete()
    assert bench.kv.data == {}
    bench.delete()
    assert bench.kv.data == {}


@each_kind
def test_a_deletion_that_a_crash_cut_short_can_be_repeated(make: Callable[..., DictKV]) -> None:
    bench = KVBench(make())
    bench.run()
    full = dict(bench.kv.data)
    bench.kv.did.clear()
    bench.delete()
    for dies_at in range(len(bench.kv.did)):
        kv = make(dict(full))
        kv.dies_at = dies_at
        with pytest.raises(StorageError):
            KVBench(kv).delete()
        left = make({key: value for key, value in kv.data.items() if not key.endswith("#lease")})
        KVBench(left).history()
        KVBench(left).delete()
        assert left.data == {}


def test_a_history_that_outlives_its_session_goes_on_with_the_next() -> None:
    bench = KVBench()
    bench.run()
    bench.delete(keep_history=True)
    assert "s" not in bench.kv.data
    assert bench.seqs() == [7, 6, 4, 3, 2, 1]
    assert bench.fork(from_step=1).step == 1
    with pytest.raises(ConfigurationError, match="exists already"):
        bench.fork("s.fork-1", at=4, new_session_id="s")
    fence = bench.history()[0].checkpoint.model_dump()["engine"]["fence"]
    assert bench.run("s", "again", ["fresh"]).text == "fresh"
    assert bench.seqs() == [9, 8, 7, 6, 4, 3, 2, 1]
    assert bench.load().model_dump()["engine"]["fence"] > fence


def test_every_put_is_given_the_ttl() -> None:
    bench = KVBench(ttl=60)
    bench.run()
    bench.run("other", "go", [calls("pay", step=1), "paid"])
    assert set(bench.kv.ttls) == {60}
    assert KVBench().kv.ttls == []
    with pytest.raises(ConfigurationError, match="ttl is 0"):
        KVBench(ttl=0)


def test_a_put_if_that_takes_no_ttl_is_followed_by_a_put_that_sets_it() -> None:
    kv = SwapKV()
    bench = KVBench(kv, ttl=60)
    bench.run("s", "go", ["done"])
    session = [(what, key) for what, key in kv.did if key != "s#lease"]
    assert session[:5] == [
        ("put_if", "s"), ("put", "s"), ("put", "s#history/000000000001"),
        ("put_if", "s#history"), ("put", "s#history"),
    ]  # fmt: skip
    assert {what for what, key in kv.did if key == "s#lease"} == {"put_if"}
    assert set(kv.ttls) == {60}


def test_a_put_if_that_takes_a_ttl_gets_it_and_no_lease_expires_while_it_holds() -> None:
    kv = ExpiringSwapKV()
    bench = KVBench(kv, ttl=5)
    bench.run("s", "go", ["done"])
    ttls = dict(zip((key for what, key in kv.did if what != "delete"), kv.ttls, strict=True))
    assert ttls == {"s#lease": 30, "s": 5, "s#history/000000000001": 5, "s#history": 5,
                    "s#history/000000000002": 5}  # fmt: skip


@each_kind
def test_a_checkpoint_that_expired_during_a_run_is_written_again(make: Callable[..., DictKV]) -> None:
    bench = KVBench(make(), ttl=60)

    async def scene() -> None:
        session = await bench.store.checkpoints.open_session("s")
        await session.save(Record("input", "in-progress", 0, add=[{"role": "user", "content": "go"}]))
        for key in [key for key in bench.kv.data if not key.endswith("#lease")]:
            del bench.kv.data[key]
        await session.save(Record("save", "in-progress", 0))
        await session.close()

    asyncio.run(scene())
    assert texts(bench.load()) == ["user: go"]
    assert bench.seqs() == [2]


HARD = ["a", "a#history", "a%23history", "a#history/000000000001", "a#lease", "%", "#", "#approvals", "%23"]


@each_kind
def test_ids_with_signs_of_the_layout_share_no_key(make: Callable[..., DictKV]) -> None:
    bench = KVBench(make())
    for number, id in enumerate(HARD):
        bench.run(id, f"question {number}", [f"answer {number}"])
    for number, id in enumerate(HARD):
        assert texts(bench.load(id))[1:] == [f"user: question {number}", f"assistant: answer {number}"]
        assert bench.seqs(id) == [2, 1]
    assert {"a%23history", "a%2523history", "%23approvals", "%25", "%2523"} <= set(bench.kv.data)
    for id in HARD:
        bench.delete(id)
    assert bench.kv.data == {}


def test_what_cannot_be_an_id_is_refused() -> None:
    with pytest.raises(ConfigurationError) as caught:
        KVBench().run("a\nb")
    assert caught.value.code == "LOUSHO_SESSION_ID_INVALID"


def test_values_may_come_back_as_bytes() -> None:
    class Bytes(DictKV):
        async def get(self, key: str) -> Any:
            value = await super().get(key)
            return None if value is None else value.encode()

    bench = KVBench(Bytes())
    bench.run()
    assert bench.run("s", "and?", [*TWO_STEPS, "yes"]).text == "yes"


def test_empty_values_inside_messages_and_business_state_are_kept() -> None:
    bench = KVBench()
    state = {"a": None, "b": [None]}
    turn = {"text": "hm", "reasoning": [{"signature": "S", "text": "", "more": None}]}
    bench.run("s", "go", [turn], business_state=state)
    assert bench.load().business_state == state
    bench.run("s", "and?", [turn, "yes"])
    answer = bench.load().messages[2].model_dump()
    assert answer["reasoning"] == turn["reasoning"]


@pytest.mark.parametrize("key", ["s", "s#history", "s#history/000000000007"])
@pytest.mark.parametrize("value", ["", "{", "7", '"s"', '{"sessionId": "t"}', '[["a"]]', "[" * 9999])
def test_a_damaged_value_is_an_error_that_names_its_key(key: str, value: str) -> None:
    bench = KVBench()
    bench.run()
    bench.kv.data[key] = value
    with pytest.raises(StorageError) as caught:
        bench.history()
    assert caught.value.code == "LOUSHO_SESSION_FILE_CORRUPT"
    assert repr(key) in caught.value.message
    with pytest.raises(StorageError):
        bench.run("s", "and?")
    assert bench.kv.data[key] == value


@pytest.mark.parametrize(
    "change", [{"messages": [7]}, {"messages": [{"role": "tool", "content": ""}]}, {"engine": {"run": 1}},
               {"status": "odd"}, {"engine": {"parent": {"sessionId": "t"}}}, {"sessionId": "t"},
               {"messages": None}]
)  # fmt: skip
def test_a_checkpoint_of_another_shape_is_an_error_that_names_its_key(change: dict[str, Any]) -> None:
    bench = KVBench()
    bench.run()
    bench.kv.data["s"] = json.dumps({**bench.kv.json("s"), **change})
    with pytest.raises(StorageError, match="key 's' is damaged"):
        bench.load()


def test_a_store_that_fails_stops_the_run_and_the_run_goes_on_once_it_is_mended() -> None:
    class Down(DictKV):
        down = False

        async def put(self, key: str, value: str, *, ttl: float | None = None) -> None:
            if self.down:
                raise ConnectionError("refused")
            await super().put(key, value, ttl=ttl)

    kv = Down()
    bench = KVBench(kv)
    kv.down = True
    with pytest.raises(StorageError, match="key 's' could not be written: ConnectionError") as caught:
        bench.run()
    assert caught.value.code == "LOUSHO_STORAGE_FAILED"
    assert bench.did == []
    kv.down = False
    assert bench.run().text == "done"


@each_kind
def test_a_run_that_is_cancelled_during_a_save_keeps_the_result_it_was_saving(
    make: Callable[..., DictKV],
) -> None:
    bench = KVBench(make())
    kv: Any = bench.kv
    entered, go_on = asyncio.Event(), asyncio.Event()
    put = kv.put

    async def slow(key: str, value: str, *, ttl: float | None = None) -> None:
        if '"event":"result"' in value:
            entered.set()
            await go_on.wait()
        await put(key, value, ttl=ttl)

    async def scene() -> None:
        task = asyncio.create_task(bench.arun("s", "go", [calls("echo", step=1), "done"]))
        await entered.wait()
        task.cancel()
        await asyncio.sleep(0.01)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    kv.put = slow
    asyncio.run(scene())
    assert texts(bench.load())[-1] == 'tool: "result 1"'
    assert bench.history()[0].checkpoint == bench.load()


def test_any_object_with_the_three_methods_will_do() -> None:
    class Tiny:
        def __init__(self) -> None:
            self.d: dict[str, str] = {}

        async def get(self, k: str) -> str | None:
            return self.d.get(k)

        async def put(self, k: str, v: str, *, ttl: float | None = None) -> None:
            self.d[k] = v

        async def delete(self, k: str) -> None:
            self.d.pop(k, None)

    store = KVStore(Tiny())
    bench = KVBench()
    result = AgentExecutor.execute_sync(
        agent=Agent("x"), input="hi", provider=bench.model(["yo"]), session_id="s",
        checkpoint_store=store.checkpoints,
    )  # fmt: skip
    assert result.text == "yo"
