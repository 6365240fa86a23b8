"""Where saves wait for the disk: in the event loop itself for one session, in threads for several.

A data sync is shorter than a change of threads, so a session that is alone syncs at once. When several are
open in one event loop, none may make the others wait for the disk, and syncs made at once share its work.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

from ..execution.session import log_failure

T = TypeVar("T")

MOST_THREADS = 8
"""More wait for the interpreter, not for the disk."""


class Committers:
    """The threads of one event loop, and how many sessions may need them.

    They are daemons, and end when the last session has left.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._done: deque[_Job] = deque()
        self._waking = False
        self._sessions = 0
        self._threads = 0

    @property
    def is_crowded(self) -> bool:
        """Whether several sessions are open."""
        return self._sessions > 1

    def enter(self) -> None:
        """One session more."""
        self._sessions += 1

    def leave(self) -> None:
        """One session less."""
        self._sessions -= 1
        if self._sessions == 0:
            del _of_loops[self._loop]
            for _ in range(self._threads):
                self._jobs.put(None)

    async def run(self, work: Callable[[], T]) -> T:
        """Do `work` in a thread, to its end: a cancellation is heard after that."""
        if self._threads < min(self._sessions, MOST_THREADS):
            self._threads += 1
            threading.Thread(target=self._serve, name="lousho-save", daemon=True).start()
        job = _Job(work, self._loop.create_future())
        self._jobs.put(job)
        cancelled: asyncio.CancelledError | None = None
        while not job.is_done:
            try:
                await job.told
            except asyncio.CancelledError as error:
                cancelled, job.told = error, self._loop.create_future()
        if cancelled is not None:
            log_failure(job.error)
            raise cancelled
        if job.error is not None:
            raise job.error
        return cast(T, job.result)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job.result = job.work()
            except BaseException as error:
                job.error = error
            self._done.append(job)
            # Whoever finds the flag set knows that the loop has not looked yet.
            if not self._waking:
                self._waking = True
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._waking = False
        while self._done:
            job = self._done.popleft()
            job.is_done = True
            if not job.told.done():
                job.told.set_result(None)


class _Job:
    __slots__ = ("error", "is_done", "result", "told", "work")

    def __init__(self, work: Callable[[], object], told: asyncio.Future[None]) -> None:
        self.work = work
        self.told = told
        self.is_done = False
        self.result: object = None
        self.error: BaseException | None = None


_of_loops: dict[asyncio.AbstractEventLoop, Committers] = {}


def enter_committers() -> Committers:
    """Those of the running event loop, with one session more: `leave` them when it is closed."""
    loop = asyncio.get_running_loop()
    found = _of_loops.get(loop)
    if found is None:
        found = _of_loops[loop] = Committers(loop)
    found.enter()
    return found
