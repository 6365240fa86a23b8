"""Python's garbage collector, paused while many objects are made that all stay."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Pauses:
    """How many want it paused; the last one lets it go on, if it ran before the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._resume = False

    def begin(self) -> None:
        with self._lock:
            if not self._count:
                self._resume = gc.isenabled()
                gc.disable()
            self._count += 1

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count and self._resume:
                gc.enable()


_pauses = _Pauses()


@contextmanager
def paused() -> Iterator[None]:
    """Collect no garbage meanwhile. Reading a long session makes hundreds of thousands of objects, and none
    of them is garbage: looking for it would take a third of the time."""
    _pauses.begin()
    try:
        yield
    finally:
        _pauses.end()
