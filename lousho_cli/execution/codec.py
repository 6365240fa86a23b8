"""Records as JSON objects and back. What is read is checked: a file is hostile until proven otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, cast, get_args

from .messages import JsonObject, MessageData, Role, UsageData
from .state import CallMark, Record, RecordKind, RunStart, Status
from .unset import UNSET

KINDS = frozenset(get_args(RecordKind))
STATUSES = frozenset(get_args(Status))
ROLES = frozenset(get_args(Role))
_PLAIN = (
    ("agent", "agent"), ("parent", "parent"), ("rewrite", "rewrite"), ("add", "add"), ("results", "results"),
    ("queue", "queue"), ("usage", "usage"), ("seconds", "seconds"), ("finish_reason", "finishReason"),
    ("approval", "approval"), ("fingerprint", "fingerprint"), ("run_config", "runConfig"),
    ("last_step", "lastStep"),
)  # fmt: skip
_PLAIN_KEYS = tuple(key for _, key in _PLAIN)
_plain_values = attrgetter(*(attribute for attribute, _ in _PLAIN))


def record_to_json(record: Record) -> JsonObject:
    """The record as the JSON object a store keeps; fields that change nothing are left out."""
    data: JsonObject = {
        "seq": record.seq,
        "at": record.at,
        "fence": record.fence,
        "kind": record.kind,
        "status": record.status,
        "step": record.step,
    }
    for key, value in zip(_PLAIN_KEYS, _plain_values(record), strict=True):
        if value is not None:
            data[key] = value
    if record.marks:
        data["marks"] = {call: mark.to_json() for call, mark in record.marks.items()}
    if record.subs:
        data["subs"] = {call: record_to_json(sub) for call, sub in record.subs.items()}
    if record.run is not None:
        data["run"] = record.run.to_json()
    if record.system is not UNSET:
        data["system"] = record.system
    if record.business_state is not UNSET:
        data["businessState"] = record.business_state
    return data


def record_from_json(data: Any) -> Record:
    """The record that `data` is.

    Raises:
        ValueError: it is none.
    """
    try:
        return _record(data)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a record: {error!r}") from error


def _record(data: Mapping[str, Any]) -> Record:
    kind, status = data["kind"], data["status"]
    if kind not in KINDS or status not in STATUSES:
        raise ValueError(f"unknown kind {kind!r} or status {status!r}")
    record = Record(kind, status, _natural(data["step"]), _natural(data["seq"]), str(data["at"]))
    record.fence = _natural(data["fence"])
    if "add" in data:
        record.add = _messages(data["add"])
    if "results" in data:
        record.results = {_text(call): _message(m) for call, m in data["results"].items()}
    if "usage" in data:
        record.usage = _usage(data["usage"])
    record.finish_reason = data.get("finishReason")
    if not data.keys() <= _COMMON:
        _rare(record, data)
    return record


_COMMON = frozenset(
    ("seq", "at", "fence", "kind", "status", "step", "add", "results", "usage", "finishReason", "crc")
)


def _rare(record: Record, data: Mapping[str, Any]) -> None:
    """The fields few records have."""
    for attribute, key, check in _CHECKED:
        if key in data:
            setattr(record, attribute, check(data[key]))
    if "marks" in data:
        record.marks = {_text(call): CallMark.from_json(mark) for call, mark in data["marks"].items()}
    if "subs" in data:
        record.subs = {_text(call): _record(sub) for call, sub in data["subs"].items()}
    if "run" in data:
        record.run = RunStart.from_json(data["run"])
    if "system" in data:
        record.system = None if data["system"] is None else _text(data["system"])
    if "businessState" in data:
        record.business_state = data["businessState"]


def _messages(data: Any) -> list[MessageData]:
    if not isinstance(data, list):
        raise ValueError("messages are not a list")
    return [_message(message) for message in data]


def _message(data: Any) -> MessageData:
    if data["role"] not in ROLES or "content" not in data:
        raise ValueError("a message without a known role and content")
    calls = data.get("toolCalls")
    if calls:
        for call in calls:
            function = call["function"]
            _text(call["id"]), _text(function["name"]), _text(function["arguments"])
    if data["role"] == "tool":
        _text(data["toolCallId"])
    return cast(MessageData, data)


_COUNTS = frozenset((
    "inputTokens", "outputTokens", "totalTokens", "modelCalls",
    "cachedInputTokens", "cacheWriteTokens", "reasoningTokens",
))  # fmt: skip
_COSTS = frozenset(("costUsd", "knownCostUsd"))


def _usage(value: Any) -> UsageData:
    usage = _object(value)
    for key in usage.keys() & _COUNTS:
        _natural(usage[key])
    for key in usage.keys() & _COSTS:
        if not isinstance(usage[key], (int, float)):
            raise ValueError(f"{key} is not a number")
    return cast(UsageData, value)


def _approval(value: Any) -> JsonObject:
    for key in ("id", "toolName", "toolCallId"):
        _text(_object(value)[key])
    for key in ("sessionId", "agent", "digest", "createdAt", "expiresAt"):
        if value.get(key) is not None:
            _text(value[key])
    if value.get("kind", "interrupted") not in ("needs-approval", "interrupted"):
        raise ValueError(f"unknown kind of approval {value['kind']!r}")
    for name in value.get("subagent") or ():
        _text(name)
    return cast(JsonObject, value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"text expected, not {type(value).__name__}")
    return value


def _object(value: Any) -> JsonObject:
    if not isinstance(value, dict):
        raise ValueError(f"an object expected, not {type(value).__name__}")
    return value


def _natural(value: Any) -> int:
    if type(value) is int and value >= 0:
        return value
    raise ValueError(f"a number from 0 expected, not {value!r}")


def _seconds(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise ValueError(f"seconds expected, not {value!r}")
    return float(value)


_CHECKED: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("agent", "agent", _text),
    ("parent", "parent", _object),
    ("rewrite", "rewrite", _natural),
    ("queue", "queue", _messages),
    ("seconds", "seconds", _seconds),
    ("approval", "approval", _approval),
    ("fingerprint", "fingerprint", _object),
    ("run_config", "runConfig", _object),
    ("last_step", "lastStep", _natural),
)
