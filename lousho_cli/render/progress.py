"""How far a long look has come: a redrawn line on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable

from .console import Surface
from .statusline import StatusLine

_FIRST_AFTER = 0.5
_PLAIN_EVERY = 5.0


class CountedProgress:
    """Counts up to a total. What is over within half a second shows nothing.

    Args:
        what: what is being done: `checking sessions`.
        clock: seconds that only grow.
    """

    def __init__(self, surface: Surface, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._surface = surface
        self._what = what
        self._clock = clock
        self._line = StatusLine(surface)
        self._next = clock() + _FIRST_AFTER

    def show(self, done: int, total: int) -> None:
        """So many are done of so many."""
        now = self._clock()
        if now < self._next:
            return
        text = f"{self._what}: {done} of {total}"
        if self._surface.live:
            self._next = now + 0.1
            self._line.show(text)
        else:
            self._next = now + _PLAIN_EVERY
            self._surface.line(text)

    def close(self) -> None:
        self._line.close()
