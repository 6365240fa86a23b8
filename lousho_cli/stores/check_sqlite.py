"""Checking a SQLite store: the file by SQLite's own means, and its rows against the fold of its records."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import StorageError
from .check_session import NEWER, RESTORE, broken_place
from .findings import Problem, Progress, SessionReport, StoreReport, repair_command
from .repair_files import SetMode, wrong_mode
from .salvage import FOLD_ERRORS
from .sqlite_listing import agent_of
from .sqlite_reading import ReadOnlyDatabase
from .sqlite_rows import StoredSession, read_session
from .sqlite_schema import SEQ_BITS

_MOST_FAULTS = 20


def check_sqlite(
    database: ReadOnlyDatabase, limit: int, progress: Progress, only: Sequence[str] | None
) -> StoreReport:
    """What there is to say about a SQLite store; a file that does not exist yet is a store without sessions.

    Raises:
        StorageError: the file cannot be opened for another reason than damage.
        ConfigurationError: it is a database of another program.
    """
    path = database.path
    if not os.path.lexists(path):
        return StoreReport()
    problems = list(_check_modes(database))
    try:
        if database.is_older():
            older = Problem(
                "older-layout", str(path), "of an older version of lousho; its rows were not checked",
                "nothing to do: the next command that uses it brings it up to date",
            )  # fmt: skip
            return StoreReport((), (*problems, older))
        with database.reading() as connection:
            problems += _check_file(connection, path)
            sessions = tuple(_check_sessions(connection, path, limit, progress, only))
            if only is None:
                problems += _check_strays(connection, path)
                problems += _check_approvals(connection, path)
    except StorageError as error:
        codes = {NEWER: "newer-version", "LOUSHO_SESSION_FILE_CORRUPT": "database-damaged"}
        if error.code not in codes:
            raise
        problems.append(Problem(codes[error.code], str(path), error.message, error.hint))
        return StoreReport((), tuple(problems))
    return StoreReport(sessions, tuple(problems))


def _check_modes(database: ReadOnlyDatabase) -> Iterator[Problem]:
    for suffix in ("", "-wal", "-shm"):
        path = database.path.with_name(database.path.name + suffix)
        wrong = wrong_mode(path)
        if wrong is not None:
            have, right = wrong
            yield Problem(
                "permissions", str(path), f"its permissions are {have:04o}, not {right:04o}",
                f"chmod {right:o} {shlex.quote(str(path))}, or {repair_command()}",
                None, None, SetMode(path),
            )  # fmt: skip


def _check_file(connection: sqlite3.Connection, path: Path) -> Iterator[Problem]:
    faults = [text for (text,) in connection.execute(f"PRAGMA integrity_check({_MOST_FAULTS})")]
    for fault in faults if faults != ["ok"] else ():
        yield Problem("database-damaged", str(path), f"SQLite finds: {fault}", RESTORE)


def _check_sessions(
    connection: sqlite3.Connection, path: Path, limit: int, progress: Progress, only: Sequence[str] | None
) -> Iterator[SessionReport]:
    rows = connection.execute("SELECT session_id FROM sessions WHERE seq > 0 ORDER BY session_id").fetchall()
    ids = [session_id for (session_id,) in rows if only is None or session_id in only]
    progress(0, len(ids))
    for done, session_id in enumerate(ids, 1):
        yield _check_session(connection, path, session_id, limit)
        progress(done, len(ids))


def _check_session(connection: sqlite3.Connection, path: Path, session_id: str, limit: int) -> SessionReport:
    agent = agent_of(connection, session_id) or ""
    where = f"{path}#{session_id}"
    try:
        stored = read_session(connection, path, session_id, limit)
    except (StorageError, *FOLD_ERRORS) as error:
        problem = Problem("database-damaged", where, str(error), RESTORE, session_id, agent)
        return SessionReport(session_id, agent, (problem,), readable=False)
    if stored is None:
        return SessionReport(session_id, agent, exists=False)
    problems = [
        Problem(code, where, message, RESTORE, session_id, agent)
        for code, message in _contradictions(connection, session_id, stored)
    ]
    state = stored.state
    waits_for = str(state.approval["id"]) if state.exists and state.approval else None
    return SessionReport(session_id, agent, tuple(problems), state.exists, waits_for)


def _contradictions(
    connection: sqlite3.Connection, session_id: str, stored: StoredSession
) -> Iterator[tuple[str, str]]:
    """What the rows of a session say that its records do not."""
    state = stored.state
    place = broken_place(state)
    if place is not None:
        yield "pairs-broken", f"calls and results do not pair up: {place}"
    status, approval_id, fence = connection.execute(
        "SELECT status, approval_id, fence FROM sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    waits_for = (state.approval or {}).get("id") if state.exists else None
    if (status, approval_id) != (state.status, waits_for) or fence < state.fence:
        yield "database-damaged", "its row in the table sessions says something else than its records"
    (beyond,) = connection.execute(
        "SELECT COUNT(*) FROM checkpoint_history WHERE session_id = ? AND (seq > ? OR seq < 1)",
        (session_id, state.seq),
    ).fetchone()
    if beyond:
        yield "database-damaged", f"its history names {beyond} saves that it has no records of"


def _check_strays(connection: sqlite3.Connection, path: Path) -> Iterator[Problem]:
    """Rows that belong to no session."""
    known = "(SELECT session_id FROM sessions WHERE seq > 0)"
    rows = connection.execute(
        f"SELECT DISTINCT session_id FROM checkpoint_history WHERE session_id NOT IN {known}"
    ).fetchall()
    for (session_id,) in rows:
        message = f"its history has rows of session {session_id!r}, and the table sessions none"
        yield Problem("database-damaged", str(path), message, RESTORE, session_id)
    (strays,) = connection.execute(
        f"SELECT COUNT(*) FROM records WHERE id >> {SEQ_BITS} NOT IN (SELECT id FROM sessions WHERE seq > 0)"
    ).fetchone()
    if strays and not rows:
        # A record says which session it is of by a number that only the table sessions explains.
        message = f"the table records has {strays} rows of sessions that the table sessions does not have"
        yield Problem("database-damaged", str(path), message, RESTORE)


def _check_approvals(connection: sqlite3.Connection, path: Path) -> Iterator[Problem]:
    rows = connection.execute(
        "SELECT approvals.approval_id, approvals.session_id, pending, snapshot, decision,"
        " COALESCE(sessions.approval_id IS approvals.approval_id, 0)"
        " FROM approvals LEFT JOIN sessions"
        " ON sessions.session_id = approvals.session_id AND sessions.seq > 0"
    )
    for approval_id, session_id, pending, snapshot, decision, waits in rows:
        where = f"{path}#{approval_id}"
        bad = [text for text in (pending, decision) if text is not None and not _is_object(text)]
        if bad:
            yield Problem("approval-damaged", where, "it cannot be read", RESTORE, session_id)
        elif decision is None and snapshot is None and not waits:
            yield Problem(
                "request-orphan", where, "a request that nobody decided, and no session waits for it",
                "nothing to do: it is not listed", session_id,
            )  # fmt: skip


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
