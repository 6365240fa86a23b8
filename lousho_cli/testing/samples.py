"""Checkpoints of every shape a run can leave behind, made by the engine's own rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ..execution.checkpoint import checkpoint_of, record_of
from ..execution.messages import JsonObject, MessageData
from ..execution.records import Checkpoint
from ..execution.state import CallMark, Grant, Record, RunStart, State, apply
from ..execution.unset import UNSET

AT = "2026-01-02T03:04:05.000006Z"

ODD_TEXT = (
    'quotes \' " ` \\ \\n {"json": [null]} <b>&amp;</b> %s %00 $HOME ${x} {{x}} -- ; \r\n\t\x00\x1b[31m\x7f'
    "\ufeff\u2028\u2029\u200b é e\u0301 ß İ 漢字 עברית \u202e العربية null undefined \\ud83d \U0010ffff"
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1fa\U0001f1f3"
)
"""Text that has broken stores: controls, escapes, markup, scripts in both directions, joined characters."""

ODD_IDS = (
    "a", "a/b", "a\\b", "/a", "a/", "a/../b", "#", "a#", "a#history", "a#history/1", "%", "%2F", "a%2Fb",
    "%23", "a b", " a", "a ", "a.", ".a", "..a", "a:b", "a*b?", "<a>|\"'", "con", "nul.txt", "a.json",
    "a.fork-1", "Trip", "trip", "TRIP", "é", "e\u0301", "漢字🙂", "' OR 1=1 --", "null", "0", "-1", "~", "$x",
    "a\u202eb", "x" * 200, "x" * 199 + "y", "漢" * 200,
)  # fmt: skip
"""Ids that are all different sessions."""

NUMBERS: JsonObject = {
    "integers": [0, -1, 2**31, 2**53 + 1, 2**63, -(2**64), 10**40],
    "floats": [0.1, -0.5, 1e308, 5e-324, 1.0],
    "others": [True, False, None, "", "1", [], {}],
    "nested": {"": {"a": {"b": {"c": [[[]], [{"d": 1}]]}}}},
}


def text_only(session_id: str, text: str = "Done.") -> Checkpoint:
    """A finished conversation of one question and one answer."""
    return checkpoint_of(_answered(_opened(session_id, "Go."), text))


def with_state(session_id: str, business_state: Any) -> Checkpoint:
    """A run that has just accepted its input, with a business state."""
    return checkpoint_of(_opened(session_id, business_state=business_state))


def unknown_fields(session_id: str) -> Checkpoint:
    """Fields that lousho does not know, on messages, calls and usage."""
    parts = [{"type": "text", "text": "look"}, {"type": "image", "url": "x:y", "alt": None}]
    state = _opened(session_id, parts)
    call = {**_call("c1"), "providerId": "p-1", "index": 0, "signature": {"v": [1, None]}}
    turn = {
        "role": "assistant", "content": "", "toolCalls": [call],
        "reasoning": [{"text": "hm", "signature": "c2ln=="}, {"redacted": "AAAA", "index": None}],
    }  # fmt: skip
    usage: Any = {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11, "modelCalls": 1, "costUsd": 0.00012}
    usage["cachedTokens"] = {"read": 5}
    record = _record("turn", 1, add=[cast(MessageData, turn)], usage=usage, finish_reason="tool_calls")
    return checkpoint_of(apply(state, record))


def out_of_order_results(session_id: str) -> Checkpoint:
    """The third and the second call of a turn are done, the first is not."""
    state = _asked(_opened(session_id), "c1", "c2", "c3")
    done = {"c3": _result("c3", 3), "c2": {**_result("c2", 2), "isError": True}}
    return checkpoint_of(apply(state, _record("result", 1, results=cast(Any, done))))


def queued_input(session_id: str) -> Checkpoint:
    """Two messages wait behind an open call, and the same text twice is two messages."""
    message: MessageData = {"role": "user", "content": "And tea."}
    record = _record("queue", 1, queue=[message, message])
    return checkpoint_of(apply(_asked(_opened(session_id), "c1"), record))


def marks(session_id: str) -> Checkpoint:
    """One call was started, one was approved with other arguments, with a note."""
    grant = Grant("ap_1", "needs-approval", True, "Ann Ö", AT, "d1", {"n": 2, "x": None}, True, "just\ntwo")
    marked = {"c1": CallMark(started=3), "c2": CallMark(started=4, grant=grant)}
    return checkpoint_of(apply(_asked(_opened(session_id), "c1", "c2"), _record("start", 1, marks=marked)))


def paused(session_id: str, approval_id: str = "ap_1") -> Checkpoint:
    """The run waits for a human."""
    record = _record("pause", 1, approval=asked_for(session_id, approval_id))
    record.status = "awaiting-approval"
    return checkpoint_of(apply(_asked(_opened(session_id), "c1"), record))


def asked_for(session_id: str, approval_id: str) -> JsonObject:
    """What a pause asks: the JSON of a pending approval, with every field."""
    return {
        "id": approval_id, "sessionId": session_id, "agent": "bot", "toolName": "act", "toolCallId": "c1",
        "args": {"n": 1, "to": "Zoë", "deep": [{"a": None}]}, "kind": "interrupted", "digest": "d1",
        "createdAt": AT, "expiresAt": "2126-01-02T03:04:05Z", "subagent": ["scout", "sub scout"],
        "leadCallId": "c0",
    }  # fmt: skip


def sub_agents(session_id: str) -> Checkpoint:
    """A sub-agent of a sub-agent is on its way, with results out of order and input that waits."""
    inner = _asked(_opened(session_id, "inner"), "i1", "i2")
    inner = apply(inner, _record("result", 1, results={"i2": cast(MessageData, _result("i2", ["ok"]))}))
    middle = apply(_asked(_opened(session_id, "middle"), "m1"), _record("sub", 1, subs={"m1": _whole(inner)}))
    record = _record("sub", 1, subs={"c1": _whole(middle)})
    return checkpoint_of(apply(_asked(_opened(session_id), "c1"), record))


def a_fork(session_id: str) -> Checkpoint:
    """A fork that remembers its parent."""
    record = _record("fork", 1, parent={"sessionId": "parent/1", "seq": 4, "step": 1})
    return checkpoint_of(apply(_asked(_opened(session_id), "c1"), record))


def out_of_steps(session_id: str) -> Checkpoint:
    """A run that ended early."""
    record = _record("finish", 1, finish_reason="max-steps")
    record.status = "finished"
    return checkpoint_of(apply(_opened(session_id), record))


SAMPLES: dict[str, Callable[[str], Checkpoint]] = {
    "finished": text_only,
    "unknown-fields": unknown_fields,
    "results-out-of-order": out_of_order_results,
    "queued-input": queued_input,
    "call-marks": marks,
    "awaiting-approval": paused,
    "sub-agents": sub_agents,
    "fork": a_fork,
    "out-of-steps": out_of_steps,
    "odd-text": lambda session_id: text_only(session_id, ODD_TEXT),
    "a-megabyte": lambda session_id: text_only(session_id, "0123456789abcdé\n" * 65_536),
    "numbers": lambda session_id: with_state(session_id, NUMBERS),
    "odd-keys": lambda session_id: with_state(session_id, {ODD_TEXT: 1, "": 2, "a.b": {"$set": 3}}),
}
"""By what each has in it: a function from the session's id to the checkpoint."""


def _opened(session_id: str, content: Any = "Go.", *, business_state: Any = UNSET) -> State:
    record = _record("input", 0, agent="bot", add=[{"role": "user", "content": content}], usage={})
    record.system = "Be brief.\n"
    record.run = RunStart(0, 1, 7)
    record.fingerprint = {"version": 2, "model": "m", "tools": {"act": "h1"}, "instructions": "h2"}
    record.run_config = {"model": "m", "context": {"businessState": {"n": None}}}
    record.business_state = {"seats": [1, 2]} if business_state is UNSET else business_state
    return apply(State(session_id), record)


def _asked(state: State, *call_ids: str) -> State:
    turn = {"role": "assistant", "content": "", "toolCalls": [_call(call_id) for call_id in call_ids]}
    usage = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "modelCalls": 1}
    record = _record("turn", 1, add=[cast(MessageData, turn)], usage=usage, finish_reason="tool_calls")
    return apply(state, record)


def _answered(state: State, text: str) -> State:
    record = _record("finish", 1, add=[{"role": "assistant", "content": text}], finish_reason="stop")
    record.status = "finished"
    return apply(state, record)


def _call(call_id: str) -> JsonObject:
    # What a model sends as arguments is text, and may be no JSON.
    return {"id": call_id, "type": "function", "function": {"name": "act", "arguments": '{"n": 1,  "x":'}}


def _result(call_id: str, value: Any) -> JsonObject:
    return {"role": "tool", "content": f"{value}", "toolCallId": call_id, "toolName": "act"}


def _record(kind: Any, step: int, **fields: Any) -> Record:
    return Record(kind, "in-progress", step, seq=1, at=AT, fence=1, **fields)


def _whole(state: State) -> Record:
    """The save that puts a sub-agent's session into a state."""
    record = record_of(checkpoint_of(state))
    record.seq, record.at, record.fence = state.seq, state.saved_at, state.fence
    return record
