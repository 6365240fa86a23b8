"""A SQLite file opened for reading: nothing in it changes, and one that is not there is not made."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from .sqlite_database import BUSY_SECONDS, Database
from .sqlite_schema import migrate, needs_migration

_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


class ReadOnlyDatabase(Database):
    """The file of a SqliteStore for those who only read. One that does not exist reads as empty.

    A file of an older version is brought to the present one before it is read.
    """

    def connect(self) -> sqlite3.Connection:
        if not os.path.lexists(self.path):
            return _empty()
        self._make_file()  # It is there; this refuses links in its place.
        with self.errors("opened"):
            connection = self._open_to_read()
            try:
                behind = needs_migration(connection, self.path)
            except BaseException:
                connection.close()
                raise
            if not behind:
                return connection
            connection.close()
        return super().connect()

    def is_older(self) -> bool:
        """Whether the file would be brought to the present version by being read.

        Raises:
            StorageError: it cannot be opened, is damaged, or is of a newer version.
            ConfigurationError: it is a database of another program.
        """
        with self.errors("opened"), closing(self._open_to_read()) as connection:
            return needs_migration(connection, self.path)

    def _open_to_read(self) -> sqlite3.Connection:
        connection = self._connect("mode=ro")
        try:
            connection.execute("PRAGMA schema_version")
        except sqlite3.Error as error:
            connection.close()
            wal = self.path.with_name(f"{self.path.name}-wal")
            if error.sqlite_errorcode & 0xFF not in _UNWRITABLE or wal.exists():
                raise
            # Where SQLite may put no file beside it, it reads one that nobody writes to.
            return self._connect("mode=ro&immutable=1")
        return connection

    def _connect(self, options: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?{options}", uri=True, timeout=BUSY_SECONDS, isolation_level=None
        )


def _empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    return connection
