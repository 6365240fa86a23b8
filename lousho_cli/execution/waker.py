"""Waiting for whichever of several things happens first, without a turn of the loop more than it takes."""

from __future__ import annotations

import asyncio


class Waker:
    """Wakes the one task that waits here each time something happened that it has to look at.

    What happens before somebody waits is not missed. `asyncio.wait` would do, but costs more than a tool.
    """

    __slots__ = ("_is_due", "_loop", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_due = False
        self._waiter: asyncio.Future[None] | None = None

    def wake(self, cause: object = None) -> None:
        """Something happened. `cause` is for futures that call this when they are done."""
        self._is_due = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self, seconds: float | None = None) -> None:
        """Return when something has happened since the last time, or about when the time is over."""
        if not self._is_due:
            self._waiter = self._loop.create_future()
            timer = None if seconds is None else self._loop.call_later(seconds, self.wake)
            try:
                await self._waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        self._is_due = False
