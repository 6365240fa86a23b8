"""A session of a SQLite store that this process runs: one transaction, and one sync, a save."""

from __future__ import annotations

from contextlib import suppress

from ..errors import SessionBusyError, StorageError
from ..execution.session import stamp
from ..execution.state import Record, State, apply
from .lease import Lease
from .sqlite_database import Database, transaction
from .sqlite_rows import add_record, advance, forget_unsaved, keep_save, read_session, take
from .trail import Save, save_of


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
        self.state = stored.state if stored else State(self._session_id)
        self._newest = next((save for save, _ in stored.trail.newest_first(1)), None) if stored else None

    async def save(self, record: Record) -> State:
        state = apply(self.state, stamp(record, self.state, self.fence))
        with self._database.errors("written"), transaction(self._connection):
            self._check_file()
            if not advance(self._connection, self._row, self.state, state, self.fence):
                raise SessionBusyError(
                    f"session {self._session_id!r} was taken over by another runner; this one stops",
                    hint=f"lousho history {self._session_id} shows what the other one did",
                )
            add_record(self._connection, self._session_id, record)
            newest = self._keep(save_of(record, state), state)
        self.state, self._newest = state, newest
        return state

    def _keep(self, save: Save, state: State) -> Save | None:
        return keep_save(self._connection, self._session_id, self._limit, self._newest, save, state)

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
            if not self.state.seq:
                # What is left is a row that nothing reads.
                with suppress(StorageError), self._database.errors("written"), transaction(self._connection):
                    forget_unsaved(self._connection, self._row, self.fence)
            self._connection.close()
        finally:
            self._lease.release()
