"""Checkpoints, the public form of a state, and back."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from .codec import record_from_json, record_to_json
from .conversation import Messages, ToolCalls
from .messages import JsonObject, MessageData, calls_of
from .pairs import broken_pair
from .records import Checkpoint, Usage
from .state import Record, RunStart, State, apply
from .steps import parsed

ENGINE_KEY = "engine"


def checkpoint_of(state: State) -> Checkpoint:
    """The checkpoint a state is. What only the engine needs is under `engine`."""
    data: dict[str, Any] = {
        "agent_id": state.agent,
        "session_id": state.session_id,
        "step_index": state.step,
        "messages": Messages(state.log, state.system),
        "tool_calls": ToolCalls(state.log, state.run.index),
        "usage": Usage.model_validate(state.usage),
        "finish_reason": state.finish_reason,
        "business_state": copy.deepcopy(state.business_state),
        "status": state.status,
        "approval_id": state.approval["id"] if state.approval else None,
        "agent_fingerprint": copy.deepcopy(state.fingerprint),
        "run_config": copy.deepcopy(state.run_config),
        ENGINE_KEY: copy.deepcopy(_engine(state)),
    }
    return Checkpoint.model_construct(_fields_set=set(data), **data)


def _engine(state: State) -> JsonObject:
    engine: JsonObject = {
        "seq": state.seq, "savedAt": state.saved_at, "fence": state.fence, "run": state.run.to_json(),
    }  # fmt: skip
    if state.results:
        engine["results"] = dict(state.results)
    if state.marks:
        engine["marks"] = {call: mark.to_json() for call, mark in state.marks.items()}
    if state.queue:
        engine["queue"] = list(state.queue)
    if state.approval:
        engine["approval"] = state.approval
    if state.subs:
        engine["subs"] = {call: _sub_json(sub) for call, sub in state.subs.items()}
    if state.seconds:
        engine["seconds"] = state.seconds
    if state.parent:
        engine["parent"] = state.parent
    return engine


def _sub_json(state: State) -> JsonObject:
    """A sub-agent's whole session, as the record that restores it."""
    record = record_of(checkpoint_of(state))
    record.seq, record.at, record.fence = state.seq, state.saved_at, state.fence
    return record_to_json(record)


def record_of(checkpoint: Checkpoint) -> Record:
    """A save that puts a session into the state of `checkpoint`, whatever it was before.

    A checkpoint that lousho did not make may hold user messages behind an open turn: they are queued input.

    Raises:
        ValueError: the checkpoint contradicts itself.
    """
    engine: Mapping[str, Any] = (checkpoint.model_extra or {}).get(ENGINE_KEY) or {}
    log = checkpoint.messages.log
    messages, behind = _split(list(log)) if not engine else (list(log), [])
    place = broken_pair(messages)
    if place is not None:
        raise ValueError(f"calls and results do not pair up: {place}")
    data: JsonObject = {
        "seq": 0, "at": "", "fence": 0, "kind": "save", "status": checkpoint.status,
        "step": checkpoint.step_index, "rewrite": 0, "add": messages, "agent": checkpoint.agent_id,
        "usage": checkpoint.usage.model_dump(mode="json", by_alias=True, exclude_none=True),
        "system": checkpoint.messages.system, "businessState": checkpoint.business_state,
        "queue": [*behind, *engine.get("queue", ())],
        "run": engine.get("run") or _guess_run(messages),
    }  # fmt: skip
    if checkpoint.finish_reason is not None:
        data["finishReason"] = checkpoint.finish_reason
    if checkpoint.agent_fingerprint is not None:
        data["fingerprint"] = checkpoint.agent_fingerprint
    if checkpoint.run_config is not None:
        data["runConfig"] = checkpoint.run_config
    for key in ("results", "marks", "approval", "parent", "subs", "seconds"):
        if engine.get(key):
            data[key] = engine[key]
    if checkpoint.approval_id and "approval" not in data:
        about = {"sessionId": checkpoint.session_id, "agent": checkpoint.agent_id}
        data["approval"] = {"id": checkpoint.approval_id, **about, **_guess_call(messages)}
    # The caller keeps the checkpoint and may change it; its messages are not its own to change.
    own = {key: value if key == "add" else copy.deepcopy(value) for key, value in data.items()}
    return record_from_json(own)


def state_of(checkpoint: Checkpoint, session_id: str | None = None) -> State:
    """The state that `checkpoint` is.

    Raises:
        ValueError: the checkpoint contradicts itself.
    """
    engine: Mapping[str, Any] = (checkpoint.model_extra or {}).get(ENGINE_KEY) or {}
    record = record_of(checkpoint)
    record.seq = int(engine.get("seq", 1))
    record.at = str(engine.get("savedAt", ""))
    record.fence = int(engine.get("fence", 0))
    return apply(State(session_id or checkpoint.session_id), record)


def _split(messages: list[MessageData]) -> tuple[list[MessageData], list[MessageData]]:
    """Cut off what stands behind a last turn whose calls lack results."""
    last = next((i for i in range(len(messages) - 1, -1, -1) if messages[i]["role"] == "assistant"), None)
    if last is None:
        return messages, []
    end = last + 1
    while end < len(messages) and messages[end]["role"] == "tool":
        end += 1
    answered = end - last - 1
    if answered >= len(calls_of(messages[last])):
        return messages, []
    return messages[:end], messages[end:]


def _guess_run(messages: list[MessageData]) -> JsonObject:
    """Where the run of a foreign checkpoint began: at the last user message before its open end."""
    index = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=0)
    return RunStart(index, 1 if messages else 0).to_json()


def _guess_call(messages: list[MessageData]) -> JsonObject:
    """Which call a foreign pause is about: the first without a result."""
    probe = apply(State(None), Record("save", "in-progress", 0, seq=1, add=messages))
    call = next(iter(probe.pending_calls()), None)
    if call is None:
        return {"toolCallId": "", "toolName": ""}
    function = call["function"]
    return {"toolCallId": call["id"], "toolName": function["name"], "args": parsed(function["arguments"])}
