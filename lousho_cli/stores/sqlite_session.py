"""A session of a SQLite store that this process runs: one row, one transaction and one sync a save."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

from ..errors import SessionBusyError, StorageError
from ..execution.session import stamp
from ..execution.state import Record, State, apply
from .lease import Lease
from .sqlite_database import Database, transaction
from .sqlite_rows import add_record, forget_unsaved, listed_saves, note, read_session, take
from .trail import Recent, Trail, save_of

_NOTED_KINDS = frozenset(("pause", "finish", "abort", "delete"))


class SqliteSession:
    """A session held by this process.

    The lock of the operating system keeps other runners out and dies with its holder. The fencing token in
    the session's row refuses a runner that lost the lock without noticing.

    Raises:
        SessionBusyError: another runner holds it.
        StorageError: it cannot be read, or its file cannot be written.
    """

    suspends = False

    state: State
    fence: int

    def __init__(self, database: Database, session_id: str, limit: int) -> None:
        self._database = database
        self._session_id = session_id
        self._limit = limit
        self._lease = Lease(database.locks, session_id)
        try:
            self._connection = database.connect()
            try:
                self._read()
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            self._lease.release()
            raise

    def _read(self) -> None:
        with self._database.errors("read"):
            self._file = self._database.identity()
            # Nobody else writes to a session whose token was just taken, so reading it can do without the
            # transaction that would keep other sessions from saving.
            with transaction(self._connection):
                self._row, self.fence = take(self._connection, self._session_id)
            stored = read_session(self._connection, self._database.path, self._session_id, self._limit)
            self._listed = listed_saves(self._connection, self._session_id)
        self.state = stored.state if stored else State(self._session_id)
        self._recent = Recent(stored.trail if stored else Trail(self._limit), self._limit)
        self._noted = self.state

    async def save(self, record: Record) -> State:
        state = apply(self.state, stamp(record, self.state, self.fence))
        changed = (state.status, state.approval) != (self._noted.status, self._noted.approval)
        with self._database.errors("written"):
            self._check_file()
            if changed or not self._noted.seq or record.kind in _NOTED_KINDS:
                trail = self._recent.trail().copy()
                trail.add(save_of(record, state), state)
                with transaction(self._connection):
                    self._add(record)
                    self._note(state, trail)
                self._recent, self._noted = Recent(trail, self._limit), state
                self._listed = {each.seq for each in trail.saves()}
            else:
                self._add(record)
                self._recent.add(record, state)
        self.state = state
        return state

    def _add(self, record: Record) -> None:
        """Add a record. Outside of a transaction it is one by itself."""
        try:
            added = add_record(self._connection, self._row, self.fence, record)
        except sqlite3.IntegrityError:
            added = False
        if not added:
            raise self._taken_over()

    def _note(self, state: State, trail: Trail) -> None:
        if not note(self._connection, self._row, self.fence, state, trail, self._listed):
            raise self._taken_over()

    def _taken_over(self) -> SessionBusyError:
        return SessionBusyError(
            f"session {self._session_id!r} was taken over by another runner; this one stops",
            hint=f"lousho history {self._session_id} shows what the other one did",
        )

    def _check_file(self) -> None:
        """Refuse to write to a file that was moved away: nobody would find the save.

        Raises:
            StorageError: it was.
        """
        if self._database.identity() != self._file:
            raise StorageError(
                f"{self._database.path} was replaced while session {self._session_id!r} was being run",
                hint="resume, if the file that is there is the right one",
            )

    async def close(self) -> None:
        try:
            # What is left to do here changes nothing that a reader would see: the records say it all.
            if self.state is not self._noted or not self.state.seq:
                with suppress(StorageError, SessionBusyError), self._database.errors("written"):
                    self._check_file()
                    with transaction(self._connection):
                        self._tidy_up()
            self._connection.close()
        finally:
            self._lease.release()

    def _tidy_up(self) -> None:
        if self.state.seq:
            self._note(self.state, self._recent.trail())
        else:
            forget_unsaved(self._connection, self._row, self.fence)
