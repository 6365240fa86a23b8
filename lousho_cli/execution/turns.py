"""Recording a model turn: ids, finish reason, usage (R3.17, R3.18)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from typing import Any, cast

from .messages import CallData, MessageData, UsageData, calls_of
from .records import ModelResponse, Usage
from .state import Record, State
from .values import clean

_REASONS = {"max_tokens": "length", "content_filter": "content-filter"}


def record_turn(state: State, response: ModelResponse, cost: UsageData, *, fresh_ids: bool = False) -> Record:
    """The save of one model turn; a final answer finishes the run in the same save.

    Args:
        cost: what the turn cost.
        fresh_ids: give every call an id of ours: a sub-agent's ids must not meet those of its lead.
    """
    message = clean(_message(state, response, fresh_ids))
    asks = bool(calls_of(message))
    reason = _reason(response.finish_reason, asks)
    if not asks and reason != "stop":
        cast("dict[str, Any]", message)["finishReason"] = reason
    done = not asks and not state.queue
    return Record(
        "finish" if done else "turn",
        "finished" if done else "in-progress",
        state.step + 1,
        add=[message],
        usage=add_usage(state.usage, cost),
        finish_reason=reason,
    )


def turn_usage(response: ModelResponse) -> UsageData:
    """What one turn cost, as a plain value."""
    return {"modelCalls": 1} if response.usage is None else usage_data(response.usage)


def usage_data(usage: Usage) -> UsageData:
    """What one request cost, as a plain value."""
    data = cast(UsageData, usage.model_dump(mode="json", by_alias=True, exclude_none=True))
    data["modelCalls"] = data.get("modelCalls") or 1
    if not math.isfinite(data.get("costUsd", 0.0)):
        # No amount of money: it is not known.
        del data["costUsd"]
    return data


def add_usage(total: UsageData, turn: UsageData) -> UsageData:
    """The sum. A cost that is unknown for one part is unknown for the whole: `knownCostUsd` is the rest."""
    summed: dict[str, Any] = dict(total)
    for key in ("inputTokens", "outputTokens", "totalTokens", "modelCalls"):
        summed[key] = _number(total, key) + _number(turn, key)
    for key in ("cachedInputTokens", "cacheWriteTokens", "reasoningTokens"):
        if key in total or key in turn:
            summed[key] = _number(total, key) + _number(turn, key)
    known = _known_cost(total) + _known_cost(turn)
    summed.pop("costUsd", None)
    summed.pop("knownCostUsd", None)
    if "costUsd" in turn and (not total.get("modelCalls") or "costUsd" in total):
        summed["costUsd"] = known
    elif known:
        summed["knownCostUsd"] = known
    return cast(UsageData, summed)


def _known_cost(usage: UsageData) -> float:
    return usage.get("costUsd", usage.get("knownCostUsd", 0.0))


def _number(usage: Mapping[str, Any], key: str) -> Any:
    return usage.get(key) or 0


def _message(state: State, response: ModelResponse, fresh_ids: bool) -> MessageData:
    data = response.model_dump(mode="json", by_alias=True, exclude_none=True)
    extra = response.model_extra or {}
    message: dict[str, Any] = {"role": "assistant", "content": data.get("content", "")}
    if response.tool_calls:
        message["toolCalls"] = _identified(state, data["toolCalls"], fresh_ids)
    message.update({key: data.get(key, value) for key, value in extra.items() if key not in message})
    return cast(MessageData, message)


def _identified(state: State, calls: list[CallData], fresh: bool) -> list[CallData]:
    """The calls with ids that are unique in the session; what the provider sent is kept beside."""
    seen: set[str] = set()
    for call in calls:
        if fresh or not call["id"] or call["id"] in seen or state.log.has_call(call["id"]):
            call["providerId"] = call["id"]
            call["id"] = f"call_{secrets.token_hex(8)}"
        seen.add(call["id"])
    return calls


def _reason(given: str | None, asks: bool) -> str:
    if asks:
        return "tool_calls"
    reason = _REASONS.get(given or "", given)
    return reason if reason in ("length", "content-filter") else "stop"
