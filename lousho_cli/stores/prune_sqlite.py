"""Pruning a SQLite store. The room of what is removed is used by what is saved next."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from .lease import Lease, is_running
from .pruning import Compaction, Weight
from .sqlite_database import Database
from .sqlite_reading import ReadOnlyDatabase
from .sqlite_rows import newest_seq, remove_session, size_of


class SqlitePruner:
    """Pruning the sessions of one file."""

    def __init__(self, path: Path) -> None:
        self._reading = ReadOnlyDatabase(path)

    @cached_property
    def _database(self) -> Database:
        return Database(self._reading.path)

    def weigh(self, session_id: str) -> Weight:
        with self._reading.reading() as connection:
            size = size_of(connection, session_id)
            (saves,) = connection.execute(
                "SELECT COUNT(*) FROM checkpoint_history WHERE session_id = ?", (session_id,)
            ).fetchone()
        return Weight(saves, size)

    def is_running(self, session_id: str) -> bool:
        return is_running(self._database.locks, session_id)

    def remove(self, session_id: str, seq: int) -> bool:
        lease = Lease(self._database.locks, session_id)
        try:
            with self._database.writing() as connection:
                if newest_seq(connection, session_id) != seq:
                    return False
                connection.execute("DELETE FROM approvals WHERE session_id = ?", (session_id,))
                remove_session(connection, session_id)
                return True
        finally:
            lease.release()

    def compact(self, session_id: str, *, dry_run: bool) -> Compaction | None:
        return None
