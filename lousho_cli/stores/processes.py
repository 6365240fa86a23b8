"""Sharing work out to several processes, for what only reads."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def shared_out(work: Callable[[T], R], items: Sequence[T], processes: int) -> Generator[R, None, None]:
    """`work(item)` for each item, in the order in which they are done.

    What a process leaves undone, because it cannot be started, fails or is killed, is done in this one. None
    outlives this process, nor this iterator.

    Args:
        work: a function of a module; its items and results can be pickled.
    """
    started: list[BaseProcess] = []
    receivers: list[Connection[Any, Any]] = []
    undone = dict(enumerate(items))
    try:
        with suppress(OSError), _inherit_no_interrupts():
            for number in range(processes):
                share = list(undone.items())[number::processes]
                receivers.append(_start(work, share, started))
        while receivers:
            for receiver in wait(receivers):
                assert isinstance(receiver, Connection)
                try:
                    index, result = receiver.recv()
                except (EOFError, OSError):
                    receivers.remove(receiver)
                    receiver.close()
                    continue
                del undone[index]
                yield result
        for item in undone.values():
            yield work(item)
    finally:
        for receiver in receivers:
            receiver.close()
        for process in started:
            process.terminate()
            process.join()


def _start(
    work: Callable[[T], R], share: list[tuple[int, T]], started: list[BaseProcess]
) -> Connection[Any, Any]:
    # A forked child would inherit the locks of threads it does not have.
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_do, args=(work, share, sender), daemon=True)
    process.start()
    started.append(process)
    sender.close()
    return receiver


def _do(work: Callable[[T], R], share: list[tuple[int, T]], sender: Connection[Any, Any]) -> None:
    """In the other process. What fails is left to the first one, which reports it."""
    with suppress(Exception):
        for index, item in share:
            sender.send((index, work(item)))


@contextmanager
def _inherit_no_interrupts() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal: children ignore it, the first one answers it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
