"""Sessions that another program wrote into the key-value store, as the TypeScript SDK does (R3.15)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from kv_bench import DictKV, KVBench, dump, texts

from lousho_cli import ForkPatch, ToolRegistry, resume_after_approval
from lousho_cli.errors import NotFoundError

Data = dict[str, Any]


def call(name: str, id: str) -> Data:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": '{"n": 1}'}}


OPEN: list[Data] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": "", "toolCalls": [call("echo", "c1"), call("echo2", "c2")]},
]
RESULT: Data = {"role": "tool", "content": '"one"', "name": "echo", "toolCallId": "c1", "toolName": "echo"}
HURRY: Data = {"role": "user", "content": "and hurry"}


def checkpoint(messages: list[Data], **more: Any) -> Data:
    usage = {"promptTokens": 120, "completionTokens": 30, "totalTokens": 150}
    return {
        "agentId": "bot", "sessionId": "s", "stepIndex": 1, "messages": messages, "toolCalls": [],
        "usage": usage, "status": "in-progress", **more,
    }  # fmt: skip


def foreign(ids: list[Any], history: list[Data], current: Data) -> KVBench:
    data = {"s": json.dumps(current)}
    if ids:
        data["s#history"] = json.dumps(ids)
    for id, each in zip(ids, history, strict=True):
        entry = {
            "step": 1, "savedAt": f"2026-10-01T08:00:0{len(data)}.000Z", "status": "in-progress",
            "checkpoint": each,
        }  # fmt: skip
        data[f"s#history/{id}"] = json.dumps(entry)
    return KVBench(DictKV(data))


def two_saves(ids: list[Any] | None = None) -> KVBench:
    saves = [checkpoint(OPEN), checkpoint([*OPEN, RESULT, HURRY], businessState={"ticket": 7})]
    return foreign(ids or ["1759305600000-a", "1759305601250-b"], saves, saves[-1])


@pytest.mark.parametrize("ids", [["x", "y"], [1, 2], ["1759305600000", "1759305601250"]])
def test_a_history_without_numbers_counts_from_one_and_stays_so(ids: list[Any]) -> None:
    bench = two_saves(ids)
    before = bench.history()
    assert [(entry.seq, entry.step, entry.status) for entry in before] == [
        (2, 1, "in-progress"), (1, 1, "in-progress"),
    ]  # fmt: skip
    assert before[0].saved_at == "2026-10-01T08:00:03.000Z"
    assert bench.run("s", [], ["never", "done"]).text == "done"
    assert bench.did == ["echo2-1", "model"]
    after = bench.history()
    assert [entry.seq for entry in after] == [4, 3, 2, 1]
    assert [dump(entry) for entry in after[2:]] == [dump(entry) for entry in before]
    assert bench.kv.json("s#history")[:2] == [str(id) for id in ids]


def test_what_stands_behind_an_open_turn_is_queued_and_sent_after_the_results() -> None:
    bench = two_saves()
    bench.run("s", [], ["never", "done"])
    assert texts(bench.load())[3:] == [
        'tool: "one"', 'tool: "result 11"', "user: and hurry", "assistant: done",
    ]  # fmt: skip
    assert bench.load().business_state == {"ticket": 7}
    assert bench.load().messages[3].get("name") == "echo"


def test_a_limit_drops_foreign_entries_and_the_others_keep_their_numbers() -> None:
    data = two_saves().kv
    bench = KVBench(data, history_limit=3)
    bench.run("s", [], ["never", "done"])
    assert bench.seqs() == [4, 3, 2]
    assert not [key for key in data.data if key.endswith("-a")]
    bench.run("s", "more", ["never", "done", "ok"])
    assert bench.seqs() == [6, 5, 4]


def test_a_foreign_session_forks() -> None:
    bench = two_saves()
    before = dict(bench.kv.data)
    fork = bench.fork(at=1, patch=ForkPatch.of({"toolResult": {"toolCallId": "c1", "result": "other"}}))
    assert {key: bench.kv.data[key] for key in before} == before
    assert bench.run(fork.session_id, [], ["never", "done"]).text == "done"
    assert texts(bench.load(fork.session_id))[3:] == [
        'tool: "other"', 'tool: "result 11"', "assistant: done",
    ]  # fmt: skip
    with pytest.raises(NotFoundError, match="steps kept: 1"):
        bench.fork(from_step=4)


def test_a_session_from_before_history_has_none_until_its_next_save() -> None:
    old = {key: value for key, value in checkpoint([*OPEN, RESULT]).items() if key != "status"}
    bench = foreign([], [], old)
    assert bench.load().status == "in-progress"
    assert bench.load().usage.input_tokens == 120
    assert bench.history() == []
    assert bench.run("s", [], ["never", "done"]).text == "done"
    assert bench.seqs() == [3, 2]
    assert (bench.load().usage.total_tokens, bench.load().usage.model_calls) == (150, 1)


def test_a_checkpoint_that_is_ahead_of_its_foreign_history_is_where_the_run_goes_on() -> None:
    bench = foreign(["x"], [checkpoint(OPEN)], checkpoint([*OPEN, RESULT]))
    assert bench.seqs() == [1]
    bench.run("s", [], ["never", "done"])
    assert bench.did == ["echo2-1", "model"]
    assert bench.seqs() == [3, 2, 1]


def test_a_foreign_program_may_go_on_with_a_session_of_ours() -> None:
    bench = KVBench()
    bench.run("s", "hi", ["hello"])
    ours = bench.kv.json("s")
    del ours["engine"]
    ours["messages"] += [{"role": "user", "content": "more"}, {"role": "assistant", "content": "sure"}]
    bench.kv.data["s"] = json.dumps(ours)
    bench.kv.data["s#history"] = json.dumps([*bench.kv.json("s#history"), "foreign"])
    bench.kv.data["s#history/foreign"] = json.dumps({"step": 1, "status": "finished", "checkpoint": ours})
    assert bench.seqs() == [3, 2, 1]
    assert bench.run("s", "last", ["hello", "sure", "bye"]).text == "bye"
    assert bench.seqs() == [5, 4, 3, 2, 1]


def test_a_foreign_pause_can_be_decided_once_it_was_opened() -> None:
    messages = [*OPEN[:2], {"role": "assistant", "content": "", "toolCalls": [call("pay", "p1")]}]
    current = checkpoint(messages, status="awaiting-approval", approvalId="appr-1")
    bench = foreign([], [], current)
    with pytest.raises(Exception, match="awaiting approval appr-1"):
        bench.run("s", [], ["never"])
    result = asyncio.run(
        resume_after_approval(
            {"id": "appr-1", "approved": False}, bench.store.approvals, ToolRegistry(bench.tools),
            bench.model(["never", "all right"]), {"agent": bench.agent}, bench.store.checkpoints,
        )
    )  # fmt: skip
    assert result.text == "all right"
    assert "pay-1" not in bench.did
