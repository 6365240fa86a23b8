"""The rows of one session: what they say, and what each operation does to them. No transactions."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from ..errors import StorageError
from ..execution.state import Record, State, apply
from .garbage import paused
from .journal import parse_record, record_line
from .sqlite_database import damaged
from .sqlite_schema import SEQ_BITS, record_id
from .trail import Recent, Trail, save_of


@dataclass(frozen=True)
class StoredSession:
    """A session as its rows say.

    Attributes:
        state: after its newest save.
        trail: the kept saves with their states.
    """

    state: State
    trail: Trail


def is_stored(connection: sqlite3.Connection, session_id: str) -> bool:
    """Whether the session has ever been saved; a deleted one that kept its history has."""
    found = connection.execute("SELECT 1 FROM sessions WHERE session_id = ? AND seq > 0", (session_id,))
    return found.fetchone() is not None


def read_session(
    connection: sqlite3.Connection, path: Path, session_id: str, limit: int
) -> StoredSession | None:
    """Fold a session's records; None if it was never saved.

    Args:
        path: for error messages.
        limit: how many of its saves to keep in the trail.

    Raises:
        StorageError: a record is damaged or missing.
    """
    row = connection.execute(
        "SELECT id, seq, first_seq FROM sessions WHERE session_id = ? AND seq > 0", (session_id,)
    ).fetchone()
    if row is None:
        return None
    row_id, noted, first = row
    state, recent = State(session_id), Recent(Trail(limit, first), limit)
    with paused():
        for line in connection.execute(f"SELECT CAST(data AS BLOB) {_RECORDS} ORDER BY id", _span(row_id)):
            record = parse_record(line[0])
            if record is None or record.seq != state.seq + 1:
                raise _damaged_record(path, state)
            state = apply(state, record)
            recent.add(record, state)
    if state.seq < noted:
        raise _damaged_record(path, state)
    return StoredSession(state, _kept(connection, session_id, recent.trail(), limit, noted))


_RECORDS = "FROM records WHERE id > ? AND id < ?"
"""The records of one session, given their `_span`."""


def _span(row_id: int) -> tuple[int, int]:
    return record_id(row_id, 0), record_id(row_id + 1, 0)


def _kept(connection: sqlite3.Connection, session_id: str, trail: Trail, limit: int, noted: int) -> Trail:
    """The saves of a trail that the history has: a smaller limit may have dropped some, once and for all.

    Args:
        noted: up to which save the history is kept; later ones are in the trail alone.
    """
    seqs = listed_saves(connection, session_id)
    kept = Trail(limit, trail.first)
    for save, state in reversed(list(trail.newest_first())):
        if save.seq in seqs or save.seq > noted:
            kept.add(save, state)
    kept.newest, kept.last_step = trail.newest, trail.last_step
    return kept


def newest_record(connection: sqlite3.Connection, path: Path, session_id: str) -> Record | None:
    """A session's last save alone; None if there is none."""
    row = connection.execute(
        f"SELECT CAST(data AS BLOB) {_RECORDS} ORDER BY id DESC LIMIT 1", _span_of(connection, session_id)
    ).fetchone()
    if row is None:
        return None
    record = parse_record(row[0])
    if record is None:
        raise damaged(path, f"the newest save of session {session_id!r} cannot be read")
    return record


def read_lines(connection: sqlite3.Connection, session_id: str, where: str, *values: object) -> list[bytes]:
    """The lines of a session's records that fit a condition, the last first."""
    found = connection.execute(
        f"SELECT CAST(data AS BLOB) {_RECORDS} AND {where} ORDER BY id DESC",
        (*_span_of(connection, session_id), *values),
    )
    return [line for (line,) in found]


def newest_seq(connection: sqlite3.Connection, session_id: str) -> int:
    """The number of a session's last save; 0 if there is none."""
    (newest,) = connection.execute(f"SELECT MAX(id) {_RECORDS}", _span_of(connection, session_id)).fetchone()
    return 0 if newest is None else int(newest) % (1 << SEQ_BITS)


def size_of(connection: sqlite3.Connection, session_id: str) -> int:
    """The bytes of a session's records."""
    (size,) = connection.execute(
        f"SELECT TOTAL(LENGTH(CAST(data AS BLOB))) {_RECORDS}", _span_of(connection, session_id)
    ).fetchone()
    return int(size)


def _span_of(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    row = connection.execute("SELECT id FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
    return (0, 0) if row is None else _span(row[0])


def take(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    """Give the session to a new runner: its row's id and the fencing token. Every older token is void."""
    connection.execute("INSERT INTO sessions (session_id) VALUES (?) ON CONFLICT DO NOTHING", (session_id,))
    connection.execute("UPDATE sessions SET fence = fence + 1 WHERE session_id = ?", (session_id,))
    row_id, fence = connection.execute(
        "SELECT id, fence FROM sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    return row_id, fence


def add_record(connection: sqlite3.Connection, row_id: int, fence: int, record: Record) -> bool:
    """Add a save's record; False if this runner lost the session."""
    added = connection.execute(
        "INSERT INTO records SELECT ?, ? FROM sessions WHERE id = ? AND fence = ?",
        (record_id(row_id, record.seq), _text(record), row_id, fence),
    )
    return added.rowcount == 1


def note(
    connection: sqlite3.Connection, row_id: int, fence: int, state: State, trail: Trail, listed: set[int]
) -> bool:
    """Bring a session's row and its history up to date; False if this runner lost it.

    Args:
        trail: the saves to keep.
        listed: those the history has.
    """
    approval_id = str(state.approval["id"]) if state.approval else None
    agent = state.agent if state.exists else None
    noted = connection.execute(
        "UPDATE sessions SET seq = ?, saved_at = ?, status = ?, approval_id = ?, agent = COALESCE(?, agent)"
        " WHERE id = ? AND fence = ?",
        (state.seq, state.saved_at, state.status, approval_id, agent, row_id, fence),
    )
    if noted.rowcount != 1:
        return False
    session_id, kept = state.session_id, list(trail.saves())
    connection.executemany(
        "DELETE FROM checkpoint_history WHERE session_id = ? AND seq = ?",
        [(session_id, seq) for seq in listed - {save.seq for save in kept}],
    )
    connection.executemany(
        "INSERT INTO checkpoint_history VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (session_id, save.seq, save.step, save.at, save.status, save.kind, save.messages)
            for save in kept
            if save.seq not in listed
        ],
    )
    return True


def listed_saves(connection: sqlite3.Connection, session_id: str) -> set[int]:
    """The saves that a session's history has, by seq."""
    rows = connection.execute("SELECT seq FROM checkpoint_history WHERE session_id = ?", (session_id,))
    return {seq for (seq,) in rows}


def write_fork(
    connection: sqlite3.Connection, source: State, forked: State, record: Record, limit: int
) -> bool:
    """Start a session with the records of another up to a save; False if they are gone.

    Args:
        source: the other session after that save.
        forked: the new session after its own first save, `record`.
        limit: how many saves it keeps.
    """
    name = str(forked.session_id)
    # A runner that died before its first save leaves a row without one.
    connection.execute("DELETE FROM sessions WHERE session_id = ? AND seq = 0", (name,))
    connection.execute(
        "INSERT INTO sessions (session_id, fence, first_seq) VALUES (?, ?, ?)",
        (name, forked.fence, forked.seq),
    )
    low, _ = _span_of(connection, name)
    start, _ = _span_of(connection, str(source.session_id))
    copied = connection.execute(
        f"INSERT INTO records SELECT id - ? + ?, data {_RECORDS} ORDER BY id",
        (start, low, start, start + source.seq + 1),
    )
    if copied.rowcount != source.seq:
        return False
    connection.execute("INSERT INTO records VALUES (?, ?)", (low + record.seq, _text(record)))
    trail = Trail(limit, forked.seq)
    trail.add(save_of(record, forked), forked)
    return note(connection, low >> SEQ_BITS, forked.fence, forked, trail, set())


def forget_unsaved(connection: sqlite3.Connection, row_id: int, fence: int) -> None:
    """Remove the row of a session whose only runner never saved."""
    connection.execute("DELETE FROM sessions WHERE id = ? AND fence = ? AND seq = 0", (row_id, fence))


def remove_session(connection: sqlite3.Connection, session_id: str) -> None:
    connection.execute(f"DELETE {_RECORDS}", _span_of(connection, session_id))
    for table in ("sessions", "checkpoint_history"):
        connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))


def finished_before(connection: sqlite3.Connection, before: str) -> list[str]:
    """The finished sessions, deleted ones with a history included, whose newest save is older."""
    rows = connection.execute(
        "SELECT session_id FROM sessions WHERE status = 'finished' AND seq > 0 AND saved_at < ?"
        " ORDER BY session_id",
        (before,),
    )
    return [session_id for (session_id,) in rows]


def _text(record: Record) -> str:
    return record_line(record).rstrip(b"\n").decode()


def _damaged_record(path: Path, state: State) -> StorageError:
    readable = f"saves up to {state.seq} (step {state.step})" if state.seq else "no saves"
    why = f"save {state.seq + 1} of session {state.session_id!r} cannot be read; {readable} are readable"
    return damaged(path, why)
