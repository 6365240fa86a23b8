"""A turn while the model writes it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pydantic_ai.messages import (
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import StreamedResponse

from ...execution.protocols import CallDelta, ModelDelta, ReasoningDelta, TextDelta
from ...execution.records import ModelResponse
from .answer import arguments_text, cut_short, to_answer


async def read_stream(stream: StreamedResponse, provider: str) -> AsyncIterator[ModelDelta | ModelResponse]:
    """What the stream says, piece by piece, and the whole turn last.

    Raises:
        ProviderError: the stream ended in the middle of the turn.
    """
    calls: dict[int, int] = {}
    async for event in stream:
        delta = _delta(event, calls)
        if delta is not None:
            yield delta
    turn = stream.get()
    ended = turn.finish_reason or (turn.provider_details or {}).get("finish_reason")
    if not ended:
        raise cut_short(turn, provider)
    yield to_answer(turn, provider)


def _delta(event: ModelResponseStreamEvent, calls: dict[int, int]) -> ModelDelta | None:
    if isinstance(event, PartStartEvent):
        part = event.part
        if isinstance(part, TextPart) and part.content:
            return TextDelta(part.content)
        if isinstance(part, ThinkingPart) and part.content:
            return ReasoningDelta(part.content)
        if isinstance(part, ToolCallPart):
            index = calls.setdefault(event.index, len(calls))
            return CallDelta(index, part.tool_name, arguments_text(part.args) if part.args else "")
    elif isinstance(event, PartDeltaEvent):
        delta = event.delta
        if isinstance(delta, TextPartDelta) and delta.content_delta:
            return TextDelta(delta.content_delta)
        if isinstance(delta, ThinkingPartDelta) and delta.content_delta:
            return ReasoningDelta(delta.content_delta)
        if isinstance(delta, ToolCallPartDelta):
            index = calls.setdefault(event.index, len(calls))
            arguments = arguments_text(delta.args_delta) if delta.args_delta else ""
            return CallDelta(index, delta.tool_name_delta or "", arguments)
    return None
