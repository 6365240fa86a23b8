"""One request to a model: its answer whole, streamed where somebody listens, within its time."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from ..errors import ProviderError, SDKError
from .conversation import ToolCall
from .patience import is_dropped
from .preparation import is_genuine
from .protocols import CallDelta, ModelDelta, ModelRequest, Provider, ReasoningDelta, Streams, TextDelta
from .records import ModelResponse
from .values import message_of

STOP_SECONDS = 5.0
_TURN_KEYS = frozenset(("content", "tool_calls", "toolCalls"))

Listener = Callable[[ModelDelta], Awaitable[None]]


async def attempt(
    provider: Provider, request: ModelRequest, stop: asyncio.Future[None], listener: Listener | None
) -> ModelResponse | None:
    """One finished turn; None if the run was told to stop first. A turn that ended before that counts.

    Args:
        listener: told what the model writes while it writes, if the provider can; None for nobody.

    Raises:
        ProviderError: the model could not be asked in time, or did not end its turn properly.
    """
    pieces = _Pieces() if listener is not None and isinstance(provider, Streams) else None
    task = asyncio.ensure_future(_answer(provider, request, pieces))
    try:
        if await _finished(task, stop, pieces, listener, request.settings.timeout):
            return task.result()
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(_look_at)
    await asyncio.wait((task,), timeout=STOP_SECONDS)
    if task.done() and not task.cancelled() and task.exception() is None:
        return task.result()
    if stop.done():
        return None
    raise ProviderError(
        f"the model did not answer within {request.settings.timeout:g} s",
        hint="resume to ask it again, or raise the timeout of its settings",
        retryable=True,
    )


class _Pieces:
    """What a stream has yielded and nobody has been told yet."""

    def __init__(self) -> None:
        self._waiting: deque[ModelDelta] = deque()
        self.arrival: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def put(self, piece: ModelDelta) -> None:
        self._waiting.append(piece)
        if not self.arrival.done():
            self.arrival.set_result(None)

    async def tell(self, listener: Listener) -> None:
        self.arrival = asyncio.get_running_loop().create_future()
        while self._waiting:
            await listener(self._waiting.popleft())


async def _finished(
    task: asyncio.Task[ModelResponse],
    stop: asyncio.Future[None],
    pieces: _Pieces | None,
    listener: Listener | None,
    seconds: float | None,
) -> bool:
    """Wait for the answer, telling its pieces; False if the run is to stop or the time is over."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        awaited: list[asyncio.Future[Any]] = [task, stop]
        if pieces is not None:
            awaited.append(pieces.arrival)
        await asyncio.wait(awaited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if pieces is not None and listener is not None:
            await pieces.tell(listener)
        if task.done():
            return True
        if stop.done() or (deadline is not None and time.monotonic() >= deadline):
            return False


def _look_at(task: asyncio.Task[ModelResponse]) -> None:
    """What an abandoned request raises is nobody's business any more."""
    if not task.cancelled():
        task.exception()


async def _answer(provider: Provider, request: ModelRequest, pieces: _Pieces | None) -> ModelResponse:
    try:
        if pieces is not None and isinstance(provider, Streams):
            answer: Any = await _last(provider.stream(request), pieces)
        else:
            answer = await provider.generate(request)
        return finished_turn(answer)
    except SDKError:
        raise
    except BaseException as error:
        if is_genuine(error):
            raise
        raise ProviderError(
            f"the model request failed: {type(error).__name__}: {message_of(error)}",
            hint="resume to ask it again",
            retryable=is_dropped(error),
        ) from error


async def _last(stream: AsyncIterator[ModelDelta | ModelResponse], pieces: _Pieces) -> object:
    """The whole turn that a stream ends with."""
    try:
        async for piece in stream:
            if not isinstance(piece, TextDelta | ReasoningDelta | CallDelta):
                return piece
            pieces.put(piece)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    raise ProviderError(
        "the model's answer was cut off before its end", hint="resume to ask it again", retryable=True
    )


def finished_turn(answer: Any) -> ModelResponse:
    """What a provider answered, if it is a turn that the model ended.

    Raises:
        ProviderError: it is no turn, ended with an error, or was cut inside a call's arguments; says what it
            cost.
        ValidationError: it has not the shape of a turn.
    """
    if isinstance(answer, Mapping) and not answer.keys() & _TURN_KEYS:
        raise ProviderError(
            "the model's answer is no turn: it has neither content nor tool calls",
            hint='return {"content": "...", "tool_calls": [...]}',
        )
    response = ModelResponse.of(answer)
    if response.finish_reason == "error":
        raise ProviderError(
            "the model ended its turn with an error", hint="resume to ask it again", usage=response.usage
        )
    if response.finish_reason in ("length", "max_tokens") and any(map(_is_cut, response.tool_calls)):
        raise ProviderError(
            "the model's turn was cut inside a tool call's arguments: its token limit is too low",
            hint="raise the limit, then resume",
            usage=response.usage,
        )
    return response


def _is_cut(call: ToolCall) -> bool:
    try:
        json.loads(call.function.arguments)
    except (ValueError, RecursionError):
        return True
    return False
