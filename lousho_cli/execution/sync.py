"""Running a coroutine from code that is not async, whether or not a loop is running in this thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the coroutine to its end and return what it returns.

    Inside a running loop it runs in a thread of its own, and the caller's loop waits meanwhile.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    outcome: list[T] = []
    problem: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(asyncio.run(make()))
        except BaseException as error:
            problem.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="lousho-sync", daemon=True)
    thread.start()
    thread.join()
    if problem:
        raise problem[0]
    return outcome[0]
