"""Words for the events of a run, the same on a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .outcome import Outcome, of_error
from .text import duration, escape_line
from .values import json_line, raw_line


def name_of(data: Mapping[str, Any]) -> str:
    return escape_line(str(data.get("toolName") or ""))


def json_of(value: Any) -> str:
    """Arguments or a result as an event carries them, JSON text or a value, on one line."""
    return raw_line(value) if isinstance(value, str) else json_line(value)


def outcome_of(data: Mapping[str, Any]) -> Outcome:
    """What `tool.error` reports."""
    error = data.get("error")
    value = error if isinstance(error, Mapping) else {"error": error}
    return of_error({"kind": data.get("kind"), "note": data.get("note"), **value})


def failure_of(data: Mapping[str, Any]) -> str:
    """What `model.retry` reports: `the model failed (503): overloaded; asking again in 1.2s`."""
    error = data.get("error")
    about = error if isinstance(error, Mapping) else {}
    status = f" ({escape_line(str(about['status']))})" if about.get("status") is not None else ""
    wait = data.get("wait")
    later = f" in {duration(wait)}" if isinstance(wait, int | float) and wait else ""
    then = f"asking {escape_line(str(data['next']))}" if data.get("next") else "asking again"
    model = escape_line(str(data.get("model") or "the model"))
    return f"{model} failed{status}: {escape_line(str(about.get('message') or ''))}; {then}{later}"


WARNINGS = ("agent.drift", "content.redacted", "output.invalid", "budget.unpriced", "budget.exceeded")


def warnings_of(type: str, data: Mapping[str, Any]) -> list[str]:
    """What a user should know whatever else is shown: a changed agent, a budget that is used up."""
    if type == "agent.drift":
        return [f"the agent changed: {escape_line(str(change))}" for change in data.get("changes") or []]
    if type == "content.redacted":
        count = data.get("count")
        return [f"{count} secret{'' if count == 1 else 's'} taken out before it was stored"]
    if type == "output.invalid":
        again = "; asking once more" if data.get("again") else ""
        return [f"the answer does not have its shape: {escape_line(str(data.get('error')))}{again}"]
    if type == "budget.unpriced":
        return ["what some requests cost is not known: the limit of costs misses them"]
    if type == "budget.exceeded":
        used = ", ".join(escape_line(str(each)) for each in data.get("exceeded") or [])
        return [f"the budget is used up: {used}"]
    return []


def ending(data: Mapping[str, Any]) -> str:
    """How a run ended: `finished (stop), 2 steps, 120 tokens in, 30 out, $0.0012`."""
    reason = str(data.get("finishReason") or "stop")
    words = {
        "awaiting-approval": "waits for approval",
        "aborted": "aborted",
        "budget-exceeded": "stopped by its budget",
    }
    parts = [words.get(reason, f"finished ({escape_line(reason)})")]
    steps = data.get("steps")
    if isinstance(steps, int):
        parts.append(f"{steps} step{'' if steps == 1 else 's'}")
    return ", ".join(parts + _usage(data.get("usage") or {}))


def _usage(usage: Mapping[str, Any]) -> list[str]:
    parts: list[str] = []
    if usage.get("inputTokens") or usage.get("outputTokens"):
        parts.append(f"{usage.get('inputTokens') or 0:,} tokens in")
        parts.append(f"{usage.get('outputTokens') or 0:,} out")
    elif usage.get("totalTokens"):
        parts.append(f"{usage['totalTokens']:,} tokens")
    if usage.get("costUsd") is not None:
        parts.append(f"${usage['costUsd']:.4f}")
    return parts
