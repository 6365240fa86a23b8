"""Waiting for whichever of several things happens first, without a turn of the loop more than it takes."""

from __future__ import annotations

import asyncio


class Waker:
    """Wakes the one task that waits here each time something happened that it has to look at.

    What is done before somebody waits is not missed. `asyncio.wait` would do, but costs more than a tool.
    """

    __slots__ = ("_happened", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._happened: asyncio.Future[None] = loop.create_future()

    def wake(self, cause: object = None) -> None:
        """Something happened. `cause` is for futures that call this when they are done."""
        if not self._happened.done():
            self._happened.set_result(None)

    async def wait(self, seconds: float | None = None) -> None:
        """Return when something has happened since the last time, or about when the time is over."""
        timer = None if seconds is None else self._loop.call_later(seconds, self.wake)
        try:
            await self._happened
        finally:
            if timer is not None:
                timer.cancel()
            self._happened = self._loop.create_future()
