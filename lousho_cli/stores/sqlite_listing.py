"""Sessions of a SQLite store by their first and last records, without folding what lies between."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import StorageError
from ..execution.state import Record
from .journal import Header, parse_record
from .reader import SessionSummary, unreadable
from .sqlite_rows import newest_record, read_lines
from .sqlite_schema import SEQ_BITS

_HEAD = 2000
"""Characters of a record that its agent is surely in, if it names one: it stands before anything long."""


def list_sessions(connection: sqlite3.Connection, path: Path) -> list[SessionSummary]:
    """Every session that is not deleted, by name. One that cannot be read is listed with its problem."""
    rows = connection.execute("SELECT session_id FROM sessions WHERE seq > 0 ORDER BY session_id")
    found = []
    for (session_id,) in rows.fetchall():
        try:
            session = find_session(connection, path, session_id)
        except StorageError as error:
            session = unreadable(session_id, agent_of(connection, session_id) or "", error)
        if session is not None:
            found.append(session)
    return found


def find_session(connection: sqlite3.Connection, path: Path, session_id: str) -> SessionSummary | None:
    """One session; None if there is none, or it was deleted.

    Raises:
        StorageError: its newest save cannot be read.
    """
    header = read_header(connection, session_id)
    newest = newest_record(connection, path, session_id) if header is not None else None
    if header is None or newest is None or newest.kind == "delete":
        return None
    return SessionSummary(
        session_id, header.agent, newest.status, newest.step, newest.seq, newest.at, header.created_at,
        header.parent, newest.approval, newest.finish_reason,
    )  # fmt: skip


def read_header(connection: sqlite3.Connection, session_id: str) -> Header | None:
    """What a journal's first line says: the session's agent, its first save and where it was forked from."""
    agent = agent_of(connection, session_id)
    if agent is None:
        return None
    (first_id,) = connection.execute(
        f"SELECT (id << {SEQ_BITS}) | first_seq FROM sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    first = next(_records(read_lines(connection, session_id, "id = ?", first_id)), None)
    if first is None:
        return Header(session_id, agent, "")
    # A fork's checkpoint that was saved under another name is no fork of this store.
    return Header(session_id, agent, first.at, first.parent if first.kind == "fork" else None)


def agent_of(connection: sqlite3.Connection, session_id: str) -> str | None:
    """The agent of a session; an empty text where its records do not tell, None if it was never saved."""
    row = connection.execute(
        "SELECT agent FROM sessions WHERE session_id = ? AND seq > 0", (session_id,)
    ).fetchone()
    if row is None:
        return None
    if row[0]:
        return str(row[0])
    # The row of an older file does not say.
    lines = read_lines(connection, session_id, "instr(substr(data, 1, ?), ',\"agent\":')", _HEAD)
    return next((record.agent for record in _records(lines) if record.agent is not None), "")


def _records(lines: Iterable[bytes]) -> Iterator[Record]:
    return (record for line in lines if (record := parse_record(line)) is not None)
