"""A session is the fold of its records, and what it does next is read off it."""

from __future__ import annotations

import json
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from lousho_cli.execution.actions import AskModel, AwaitDecision, Finish, RunCalls, next_action
from lousho_cli.execution.checkpoint import checkpoint_of, state_of
from lousho_cli.execution.codec import record_from_json, record_to_json
from lousho_cli.execution.messages import CallData, MessageData
from lousho_cli.execution.pairs import broken_pair
from lousho_cli.execution.preparation import Gate, PreparedCall
from lousho_cli.execution.records import Checkpoint
from lousho_cli.execution.state import CallMark, Grant, Record, RunStart, State, apply


def call(call_id: str) -> CallData:
    return {"id": call_id, "type": "function", "function": {"name": "a", "arguments": "{}"}}


def turn(*ids: str) -> MessageData:
    message: MessageData = {"role": "assistant", "content": "t"}
    return {**message, "toolCalls": [call(one) for one in ids]} if ids else message


def answer(call_id: str) -> MessageData:
    return {"role": "tool", "content": f'"{call_id}"', "toolCallId": call_id, "toolName": "a"}


def said(text: str) -> MessageData:
    return {"role": "user", "content": text}


GRANT = Grant("ap_1", "needs-approval", True, "ann", "2024-01-31T00:00:00Z", "d", {"n": 1}, True, "why")


@st.composite
def lives(draw: st.DrawFn) -> tuple[list[Record], list[str]]:
    """Records a session may make of turns, results in any order, marks and queued input; and all input."""
    records = [
        Record("input", "in-progress", 0, add=[said("in 0")], usage={}, run=RunStart(0, 1, 5), system="s")
    ]
    inputs = ["in 0"]
    open_ids: list[str] = []
    step = 0
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["result", "result", "queue", "start", "pause", "turn"]))
        if kind == "queue":
            inputs.append(f"in {number + 1}")
            records.append(Record("queue", "in-progress", step, queue=[said(inputs[-1])]))
        elif kind == "turn" and not open_ids:
            step += 1
            open_ids = [f"c{step}.{n}" for n in range(draw(st.integers(1, 4)))]
            records.append(
                Record("turn", "in-progress", step, add=[turn(*open_ids)], usage={"modelCalls": step})
            )
        elif kind == "start" and open_ids:
            mark = CallMark(1, draw(st.sampled_from([None, GRANT])))
            records.append(
                Record("start", "in-progress", step, marks={draw(st.sampled_from(open_ids)): mark})
            )
        elif kind == "pause" and open_ids:
            approval = {"id": "ap_1", "toolCallId": open_ids[0], "toolName": "a"}
            records.append(Record("pause", "awaiting-approval", step, approval=approval))
        elif kind == "result" and open_ids:
            chosen = draw(st.sets(st.sampled_from(open_ids), min_size=1))
            open_ids = [one for one in open_ids if one not in chosen]
            records.append(
                Record("result", "in-progress", step, results={one: answer(one) for one in chosen})
            )
    for seq, record in enumerate(records, 1):
        record.seq, record.at, record.fence = seq, f"2024-01-31T00:00:{seq:02}Z", 1
    return records, inputs


def fold(records: list[Record]) -> list[State]:
    states = [State("s")]
    for record in records:
        states.append(apply(states[-1], record))
    return states[1:]


def seen(state: State) -> Any:
    """All there is to know of a state."""
    data = {
        **state.__dict__,
        "log": list(state.log),
        "results": dict(state.results),
        "marks": dict(state.marks),
    }
    usage = {key: value for key, value in state.usage.items() if value}
    return {**data, "queue": list(state.queue), "usage": usage}


@given(lives())
def test_no_state_breaks_the_pairing_and_none_loses_input(life: tuple[list[Record], list[str]]) -> None:
    records, inputs = life
    for state in fold(records):
        assert broken_pair(state.log) is None
        texts = [m["content"] for m in (*state.log, *state.queue) if m["role"] == "user"]
        assert texts == inputs[: len(texts)]
        if not state.open_calls():
            assert (state.queue, dict(state.marks), dict(state.results)) == ((), {}, {})
        assert {one["id"] for one in state.pending_calls()}.isdisjoint(state.results)


@given(lives())
def test_a_later_state_never_changes_an_earlier_one(life: tuple[list[Record], list[str]]) -> None:
    records, _ = life
    states = [State("s")]
    snapshots = [seen(states[0])]
    for record in records:
        states.append(apply(states[-1], record))
        snapshots.append(seen(states[-1]))
    apply(states[1], Record("turn", "in-progress", 1, seq=2, add=[turn("other")]))
    assert [seen(state) for state in states] == snapshots


@given(lives())
def test_records_survive_json(life: tuple[list[Record], list[str]]) -> None:
    records, _ = life
    copies = [record_from_json(json.loads(json.dumps(record_to_json(record)))) for record in records]
    assert [seen(state) for state in fold(copies)] == [seen(state) for state in fold(records)]


@given(lives())
def test_a_checkpoint_is_the_whole_state(life: tuple[list[Record], list[str]]) -> None:
    for state in fold(life[0]):
        checkpoint = checkpoint_of(state)
        assert seen(state_of(checkpoint)) == seen(state)
        dumped = json.loads(checkpoint.model_dump_json(by_alias=True, exclude_none=True))
        assert seen(state_of(Checkpoint.of(dumped))) == seen(state)


@given(lives(), lives())
def test_restoring_a_checkpoint_over_any_state_gives_that_checkpoint(
    life: tuple[list[Record], list[str]], other: tuple[list[Record], list[str]]
) -> None:
    from lousho_cli.execution.checkpoint import record_of

    wanted, there = fold(life[0])[-1], fold(other[0])[-1]
    record = record_of(checkpoint_of(wanted))
    record.seq, record.at, record.fence = wanted.seq, wanted.saved_at, wanted.fence
    assert seen(apply(there, record)) == seen(wanted)


def test_a_deletion_leaves_nothing() -> None:
    state = apply(State("s"), Record("input", "in-progress", 0, seq=1, add=[said("x")]))
    gone = apply(state, Record("delete", "finished", 0, seq=2))
    assert not gone.exists
    assert (len(gone.log), gone.seq) == (0, 2)
    again = apply(gone, Record("input", "in-progress", 0, seq=3, add=[said("y")]))
    assert again.exists
    assert [m["content"] for m in again.log] == ["y"]


gates = st.lists(st.sampled_from(["free", "free", "alone", "ask"]), max_size=6)


@given(gates, st.integers(1, 3), st.integers(0, 4))
def test_what_is_next_follows_the_gates_in_order(names: list[str], limit: int, step: int) -> None:
    calls = [PreparedCall(call(str(n)), gate=cast(Gate, gate)) for n, gate in enumerate(names)]
    state = State("s", step=step)
    action = next_action(state, calls, limit)
    first_gated = next((n for n, gate in enumerate(names) if gate != "free"), len(names))
    if first_gated:
        assert action == RunCalls(calls[:first_gated])
    elif names and names[0] == "alone":
        assert action == RunCalls(calls[:1])
    elif names:
        assert action == AwaitDecision(calls[0])
    else:
        assert action == (Finish("max-steps") if step >= limit else AskModel())


def test_an_answer_ends_the_run_even_beyond_the_limit() -> None:
    state = apply(State("s"), Record("turn", "in-progress", 9, seq=1, add=[said("x"), turn()]))
    assert next_action(state, [], 3) == Finish("stop")
    cut = cast(MessageData, {**turn(), "finishReason": "length"})
    state = apply(state, Record("turn", "in-progress", 9, seq=2, add=[cut]))
    assert next_action(state, [], 3) == Finish("length")
