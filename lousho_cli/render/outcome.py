"""What became of a tool call: ok, failed, rejected, interrupted, cancelled, not run: all different."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_KINDS = {
    "unknown-tool": ("failed", "no such tool"),
    "invalid-arguments": ("failed", "invalid arguments"),
    "tool-error": ("failed", "failed"),
    "timeout": ("failed", "timed out"),
    "rejected": ("rejected", "rejected, did not run"),
    "interrupted": ("unclear", "interrupted"),
    "cancelled": ("stopped", "cancelled"),
    "not-run": ("stopped", "not run"),
}
STYLES = {
    "ok": "green",
    "failed": "red",
    "rejected": "yellow",
    "unclear": "magenta",
    "stopped": "yellow",
    "wait": "yellow",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call.

    Attributes:
        kind: `ok`, or the error kind of the result.
        mark: the name of the mark to show: `ok`, `failed`, `rejected`, `unclear` or `stopped`.
        label: the kind in words.
        reason: the error and the note of a result that is an error, else empty. Of a rejection it is the
            human's note, word for word, if there is one.
    """

    kind: str
    mark: str
    label: str
    reason: str = ""

    @property
    def style(self) -> str:
        return STYLES[self.mark]


OK = Outcome("ok", "ok", "ok")


def of_message(message: Mapping[str, Any]) -> Outcome:
    """The outcome a tool message records. Only what is marked as an error is one: data may look like it."""
    if not message.get("isError"):
        return OK
    content = message.get("content")
    try:
        value = json.loads(content) if isinstance(content, str) else content
    except (ValueError, RecursionError):
        value = content
    return of_error(value)


def of_error(value: Any) -> Outcome:
    """The outcome of an error result's value: `{"error", "kind", "note"?}`, or whatever an older file has."""
    if not isinstance(value, Mapping):
        return Outcome("tool-error", "failed", "failed", str(value))
    kind = str(value.get("kind") or "tool-error")
    mark, label = _KINDS.get(kind, ("failed", kind))
    reasons = [str(value[key]) for key in ("error", "note") if value.get(key)]
    if kind == "rejected":
        reasons = reasons[-1:]
    return Outcome(kind, mark, label, ": ".join(dict.fromkeys(reasons)))


def of_value(value: Any) -> Outcome:
    """The outcome of a result without its message: an error if it has the shape the engine records."""
    if isinstance(value, Mapping) and "error" in value and value.get("kind") in _KINDS:
        return of_error(value)
    return OK
