"""The view of a pruning: what is removed, and what was gained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .console import Surface
from .text import escape_line, size

Removed = Sequence[Mapping[str, Any]]


def announce(surface: Surface, removed: Removed, *, each_session: bool) -> None:
    """Say what is going to be removed: `sessionId, agent, status, savedAt, saves, bytes` each."""
    if each_session:
        _sessions(surface, removed)
    surface.line(f"to be removed: {_amount(removed)}")


def show_pruned(surface: Surface, data: Mapping[str, Any], *, each_session: bool, quiet: bool) -> None:
    """Print what was done, or would be.

    Args:
        data: `dryRun`, `removed` as for `announce`, and `compacted`: `sessionId, agent, bytesBefore,
            bytesAfter` each.
        each_session: a line a session.
        quiet: nothing about what there was not to do.
    """
    removed, compacted, would = data["removed"], data["compacted"], "would be " if data["dryRun"] else ""
    if each_session:
        _sessions(surface, removed)
        for each in compacted:
            sizes = f"{size(each['bytesBefore'])} to {size(each['bytesAfter'])}"
            surface.line(f"{escape_line(each['sessionId'])}: journal of {sizes}")
    if removed:
        surface.line(f"{would}removed: {_amount(removed)}")
    if compacted:
        gained = sum(each["bytesBefore"] - each["bytesAfter"] for each in compacted)
        surface.line(f"{would}compacted: {_count(len(compacted), 'journal')}, {size(gained)} less")
    if not removed and not compacted and not quiet:
        surface.line("nothing to remove, nothing to compact")


def _sessions(surface: Surface, removed: Removed) -> None:
    for each in removed:
        whose = f"{escape_line(each['sessionId'])} of {escape_line(each['agent'])}"
        about = f"{each['status']}, last saved {escape_line(each['savedAt'])}"
        surface.line(f"{whose}: {about}, {_weight(each['saves'], each['bytes'])}")


def _amount(removed: Removed) -> str:
    saves, size_in_bytes = (sum(each[key] for each in removed) for key in ("saves", "bytes"))
    return f"{_count(len(removed), 'session')}, {_weight(saves, size_in_bytes)}"


def _weight(saves: int, size_in_bytes: int) -> str:
    return f"{_count(saves, 'save')}, {size(size_in_bytes)}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
