"""The view of a workspace's sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .console import Surface
from .history import STATUS_STYLE
from .table import Cell, Column, show_table
from .text import ago, escape_line

_COLUMNS = (
    Column("session"),
    Column("agent"),
    Column("status"),
    Column("step", right=True),
    Column("last save", right=True),
    Column("forked from", wraps=True),
)


def show_sessions(
    surface: Surface, sessions: Sequence[Mapping[str, Any]], now: datetime | None = None
) -> None:
    """Print sessions: `sessionId, agent, status, step, savedAt, parent: {sessionId, seq} | None`.

    In a pipe each session is one line of tab-separated fields: id, agent, status, step, savedAt, parent.
    """
    if not surface.terminal:
        for session in sessions:
            surface.line(*(cell.text for cell in _row(session, None)))
        return
    if not sessions:
        surface.console.print("no sessions yet", style="dim")
        return
    instant = now or datetime.now(UTC)
    show_table(surface, _COLUMNS, [_row(session, instant) for session in sessions])


def _row(session: Mapping[str, Any], now: datetime | None) -> list[Cell]:
    status = str(session.get("status") or "in-progress")
    saved_at = str(session.get("savedAt") or "")
    parent = session.get("parent")
    origin = f"{parent.get('sessionId')}@{parent.get('seq')}" if parent else ""
    return [
        Cell(escape_line(str(session.get("sessionId", ""))), "bold"),
        Cell(escape_line(str(session.get("agent") or ""))),
        Cell(escape_line(status), STATUS_STYLE.get(status, "")),
        Cell(str(session.get("step", ""))),
        Cell(ago(saved_at, now) if now else escape_line(saved_at), "dim"),
        Cell(escape_line(origin), "dim"),
    ]
