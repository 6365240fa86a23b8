"""Trigger points: named places in the engine where a test can stop, delay, raise or kill.

    with watching(die_at("turn.saved")):
        ...

A point is passed right before (`...ing`) or right after (`...ed`) the thing it is named after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import get_args

from .state import RecordKind

SAVES = tuple(
    f"{kind}.{when}"
    for kind in get_args(RecordKind)
    if kind not in ("delete", "base")
    for when in ("saving", "saved")
)
"""Before and after each save of a run or a fork, by the kind of its record."""

POINTS = (
    *SAVES,
    "model.asking",
    "model.answered",
    "call.starting",
    "call.returned",
    "request.saving",
    "request.saved",
    "decision.recording",
    "decision.recorded",
    "decision.noting",
    "decision.noted",
)
"""Every point. A request is what an approval store keeps for a human; a decision is recorded there, taken in
by a save of kind `decision`, and then noted there as used."""

_watchers: list[Callable[[str], None]] = []


def reached(point: str) -> None:
    """The engine passes a point."""
    for watcher in _watchers:
        watcher(point)


@contextmanager
def watching(watcher: Callable[[str], None]) -> Iterator[None]:
    """Call `watcher` with the name of each point that is passed, in every thread, until the block ends."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)
