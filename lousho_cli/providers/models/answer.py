"""A turn of the library as one of ours."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai.messages import ModelResponse as LibraryResponse
from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.usage import RequestUsage

from ...errors import ProviderError
from ...execution.messages import CallData
from ...execution.records import ModelResponse
from ...execution.values import clean_text
from ..prices import cost_of
from .parts import PROVIDER_PARTS, REASONING, digest_of, stored_parts

_REASONS = {"content_filter": "content-filter", "tool_call": "tool_calls"}


def to_answer(response: LibraryResponse, provider: str) -> ModelResponse:
    """The finished turn, with everything the provider will want to see again.

    Raises:
        ProviderError: the turn did not end properly; asking again may help.
    """
    if response.state != "complete":
        raise cut_short(response, provider)
    text = "".join(clean_text(part.content) for part in response.parts if isinstance(part, TextPart))
    reasoning = "".join(clean_text(part.content) for part in response.parts if isinstance(part, ThinkingPart))
    calls = [_call(part) for part in response.parts if isinstance(part, ToolCallPart)]
    kept = stored_parts(response, provider)
    if "parts" in kept:
        kept["digest"] = digest_of(text, reasoning, calls)
    answer: dict[str, Any] = {
        "content": text,
        "toolCalls": calls,
        "usage": _usage(response),
        "finishReason": _REASONS.get(response.finish_reason or "", response.finish_reason),
        "model": response.model_name,
        PROVIDER_PARTS: kept,
    }
    if reasoning:
        answer[REASONING] = reasoning
    return ModelResponse.model_validate(answer)


def cut_short(response: LibraryResponse, provider: str) -> ProviderError:
    """The error of a turn that has no end; it knows what the part of it that came has cost."""
    usage = _usage(response) if response.usage.has_values() else None
    return ProviderError(
        f"{provider} ended its answer in the middle of the turn",
        hint="resume to ask it again",
        retryable=True,
        usage=usage,
    )


def _call(part: ToolCallPart) -> CallData:
    function = {"name": part.tool_name, "arguments": arguments_text(part.args)}
    return {"id": part.tool_call_id, "type": "function", "function": function}  # type: ignore[typeddict-item]


def arguments_text(arguments: object) -> str:
    """A call's arguments as the model's text."""
    if isinstance(arguments, str):
        return clean_text(arguments)
    return json.dumps(arguments or {}, ensure_ascii=False)


def _usage(response: LibraryResponse) -> dict[str, Any]:
    usage: RequestUsage = response.usage
    counted: dict[str, Any] = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
        "modelCalls": 1,
        "costUsd": cost_of(response),
        # The library has 0 for what was not said.
        "cachedInputTokens": usage.cache_read_tokens or None,
        "cacheWriteTokens": usage.cache_write_tokens or None,
        "reasoningTokens": usage.output_reasoning_tokens or usage.details.get("reasoning_tokens") or None,
    }
    return {key: value for key, value in counted.items() if value is not None}
