"""Running a coroutine so that Ctrl-C stops the run at a safe point, and a second one at once (R3.8)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from ..execution.cancel import Cancel
from ..execution.sync import close_loop
from .output import notice

T = TypeVar("T")
STOP_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Interrupted(Exception):
    """A stop signal came before the run had begun."""

    def __init__(self, exit_code: int) -> None:
        super().__init__("interrupted")
        self.exit_code = exit_code


class Interrupts:
    """The stop signals of one run.

    Attributes:
        cancel: the run's stop signal.
        started: set once the run has begun: from then on it is stopped through `cancel`.
        exit_code: 128 and the signal's number, after one came; else None.
        left_running: whether a tool that ignores being cancelled still runs.
    """

    def __init__(self) -> None:
        self.cancel = Cancel()
        self.started = False
        self.exit_code: int | None = None
        self.left_running = False
        self._task: asyncio.Task[Any] | None = None

    def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine to its end.

        Raises:
            Interrupted: a stop signal came before the run had begun.
        """
        loop = asyncio.new_event_loop()
        restore = self._install(loop)
        try:
            task: asyncio.Task[T] = loop.create_task(make())
            self._task = task
            return loop.run_until_complete(task)
        except asyncio.CancelledError:
            raise Interrupted(self.exit_code or 130) from None
        finally:
            restore()
            self.left_running = not close_loop(loop)

    def _install(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        before = {number: signal.getsignal(number) for number in STOP_SIGNALS}

        def handle(number: int, _frame: object = None) -> None:
            loop.call_soon_threadsafe(self._stop, number)
            if self.exit_code is not None:
                exit_at_once(128 + number)
            self.exit_code = 128 + number

        for number in STOP_SIGNALS:
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, handle)

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        return restore

    def _stop(self, number: int) -> None:
        if self.started:
            notice("stopping: saving what is done (Ctrl-C again to exit at once)")
            self.cancel.cancel(signal.Signals(number).name)
        elif self._task is not None:
            self._task.cancel()


def exit_at_once(code: int) -> None:
    """End the process now; what is saved is saved, and the next resume is a crash resume."""
    with suppress(Exception):
        sys.stderr.write("\x1b[?25h" if sys.stderr.isatty() else "")
        sys.stderr.flush()
    os._exit(code)
