"""Telling a run to stop, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class Cancel:
    """A run's stop signal. Set once, from any thread or signal handler; never unset.

    >>> cancel = Cancel()
    >>> cancel.cancel("enough")
    >>> cancel.is_set(), cancel.reason
    (True, 'enough')
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._set = False
        self._listeners: dict[int, Callable[[], object]] = {}
        self._next = 0
        self.reason: str = ""

    def is_set(self) -> bool:
        return self._set

    def cancel(self, reason: str = "cancelled") -> None:
        """Ask the run to stop. Calls after the first change nothing."""
        with self._lock:
            if self._set:
                return
            self.reason = reason
            self._set = True
            listeners = list(self._listeners.values())
            self._listeners.clear()
        for listener in listeners:
            listener()

    async def wait(self) -> None:
        """Return once the signal is set."""
        import asyncio

        loop = asyncio.get_running_loop()
        event = asyncio.Event()
        forget = self.on_cancel(lambda: wake(loop, event.set))
        try:
            await event.wait()
        finally:
            forget()

    def on_cancel(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener` when the signal is set, at once if it is. Returns a function that forgets it."""
        with self._lock:
            if not self._set:
                key = self._next
                self._next += 1
                self._listeners[key] = listener
                return lambda: self._forget(key)
        listener()
        return lambda: None

    def _forget(self, key: int) -> None:
        with self._lock:
            self._listeners.pop(key, None)


def wake(loop: AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Call back in a loop, from any thread. A loop that was closed meanwhile has nobody left to wake."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)
