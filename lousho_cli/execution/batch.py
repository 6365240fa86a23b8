"""Running one turn's calls: concurrently, each with its own outcome, whatever the tool does (R3.7, R3.8)."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, replace
from typing import Any

from ..errors import PropagatingToolError
from .messages import JsonObject
from .preparation import PreparedCall
from .tools import KnownFailure
from .triggers import reached
from .values import error_result, message_of, to_json_text
from .waker import Waker
from .workers import Outcome, Workers

GRACE_SECONDS = 5.0
MAX_RESULT_CHARS = 64 * 1024 * 1024

_abandoned: set[asyncio.Future[Outcome]] = set()


@dataclass(frozen=True, slots=True)
class Finished:
    """A call that has its result.

    Attributes:
        content: JSON text, what the model will read.
        kind: the error's kind, or None for a result.
        error: the error's message.
        seconds: how long it took.
    """

    call: PreparedCall
    content: str
    kind: str | None = None
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Paused:
    """A call of a sub-agent in which something waits for a human."""

    call: PreparedCall
    approval: JsonObject


@dataclass(frozen=True, slots=True)
class _Running:
    call: PreparedCall
    since: float
    deadline: float | None


def failed(call: PreparedCall, kind: str, message: str, seconds: float = 0.0) -> Finished:
    return Finished(call, error_result(kind, message), kind, message, seconds)


class Batch:
    """The calls of one turn that may start now.

    Args:
        calls: what to run, in call order.
        concurrency: how many at once.
        arguments_of: the keyword arguments of a call, its context included.
        on_start: told before calls start; what it saves is durable before they do.
        on_finish: told what finished; what it saves is durable before anything further starts.
        delegate: runs a sub-agent's call: what came of it, or that it waits inside.
        stop: done when the run is to stop.
        workers: threads for sync tools.
        context_of: the context a call runs in; None where all run in the current one.
    """

    def __init__(
        self,
        calls: Sequence[PreparedCall],
        *,
        concurrency: int,
        arguments_of: Callable[[PreparedCall], dict[str, Any]],
        on_start: Callable[[list[PreparedCall]], Awaitable[None]],
        on_finish: Callable[[list[Finished]], Awaitable[None]],
        delegate: Callable[[PreparedCall], Awaitable[Finished | Paused]],
        stop: asyncio.Future[None],
        workers: Workers,
        context_of: Callable[[str], Context | None] | None = None,
    ) -> None:
        self._context_of = context_of
        self._waiting = deque(calls)
        self._running: dict[asyncio.Future[Outcome], _Running] = {}
        self._concurrency = max(1, concurrency)
        self._arguments_of = arguments_of
        self._on_start = on_start
        self._on_finish = on_finish
        self._delegate = delegate
        self._stop = stop
        self._workers = workers
        self._waker = Waker(asyncio.get_running_loop())
        self._ended_by: BaseException | None = None
        self._unsaved: list[Finished] = []
        self.launched: set[str] = set()
        self.paused: list[Paused] = []

    async def run(self) -> None:
        """Run the calls; return early when the run is to stop, or when `paused` is not empty.

        Raises:
            PropagatingToolError: a tool ended the run; its running siblings have settled. What ends a
                sub-agent's run ends its lead's too.
        """
        self._stop.add_done_callback(self._waker.wake)
        try:
            while not self._stop.done():
                await self._start_more()
                if not self._running:
                    break
                await self._waker.wait(self._next_timeout())
                finished = self._collect()
                if finished:
                    reached("call.returned")
                    await self._finish(finished)
        finally:
            self._stop.remove_done_callback(self._waker.wake)
        if self._ended_by is not None and not self._running:
            raise self._ended_by

    async def settle(self) -> list[Finished]:
        """Wait for what runs, starting nothing more; a stop signal ends the waiting."""
        finished = self._unsaved
        while self._running and not self._stop.done():
            waited: list[asyncio.Future[Any]] = [*self._running, self._stop]
            await asyncio.wait(waited, timeout=self._next_timeout(), return_when=asyncio.FIRST_COMPLETED)
            finished = [*finished, *self._collect()]
        return [*finished, *await self.halt()] if self._running else finished

    async def halt(self) -> list[Finished]:
        """Tell running calls to stop and give them some seconds; every one gets a result."""
        for future in self._running:
            if isinstance(future, asyncio.Task):
                future.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=GRACE_SECONDS)
        finished = [*self._unsaved, *self._collect(stopping=True)]
        for future, running in self._running.items():
            _abandon(future)
            text = "cancelled, but the call ignored the stop: it may have acted"
            finished.append(failed(running.call, "cancelled", text, time.monotonic() - running.since))
        self._running.clear()
        return finished

    async def _start_more(self) -> None:
        """Start waiting calls while there is room; those that cannot run get their results at once."""
        if self._ended_by is not None or self.paused:
            return
        starting: list[PreparedCall] = []
        refused: list[Finished] = []
        while self._waiting and len(self._running) + len(starting) < self._concurrency:
            call = self._waiting.popleft()
            if call.error is not None:
                refused.append(failed(call, *call.error))
            else:
                starting.append(call)
        if starting:
            await self._on_start(starting)
        for call in starting:
            context = None if self._context_of is None else self._context_of(call.id)
            if context is None:
                self._launch(call)
            else:
                context.run(self._launch, call)
        if refused:
            await self._finish(refused)

    async def _finish(self, finished: list[Finished]) -> None:
        """Hand results over; what could not be handed over is not forgotten."""
        self._unsaved = finished
        await self._on_finish(finished)
        self._unsaved = []

    def _launch(self, call: PreparedCall) -> None:
        tool = call.tool
        assert tool is not None
        reached("call.starting")
        future: asyncio.Future[Outcome]
        if tool.delegate is not None:
            future = asyncio.ensure_future(_delegated(self._delegate(call), self._waker))
        elif tool.is_async:
            future = asyncio.ensure_future(_boxed(tool.function, self._arguments_of(call), self._waker))
        else:
            arguments = self._arguments_of(call)
            loop = asyncio.get_running_loop()
            future = self._workers.submit(
                lambda: _in_thread(tool.function, arguments, loop), self._waker.wake
            )
        future.add_done_callback(self._waker.wake)
        now = time.monotonic()
        self.launched.add(call.id)
        self._running[future] = _Running(call, now, None if tool.timeout is None else now + tool.timeout)

    def _next_timeout(self) -> float | None:
        deadlines = [r.deadline for r in self._running.values() if r.deadline is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _collect(self, stopping: bool = False) -> list[Finished]:
        """Take out what is done or has run out of time."""
        finished = []
        now = time.monotonic()
        for future, running in list(self._running.items()):
            if future.done():
                del self._running[future]
                result = self._result_of(running, future, now, stopping)
                if result is not None:
                    finished.append(result)
            elif running.deadline is not None and running.deadline <= now and not stopping:
                del self._running[future]
                _abandon(future)
                assert running.call.tool is not None
                text = f"no result within {running.call.tool.timeout:g} s; the call may have acted"
                finished.append(failed(running.call, "timeout", text, now - running.since))
        return finished

    def _result_of(
        self, running: _Running, future: asyncio.Future[Outcome], now: float, stopping: bool
    ) -> Finished | None:
        seconds = now - running.since
        outcome = Outcome(error=asyncio.CancelledError()) if future.cancelled() else future.result()
        error = outcome.error
        if isinstance(outcome.value, Paused):
            self.paused.append(outcome.value)
            return None
        if isinstance(outcome.value, Finished):
            return replace(outcome.value, seconds=seconds)
        if error is None:
            if len(outcome.value) > MAX_RESULT_CHARS:
                text = f"the result is too large to keep: {len(outcome.value)} characters of JSON"
                return failed(running.call, "tool-error", text, seconds)
            return Finished(running.call, outcome.value, seconds=seconds)
        ends_run = isinstance(error, PropagatingToolError) or running.call.is_delegate
        if ends_run and not stopping:
            self._ended_by = self._ended_by or error
            return None
        if stopping and (ends_run or isinstance(error, asyncio.CancelledError)):
            return failed(running.call, "cancelled", "cancelled while it ran: it may have acted", seconds)
        text = message_of(error)
        if isinstance(error, KnownFailure):
            content = error_result(error.kind, text, error.note)
            return Finished(running.call, content, error.kind, text, seconds)
        name = type(error).__name__
        return failed(running.call, "tool-error", text if text == name else f"{name}: {text}", seconds)


def _in_thread(
    function: Callable[..., Any], arguments: dict[str, Any], loop: asyncio.AbstractEventLoop
) -> str:
    value = function(**arguments)
    if inspect.iscoroutine(value):
        # A sync wrapper around an async function: what it made belongs on the run's loop.
        value = asyncio.run_coroutine_threadsafe(value, loop).result()
    return to_json_text(value)


async def _delegated(run: Awaitable[Finished | Paused], waker: Waker) -> Outcome:
    try:
        return Outcome(await run)
    except BaseException as error:
        return Outcome(error=error)
    finally:
        # Sooner than the end of the task, which is told a turn of the loop later.
        waker.wake()


async def _boxed(function: Callable[..., Any], arguments: dict[str, Any], waker: Waker) -> Outcome:
    try:
        return Outcome(to_json_text(await function(**arguments)))
    except BaseException as error:
        return Outcome(error=error)
    finally:
        waker.wake()


def _abandon(future: asyncio.Future[Outcome]) -> None:
    """Stop waiting for a call. A thread cannot be stopped; a task is told to."""
    if isinstance(future, asyncio.Task):
        future.cancel()
        _abandoned.add(future)
        future.add_done_callback(_abandoned.discard)
