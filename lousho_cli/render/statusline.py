"""One line at the bottom of a terminal that says what is being waited for.

The cursor is never hidden, so a process killed at any instant leaves the terminal as it was.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle

from .console import Surface
from .fit import shorten
from .text import duration

_INTERVAL = 0.1


class StatusLine:
    """A spinner with a label and the seconds since the label was set, redrawn by a thread of its own."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._frames = cycle(surface.mark("spin"))
        self._label = ""
        self._since = 0.0
        self._drawn = False

    def show(self, label: str) -> None:
        """Wait for `label` (one escaped line). Nothing is drawn where the cursor may not be moved."""
        if not self._surface.live or self._ended.is_set():
            return
        with self._lock:
            if label != self._label:
                self._label, self._since = label, time.monotonic()
            self._draw()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="status", daemon=True)
                self._thread.start()

    def clear(self) -> None:
        """Wait for nothing."""
        with self._lock:
            self._label = ""
            self._erase()

    @contextmanager
    def above(self) -> Iterator[None]:
        """While in this context the line is gone and the stream may be written to."""
        with self._lock:
            self._erase()
            yield
            self._draw()

    def close(self) -> None:
        """Erase the line for good. May be called again."""
        self._ended.set()
        with suppress(OSError):
            self.clear()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def _run(self) -> None:
        with suppress(OSError):
            while not self._ended.wait(_INTERVAL):
                with self._lock:
                    self._draw()

    def _draw(self) -> None:
        if not self._label or self._ended.is_set():
            return
        from rich.text import Text

        seconds = time.monotonic() - self._since
        waited = "" if seconds < 1 else f"  {int(seconds)}s" if seconds < 60 else f"  {duration(seconds)}"
        room = self._surface.width - 3 - len(waited)
        text = shorten(self._label, room, self._surface.mark("more"))
        self._erase()
        frame = (f"{next(self._frames)} ", "cyan")
        self._surface.console.print(Text.assemble(frame, text, (waited, "dim")), end="")
        self._drawn = True

    def _erase(self) -> None:
        if not self._drawn:
            return
        from rich.control import Control
        from rich.segment import ControlType

        erase = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
        self._surface.console.control(erase)
        self._drawn = False
