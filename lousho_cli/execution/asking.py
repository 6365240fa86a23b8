"""Asking the model for one turn, until it answers or the run is to stop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from ..errors import ProviderError, SDKError
from .conversation import ToolCall
from .preparation import is_genuine
from .protocols import ModelRequest, Provider
from .records import ModelResponse
from .values import message_of

STOP_SECONDS = 5.0
_TURN_KEYS = frozenset(("content", "tool_calls", "toolCalls"))


async def ask(provider: Provider, request: ModelRequest, stop: asyncio.Future[None]) -> ModelResponse | None:
    """One finished turn; None if the run was told to stop first. A turn that ended before that counts.

    Raises:
        ProviderError: the model could not be asked, or ended its turn with an error.
    """
    task = asyncio.ensure_future(_generate(provider, request))
    try:
        await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        if not task.done():
            task.cancel()
    await asyncio.wait((task,), timeout=STOP_SECONDS)
    answered = task.done() and not task.cancelled() and task.exception() is None
    return task.result() if answered else None


async def _generate(provider: Provider, request: ModelRequest) -> ModelResponse:
    try:
        answer = await provider.generate(request)
        if isinstance(answer, Mapping) and not answer.keys() & _TURN_KEYS:
            raise ProviderError(
                "the model's answer is no turn: it has neither content nor tool calls",
                hint='return {"content": "...", "tool_calls": [...]}',
            )
        response = ModelResponse.of(answer)
    except SDKError:
        raise
    except BaseException as error:
        if is_genuine(error):
            raise
        raise ProviderError(
            f"the model request failed: {type(error).__name__}: {message_of(error)}",
            hint="resume to ask it again",
        ) from error
    if response.finish_reason == "error":
        raise ProviderError("the model ended its turn with an error", hint="resume to ask it again")
    if response.finish_reason in ("length", "max_tokens") and any(map(_is_cut, response.tool_calls)):
        raise ProviderError(
            "the model's turn was cut inside a tool call's arguments: its token limit is too low",
            hint="raise the limit, then resume",
        )
    return response


def _is_cut(call: ToolCall) -> bool:
    try:
        json.loads(call.function.arguments)
    except (ValueError, RecursionError):
        return True
    return False
