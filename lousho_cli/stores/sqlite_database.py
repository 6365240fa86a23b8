"""A SQLite file that threads and processes share: opening it, transactions, and what its errors mean.

Connections are short-lived: one for each operation, and one that an open session keeps for its saves. So no
thread ever uses another's, and when nobody uses the store all of it is in the one file.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from filelock import FileLock

from ..errors import ConfigurationError, StorageError
from .files import PRIVATE_FILE, create_once, make_folder, storage
from .lease import LockFolder
from .sqlite_schema import migrate, needs_migration

BUSY_SECONDS = 10.0
"""How long a transaction waits for one of another process; each lasts milliseconds."""

_COMPANIONS = ("", "-wal", "-shm", "-journal")
_PERMISSIONS = "check the permissions of the file and its folder, then resume"
_HINTS = {
    sqlite3.SQLITE_FULL: "free some space, then resume",
    sqlite3.SQLITE_BUSY: "another process holds the file for long: let it finish, then resume",
    sqlite3.SQLITE_LOCKED: "another process holds the file for long: let it finish, then resume",
    sqlite3.SQLITE_READONLY: _PERMISSIONS,
    sqlite3.SQLITE_CANTOPEN: _PERMISSIONS,
    sqlite3.SQLITE_PERM: _PERMISSIONS,
    sqlite3.SQLITE_IOERR: "check the disk and its free space, then resume",
}
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Database:
    """The file of a SqliteStore. It is made when it is first used.

    Attributes:
        path: the file; the folder it lies in is resolved, the file itself must not be a link.
        locks: where the lock files of its sessions are: `<path>.locks`.

    Raises:
        ConfigurationError: `path` names no file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        given = Path(path)
        if given.name in ("", ":memory:"):
            raise ConfigurationError(
                f"{str(path)!r} names no file", hint="give the path of a file, or use MemoryStore"
            )
        self.path = Path(os.path.realpath(given.parent)) / given.name
        self.locks = LockFolder(self.path.with_name(f"{given.name}.locks"))

    def connect(self) -> sqlite3.Connection:
        """A connection to a file of the present version. The caller closes it.

        Raises:
            StorageError: the file cannot be opened, is a link, is damaged, or is of a newer version.
            ConfigurationError: it is a database of another program.
        """
        self._make_file()
        with self.errors("opened"):
            # A session is used by one thread at a time, but not always by the one that opened it.
            connection = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        if not needs_migration(connection, self.path):
            return
        make_folder(self.locks.path)
        # `~` begins no session's lock file.
        lock = self.locks.path / "~schema.lock"
        with storage(lock, "locked"), FileLock(lock, timeout=BUSY_SECONDS, mode=PRIVATE_FILE):
            if needs_migration(connection, self.path):
                # Stored in the file. Two processes must not switch to it at the same time.
                connection.execute("PRAGMA journal_mode = WAL")
                with transaction(connection):
                    migrate(connection)

    def _make_file(self) -> None:
        """Refuse links, and make the file with its permissions before SQLite can make it without.

        An existing file must not be opened to look at it: closing it again would drop the locks that SQLite
        holds on it in this process.
        """
        with storage(self.path, "opened"):
            for suffix in _COMPANIONS:
                path = self.path.with_name(self.path.name + suffix)
                try:
                    mode = os.lstat(path).st_mode
                except FileNotFoundError:
                    continue
                if stat.S_ISLNK(mode):
                    raise OSError(errno.ELOOP, f"{path.name} is a link")
                if not stat.S_ISREG(mode):
                    raise OSError(errno.EINVAL, f"{path.name} is not a regular file")
        if not os.path.lexists(self.path):
            make_folder(self.locks.path)
            create_once(self.path, b"")

    def identity(self) -> tuple[int, int]:
        """Which file bears the name: a connection goes on writing to one that was moved away.

        Raises:
            StorageError: none does.
        """
        with storage(self.path, "written"):
            status = os.stat(self.path, follow_symlinks=False)
        return status.st_dev, status.st_ino

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees the file as it was at one instant."""
        with self.errors("read"), closing(self.connect()) as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection with a transaction that is durable when this is left."""
        with self.errors("written"), closing(self.connect()) as connection, transaction(connection):
            yield connection

    @contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Turn a SQLite error into a StorageError that names the file."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._storage_error(doing, error) from error

    def _storage_error(self, doing: str, error: sqlite3.Error) -> StorageError:
        # An error without a code is not SQLite's: what it returned is no text.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in _DAMAGED:
            return damaged(self.path, str(error))
        return StorageError(
            f"{self.path} could not be {doing}: {error}", hint=_HINTS.get(code, "mend it, then resume")
        )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing, and durable once it is left; nobody else writes meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has ended it already after some errors, such as a full disk.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def damaged(path: Path, why: str) -> StorageError:
    return StorageError(
        f"{path} is damaged: {why}",
        code="LOUSHO_SESSION_FILE_CORRUPT",
        hint="restore it from a copy; it was not changed",
    )
