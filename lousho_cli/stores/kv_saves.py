"""What a list shows of a kept save in a key-value store, read off the state after it."""

from __future__ import annotations

from typing import cast

from ..execution.messages import MessageData
from ..execution.state import Record, RecordKind, State
from .kv_values import Entry
from .trail import Save, save_of


def save_of_entry(entry: Entry) -> Save:
    """The save that an entry holds, with the tools it is about."""
    state = entry.state
    record = Record(
        cast(RecordKind, entry.event), state.status, entry.step, seq=state.seq, at=entry.saved_at,
        approval=state.approval, finish_reason=state.finish_reason,
    )  # fmt: skip
    results = _results_of_turn(state)
    if record.kind == "turn" and len(state.log):
        record.add = [state.log[-1]]
    elif record.kind == "result":
        record.results = results
    elif record.kind == "decision":
        record.marks = {call: mark for call, mark in state.marks.items() if mark.grant is not None}
        if not record.marks:
            # A rejection, or an outcome that a human looked up: the call has its result.
            decided = {call: message for call, message in results.items() if message.get("approval")}
            record.results = dict(list(decided.items())[-1:])
    return save_of(record, state)


def _results_of_turn(state: State) -> dict[str, MessageData]:
    """The results of the last turn with calls, by call id, in call order; those that wait come last."""
    found: list[MessageData] = []
    for index in range(len(state.log) - 1, -1, -1):
        message = state.log[index]
        if message["role"] == "assistant":
            break
        if message["role"] == "tool":
            found.insert(0, message)
    return {str(message["toolCallId"]): message for message in [*found, *state.results.values()]}
