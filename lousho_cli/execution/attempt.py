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
from .protocols import CallDelta, ModelDelta, ModelRequest, Provider, ReasoningDelta, TextDelta
from .records import ModelResponse
from .values import message_of
from .waker import Waker

STOP_SECONDS = 5.0
_TURN_KEYS = frozenset(("content", "tool_calls", "toolCalls"))

Listener = Callable[[ModelDelta], Awaitable[None]]
Stream = Callable[[ModelRequest], AsyncIterator[ModelDelta | ModelResponse]]


async def attempt(
    provider: Provider, request: ModelRequest, stop: asyncio.Future[None], listener: Listener | None
) -> ModelResponse | None:
    """One finished turn; None if the run was told to stop first. A turn that ended before that counts.

    Args:
        listener: told what the model writes while it writes, if the provider can; None for nobody.

    Raises:
        ProviderError: the model could not be asked in time, or did not end its turn properly.
    """
    stream = getattr(provider, "stream", None) if listener is not None else None
    pieces = _Pieces(asyncio.get_running_loop())
    task = asyncio.ensure_future(_answer(provider, request, stream, pieces))
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


class _Pieces(Waker):
    """What a stream has yielded and nobody has been told yet."""

    __slots__ = ("waiting",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.waiting: deque[ModelDelta] = deque()

    def put(self, piece: ModelDelta) -> None:
        self.waiting.append(piece)
        self.wake()


async def _finished(
    task: asyncio.Task[ModelResponse],
    stop: asyncio.Future[None],
    pieces: _Pieces,
    listener: Listener | None,
    seconds: float | None,
) -> bool:
    """Wait for the answer, telling its pieces; False if the run is to stop or the time is over."""
    deadline = None if seconds is None else time.monotonic() + seconds
    task.add_done_callback(pieces.wake)
    stop.add_done_callback(pieces.wake)
    try:
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            await pieces.wait(left)
            while pieces.waiting and listener is not None:
                await listener(pieces.waiting.popleft())
            if task.done():
                return True
            if stop.done() or (left is not None and left <= 0):
                return False
    finally:
        stop.remove_done_callback(pieces.wake)


def _look_at(task: asyncio.Task[ModelResponse]) -> None:
    """What an abandoned request raises is nobody's business any more."""
    if not task.cancelled():
        task.exception()


async def _answer(
    provider: Provider, request: ModelRequest, stream: Stream | None, pieces: _Pieces
) -> ModelResponse:
    try:
        if stream is not None:
            answer: Any = await _last(stream(request), pieces)
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
    finally:
        # Sooner than the end of the task, which is told a turn of the loop later.
        pieces.wake()


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
