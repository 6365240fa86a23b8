"""The tables of a SQLite store, and how a file of an older version gets them.

    sessions            one row a session: its runner's fencing token, and what it is since `seq`
    records             one row a save: only what is new in it, its messages included; never changed
    checkpoint_history  one row a kept save up to that `seq`: its record, and how many messages it saw
    approvals           one row a request, with its snapshot and its decision

A record's `data` is a line of the file store's journal, checksum included, so a session is the fold of its
records here too. A record that rewrites the past says from which message on, so older saves stay readable.

Each table that a save touches costs it a page of 4 KB. So most saves only add a record, whose number is made
of that of its session and its own (`record_id`): the records of a session lie together and need no index. The
row in `sessions` and the history are brought up to date when the session's status changes, and when its run
ends; what they lack after a crash, the records say.

The version of a file is its `user_version`: how many of `MIGRATIONS` it has seen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from ..errors import ConfigurationError, StorageError

APPLICATION_ID = 0x6C6F7573
"""Marks a file as ours, whatever its name (`lous` in ASCII)."""


SEQ_BITS = 32


def record_id(row: int, seq: int) -> int:
    """The number of a save's record.

    Args:
        row: the session's number.
        seq: the save's.
    """
    return row << SEQ_BITS | seq


def sessions_and_approvals(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    # Without AUTOINCREMENT a new session could get the id of a deleted one, and with it its old runners.
    connection.execute(
        """
        CREATE TABLE sessions (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            session_id TEXT NOT NULL UNIQUE,
            fence INTEGER NOT NULL DEFAULT 0,
            first_seq INTEGER NOT NULL DEFAULT 1,
            seq INTEGER NOT NULL DEFAULT 0,
            saved_at TEXT NOT NULL DEFAULT '',
            status TEXT NOT NULL DEFAULT 'finished',
            approval_id TEXT
        )
        """
    )
    connection.execute(
        """
        CREATE TABLE records (
            session_id TEXT NOT NULL,
            seq INTEGER NOT NULL,
            data TEXT NOT NULL,
            PRIMARY KEY (session_id, seq)
        )
        """
    )
    connection.execute(
        """
        CREATE TABLE approvals (
            approval_id TEXT PRIMARY KEY NOT NULL,
            session_id TEXT,
            pending TEXT NOT NULL,
            snapshot TEXT,
            decision TEXT,
            decided_at TEXT,
            consumed_at TEXT
        )
        """
    )


def checkpoint_history(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE checkpoint_history (
            session_id TEXT NOT NULL,
            seq INTEGER NOT NULL,
            step INTEGER NOT NULL,
            saved_at TEXT NOT NULL,
            status TEXT NOT NULL,
            event TEXT NOT NULL,
            messages INTEGER NOT NULL,
            PRIMARY KEY (session_id, seq)
        ) WITHOUT ROWID
        """
    )


def numbered_records(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE records RENAME TO older_records")
    connection.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, data TEXT NOT NULL)")
    connection.execute(
        f"INSERT INTO records SELECT (sessions.id << {SEQ_BITS}) | older_records.seq, data"
        " FROM older_records JOIN sessions USING (session_id) ORDER BY 1"
    )
    connection.execute("DROP TABLE older_records")
    connection.execute("ALTER TABLE sessions ADD COLUMN agent TEXT")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    sessions_and_approvals, checkpoint_history, numbered_records,
)  # fmt: skip
"""Oldest first. Append to it; what is there has run on somebody's file."""

VERSION = len(MIGRATIONS)


def needs_migration(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file lacks tables.

    Raises:
        StorageError: it was written by a newer version.
        ConfigurationError: it is a database of another program.
    """
    version = _pragma(connection, "user_version")
    if version > VERSION:
        raise StorageError(
            f"{path} has version {version}, and this lousho reads up to version {VERSION}",
            code="LOUSHO_CHECKPOINT_VERSION",
            hint="use a newer lousho; the file was not changed",
        )
    empty = version == 0 and not _pragma(connection, "schema_version")
    if not empty and _pragma(connection, "application_id") != APPLICATION_ID:
        raise ConfigurationError(
            f"{path} is a database of another program", hint="give the store a file of its own"
        )
    return version < VERSION or not _has_history(connection)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a file to the present version, inside a transaction."""
    for migration in MIGRATIONS[_pragma(connection, "user_version") :]:
        migration(connection)
    if not _has_history(connection):
        # A history that was dropped is made again like one that never was.
        checkpoint_history(connection)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _has_history(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'checkpoint_history'")
    return found.fetchone() is not None


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
