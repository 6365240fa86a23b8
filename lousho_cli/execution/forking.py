"""Forking: what a save of one session becomes as the start of another (R3.10)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import ConfigurationError
from .approval import result_message
from .conversation import Message, Messages, plain
from .fork_stores import ForkSource
from .log import Log
from .messages import MessageData, calls_of, text_of
from .pairs import check_pairs
from .records import ForkPatch, ToolResultPatch
from .state import Record, RunStart, State, apply
from .unset import UNSET
from .values import clean, to_json_text, to_json_value


def fork_record(source: ForkSource, patch: ForkPatch) -> Record:
    """The save that turns `source`, a save of another session, into an unfinished session of its own.

    Only a patch of messages or of a tool's result reads the session's transcript.

    Raises:
        ConfigurationError: the patch breaks the pairing of calls and results, or names an unknown call.
    """
    record = Record("fork", "in-progress", source.step)
    record.parent = {"sessionId": source.session_id, "seq": source.seq, "step": source.step}
    if patch.messages is not None:
        _patch_messages(record, source.read(), patch.messages)
    if patch.business_state is not UNSET:
        record.business_state = to_json_value(patch.business_state)
    if patch.tool_result is not None:
        _patch_result(record, apply(source.read().without_queue(), copy.copy(record)), patch.tool_result)
    if patch.append_input is not None:
        record.queue = [{"role": "user", "content": clean(patch.append_input)}]
    return record


def _patch_messages(
    record: Record, source: State, patch: Callable[[list[Message]], Sequence[Message | Mapping[str, Any]]]
) -> None:
    """Put a rewritten transcript into the record, from the first message on that differs."""
    # The patch may change them in place: it gets copies, or it would change the source.
    copies = [Message.model_validate(copy.deepcopy(m)) for m in Messages(source.log, source.system).data()]
    given = [clean(plain(message)) for message in patch(copies)]
    texts = [text_of(message["content"]) for message in given if message["role"] == "system"]
    messages = [message for message in given if message["role"] != "system"]
    check_pairs(messages, "the patched transcript")
    system = "\n\n".join(texts) or None
    if system != source.system:
        record.system = system
    keep = _unchanged(source.log, messages)
    record.rewrite, record.add = keep, messages[keep:]
    record.run = _moved_run(source.run, messages)


def _unchanged(log: Log, messages: Sequence[MessageData]) -> int:
    count = 0
    for before, after in zip(log, messages, strict=False):
        if before != after:
            break
        count += 1
    return count


def _moved_run(run: RunStart, messages: Sequence[MessageData]) -> RunStart:
    """The run's start in a transcript of another length."""
    if run.index < len(messages):
        return run
    index = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=0)
    return replace(run, index=index, opening=1)


def _patch_result(record: Record, state: State, patch: ToolResultPatch) -> None:
    """Put another result into the record: in place, or for a pending call."""
    content = to_json_text(patch.result)
    for call in state.open_calls():
        if call["id"] == patch.tool_call_id:
            name = call["function"]["name"]
            record.results = {call["id"]: result_message(call["id"], name, content, failed=False)}
            return
    for index in range(len(state.log) - 1, -1, -1):
        message = state.log[index]
        if message.get("toolCallId") == patch.tool_call_id:
            changed = result_message(patch.tool_call_id, message.get("toolName", ""), content, failed=False)
            record.rewrite = index if record.rewrite is None else min(index, record.rewrite)
            tail = list(state.log.slice(record.rewrite))
            tail[index - record.rewrite] = changed
            record.add = tail
            return
    known = ", ".join(_call_ids(state.log)) or "none"
    raise ConfigurationError(
        f"there is no tool call {patch.tool_call_id!r} up to there", hint=f"calls: {known}"
    )


def _call_ids(log: Iterable[MessageData]) -> list[str]:
    return [call["id"] for message in log for call in calls_of(message)]


def call_named(log: Log, name: str) -> str:
    """The id of the one call of that name, or `name` itself if it is a call id.

    Raises:
        ConfigurationError: no call or several calls have that name.
    """
    if log.has_call(name):
        return name
    found = [call["id"] for message in log for call in calls_of(message) if call["function"]["name"] == name]
    if len(found) == 1:
        return found[0]
    if not found:
        known = ", ".join(_call_ids(log)) or "none"
        raise ConfigurationError(f"no tool call is named {name!r} up to there", hint=f"call ids: {known}")
    raise ConfigurationError(
        f"{name!r} was called {len(found)} times up to there", hint=f"name one by its id: {', '.join(found)}"
    )
