"""Running a coroutine from code that is not async, whether or not a loop is running in this thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
LEFTOVER_SECONDS = 0.2

_abandoned: list[asyncio.AbstractEventLoop] = []


def run_sync(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the coroutine to its end and return what it returns.

    Inside a running loop it runs in a thread of its own, and the caller's loop waits meanwhile.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_loop(make)
    outcome: list[T] = []
    problem: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(run_loop(make))
        except BaseException as error:
            problem.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="lousho-sync", daemon=True)
    thread.start()
    thread.join()
    if problem:
        raise problem[0]
    return outcome[0]


def run_loop(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the coroutine in a loop of its own; a tool that ignores being cancelled does not keep it open."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(make())
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt:
        task.cancel()
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        raise
    finally:
        close_loop(loop)


def close_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Close a loop, waiting shortly for what still runs in it; False if something goes on regardless."""
    leftover = asyncio.all_tasks(loop)
    for task in leftover:
        task.cancel()
    if leftover:
        loop.run_until_complete(asyncio.wait(leftover, timeout=LEFTOVER_SECONDS))
    if not all(task.done() for task in leftover):
        # Its tasks cannot be ended, so it is left as it is; kept, so that they are not collected and told of.
        _abandoned.append(loop)
        return False
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    return True
