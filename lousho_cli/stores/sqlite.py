"""The SQLite store: sessions and approvals of one machine in one file.

See `sqlite_schema` for the tables. A save adds one row that holds only what is new, so its cost does not
depend on the length of the transcript; an entry of the history is a small row that points at a save.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from ..errors import ConfigurationError, NotFoundError
from ..execution.checkpoint import checkpoint_of, record_of
from ..execution.fork_stores import Forked, ForkSource, MakeRecord
from ..execution.kept import KeptSaves
from ..execution.records import Checkpoint, HistoryEntry
from ..execution.session import OpenSession, stamp
from ..execution.state import Record, apply
from .ids import check_id
from .lease import Lease, lease_free_name
from .memory import entry_of
from .sqlite_approvals import SqliteApprovals
from .sqlite_database import Database
from .sqlite_prune import prune_before
from .sqlite_rows import StoredSession, is_stored, read_session, remove_session, write_fork
from .sqlite_session import SqliteSession


class SqliteStore:
    """Checkpoints and approvals in a SQLite database that survives crashes and power cuts.

    Threads and processes of one machine may share the file. Its folder must be on a disk of that machine: the
    locks do not reach over a network. Beside the file lies the folder `<path>.locks`.

    Args:
        path: the file; made, readable by its owner alone, when the store is first used. No link.
        history_limit: how many saves of a session are kept; 0 keeps none.

    Raises:
        ConfigurationError: `path` names no file.
    """

    def __init__(self, path: str | os.PathLike[str], history_limit: int = 50) -> None:
        self._database = Database(path)
        self.checkpoints = SqliteCheckpoints(self._database, history_limit)
        self.approvals = SqliteApprovals(self._database)

    async def prune(self, older_than: timedelta | datetime) -> list[str]:
        """Remove finished sessions, their history and their approvals.

        A session that is unfinished, waits for an approval or is being run stays, however old it is. Of a
        deleted session the history is removed.

        Args:
            older_than: the age of a session's newest save, or an instant with a time zone that it is older
                than. What counts is when it was saved, not the times of the file.

        Returns:
            The ids of the removed sessions.

        Raises:
            ConfigurationError: an instant without a time zone.
            StorageError: the file cannot be written; the sessions not named yet are untouched.
        """
        before = datetime.now(UTC) - older_than if isinstance(older_than, timedelta) else older_than
        if before.tzinfo is None:
            raise ConfigurationError(
                "older_than has no time zone", hint="give an instant with one, such as UTC, or an age"
            )
        return prune_before(self._database, before)


class SqliteCheckpoints:
    """The checkpoint store of a SqliteStore."""

    def __init__(self, database: Database, history_limit: int) -> None:
        self._database = database
        self._limit = history_limit

    async def open_session(self, session_id: str) -> OpenSession:
        return SqliteSession(self._database, session_id, self._limit)

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        session = await self.open_session(session_id)
        try:
            await session.save(record_of(Checkpoint.of(checkpoint)))
        finally:
            await session.close()

    async def load(self, session_id: str) -> Checkpoint | None:
        stored = self._read(session_id, 0)
        return checkpoint_of(stored.state) if stored is not None and stored.state.exists else None

    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        if not self._is_stored(session_id):
            return
        if keep_history:
            session = await self.open_session(session_id)
            try:
                await session.save(Record("delete", "finished", 0))
            finally:
                await session.close()
            return
        lease = Lease(self._database.locks, session_id)
        try:
            with self._database.writing() as connection:
                remove_session(connection, session_id)
        finally:
            lease.release()

    async def history(self, session_id: str, *, limit: int | None = None) -> Sequence[HistoryEntry]:
        stored = self._read(session_id, self._limit)
        return [] if stored is None else [entry_of(*pair) for pair in stored.trail.newest_first(limit)]

    async def kept_saves(self, session_id: str) -> KeptSaves | None:
        stored = self._read(session_id, self._limit)
        return None if stored is None else stored.trail.kept_saves()

    async def fork_session(
        self, session_id: str, seq: int, new_session_id: str | None, make: MakeRecord
    ) -> Forked:
        stored = self._read(session_id, self._limit)
        kept = stored.trail.at(seq) if stored is not None else None
        if kept is None:
            raise _gone(seq)
        source = kept[1]
        record = stamp(make(ForkSource.of(source)), source, source.fence)
        name, lease = lease_free_name(self._database.locks, session_id, new_session_id, self._is_stored)
        try:
            forked = apply(source.as_session(name), record)
            with self._database.writing() as connection:
                if not write_fork(connection, source, forked, record, self._limit):
                    raise _gone(seq)
        finally:
            lease.release()
        return Forked.of(forked)

    def _read(self, session_id: str, limit: int) -> StoredSession | None:
        check_id(session_id)
        with self._database.reading() as connection:
            return read_session(connection, self._database.path, session_id, limit)

    def _is_stored(self, session_id: str) -> bool:
        check_id(session_id)
        with self._database.reading() as connection:
            return is_stored(connection, session_id)


def _gone(seq: int) -> NotFoundError:
    return NotFoundError(f"save {seq} is gone", code="LOUSHO_CHECKPOINT_NOT_FOUND")
