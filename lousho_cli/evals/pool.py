"""Several cases at a time, each result told as it comes, and none begun after a failure if so wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def run_all(
    items: Sequence[T],
    run: Callable[[T], Awaitable[R]],
    *,
    jobs: int,
    on_result: Callable[[R], None],
    is_last: Callable[[R], bool],
) -> list[R]:
    """Run all items, `jobs` at a time.

    Args:
        on_result: told each result when it is there.
        is_last: whether no further item is to be begun; those that run already come to their ends.

    Returns:
        The results in the order of the items, without those that were not begun.

    Raises:
        What the first `run` that failed raised; the others are cancelled.
    """
    waiting = iter(enumerate(items))
    results: dict[int, R] = {}
    ended = False

    async def work() -> None:
        nonlocal ended
        for index, item in waiting:
            result = results[index] = await run(item)
            on_result(result)
            ended = ended or is_last(result)
            if ended:
                return

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(jobs, len(items))):
                group.create_task(work())
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [results[index] for index in sorted(results)]
