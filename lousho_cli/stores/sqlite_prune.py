"""Removing old sessions from a SQLite store."""

from __future__ import annotations

from datetime import UTC, datetime

from ..errors import SessionBusyError
from .lease import Lease
from .sqlite_database import Database
from .sqlite_rows import finished_before, remove_session


def prune_before(database: Database, before: datetime) -> list[str]:
    """Remove the finished sessions whose newest save is older than an instant; returns their ids."""
    # Stored instants have this form, so that their order is that of their texts.
    instant = before.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    with database.reading() as connection:
        candidates = finished_before(connection, instant)
    return [session_id for session_id in candidates if _prune(database, session_id, instant)]


def _prune(database: Database, session_id: str, instant: str) -> bool:
    """Remove one session, if nobody runs it and nobody did since it was looked at."""
    try:
        lease = Lease(database.locks, session_id)
    except SessionBusyError:
        return False
    try:
        with database.writing() as connection:
            if session_id not in finished_before(connection, instant):
                return False
            connection.execute("DELETE FROM approvals WHERE session_id = ?", (session_id,))
            remove_session(connection, session_id)
            return True
    finally:
        lease.release()
