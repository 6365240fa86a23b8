"""Threads for sync tools. They are daemons: a tool that never returns cannot keep the process alive."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool did, boxed: some exceptions (StopIteration, CancelledError...) break futures."""

    value: Any = None
    error: BaseException | None = None


class Workers:
    """Runs functions in threads that are reused when idle. Grows as needed, never blocks."""

    def __init__(self) -> None:
        self._idle: list[queue.SimpleQueue[Callable[[], None]]] = []

    def submit(self, function: Callable[[], Any], then: Callable[[], None]) -> asyncio.Future[Outcome]:
        """Run `function` in a thread, in this context; the future never raises by itself.

        Args:
            then: called in the loop as soon as the future is done.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        context = contextvars.copy_context()

        def deliver(outcome: Outcome, inbox: queue.SimpleQueue[Callable[[], None]]) -> None:
            self._idle.append(inbox)
            if not future.done():
                future.set_result(outcome)
                then()

        def job() -> None:
            try:
                outcome = Outcome(context.run(function))
            except BaseException as error:
                outcome = Outcome(error=error)
            # A closed loop means that nobody waits for the outcome any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(deliver, outcome, inbox)

        inbox = self._idle.pop() if self._idle else self._new_worker()
        inbox.put(job)
        return future

    def close(self) -> None:
        """Let idle threads end."""
        while self._idle:
            self._idle.pop().put(_stop)

    def _new_worker(self) -> queue.SimpleQueue[Callable[[], None]]:
        inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=_work, args=(inbox,), name="lousho-tool", daemon=True).start()
        return inbox


class _StopWorker(BaseException):
    pass


def _stop() -> None:
    raise _StopWorker


def _work(inbox: queue.SimpleQueue[Callable[[], None]]) -> None:
    while True:
        try:
            inbox.get()()
        except _StopWorker:
            return
