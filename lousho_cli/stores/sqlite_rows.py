"""The rows of one session: what they say, and what each operation does to them. No transactions."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from ..errors import StorageError
from ..execution.state import Record, State, apply
from .journal import parse_record, record_line
from .sqlite_database import damaged
from .trail import Recent, Save, Trail, save_of


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
        "SELECT seq, first_seq FROM sessions WHERE session_id = ? AND seq > 0", (session_id,)
    ).fetchone()
    if row is None:
        return None
    newest, first = row
    state, recent = State(session_id), Recent(Trail(limit, first), limit)
    lines = connection.execute(
        "SELECT CAST(data AS BLOB) FROM records WHERE session_id = ? ORDER BY seq", (session_id,)
    )
    for (line,) in lines:
        record = parse_record(line)
        if record is None or record.seq != state.seq + 1:
            raise _damaged_record(path, state)
        state = apply(state, record)
        recent.add(record, state)
    if state.seq != newest:
        raise _damaged_record(path, state)
    return StoredSession(state, _kept(connection, session_id, recent.trail(), limit))


def _kept(connection: sqlite3.Connection, session_id: str, trail: Trail, limit: int) -> Trail:
    """The saves of a trail that the history has: a smaller limit may have dropped some, once and for all."""
    rows = connection.execute("SELECT seq FROM checkpoint_history WHERE session_id = ?", (session_id,))
    seqs = {seq for (seq,) in rows}
    kept = Trail(limit, trail.first)
    for save, state in reversed(list(trail.newest_first())):
        if save.seq in seqs:
            kept.add(save, state)
    kept.newest, kept.last_step = trail.newest, trail.last_step
    return kept


def newest_record(connection: sqlite3.Connection, path: Path, session_id: str) -> Record | None:
    """A session's last save alone; None if there is none."""
    row = connection.execute(
        "SELECT CAST(data AS BLOB) FROM records WHERE session_id = ? ORDER BY seq DESC LIMIT 1", (session_id,)
    ).fetchone()
    if row is None:
        return None
    record = parse_record(row[0])
    if record is None:
        raise damaged(path, f"the newest save of session {session_id!r} cannot be read")
    return record


def take(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    """Give the session to a new runner: its row's id and the fencing token. Every older token is void."""
    connection.execute("INSERT INTO sessions (session_id) VALUES (?) ON CONFLICT DO NOTHING", (session_id,))
    connection.execute("UPDATE sessions SET fence = fence + 1 WHERE session_id = ?", (session_id,))
    row_id, fence = connection.execute(
        "SELECT id, fence FROM sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    return row_id, fence


def advance(connection: sqlite3.Connection, row_id: int, before: State, after: State, fence: int) -> bool:
    """Move a session on by one save; False if this runner lost it."""
    approval_id = str(after.approval["id"]) if after.approval else None
    changed = connection.execute(
        "UPDATE sessions SET seq = ?, saved_at = ?, status = ?, approval_id = ?"
        " WHERE id = ? AND fence = ? AND seq = ?",
        (after.seq, after.saved_at, after.status, approval_id, row_id, fence, before.seq),
    )
    return changed.rowcount == 1


def add_record(connection: sqlite3.Connection, session_id: str, record: Record) -> None:
    line = record_line(record).rstrip(b"\n").decode()
    connection.execute("INSERT INTO records VALUES (?, ?, ?)", (session_id, record.seq, line))


def keep_save(
    connection: sqlite3.Connection, session_id: str, limit: int, newest: Save | None, save: Save, state: State
) -> Save | None:
    """Put a save into the history; returns the newest one kept.

    Args:
        limit: how many are kept.
        newest: the newest one kept before.
        state: the session after the save.
    """
    trail = Trail(min(limit, 2))
    if newest is not None:
        trail.add(newest, state)
    trail.add(save, state)
    kept = list(trail.saves())
    if newest is not None and all(each.seq != newest.seq for each in kept):
        connection.execute(
            "DELETE FROM checkpoint_history WHERE session_id = ? AND seq = ?", (session_id, newest.seq)
        )
    if kept and kept[-1].seq == save.seq:
        save = kept[-1]
        connection.execute(
            "INSERT INTO checkpoint_history VALUES (?, ?, ?, ?, ?, ?, ?)",
            (session_id, save.seq, save.step, save.at, save.status, save.kind, save.messages),
        )
    connection.execute(
        "DELETE FROM checkpoint_history WHERE session_id = ? AND seq <="
        " (SELECT seq FROM checkpoint_history WHERE session_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (session_id, session_id, limit),
    )
    return kept[-1] if kept else None


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
    copied = connection.execute(
        "INSERT INTO records SELECT ?, seq, data FROM records WHERE session_id = ? AND seq <= ?",
        (name, source.session_id, source.seq),
    )
    if copied.rowcount != source.seq:
        return False
    # A runner that died before its first save leaves a row without one.
    connection.execute("DELETE FROM sessions WHERE session_id = ? AND seq = 0", (name,))
    connection.execute(
        "INSERT INTO sessions (session_id, fence, first_seq, seq, saved_at, status)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (name, forked.fence, forked.seq, forked.seq, forked.saved_at, forked.status),
    )
    add_record(connection, name, record)
    keep_save(connection, name, limit, None, save_of(record, forked), forked)
    return True


def forget_unsaved(connection: sqlite3.Connection, row_id: int, fence: int) -> None:
    """Remove the row of a session whose only runner never saved."""
    connection.execute("DELETE FROM sessions WHERE id = ? AND fence = ? AND seq = 0", (row_id, fence))


def remove_session(connection: sqlite3.Connection, session_id: str) -> None:
    for table in ("sessions", "records", "checkpoint_history"):
        connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))


def finished_before(connection: sqlite3.Connection, before: str) -> list[str]:
    """The finished sessions, deleted ones with a history included, whose newest save is older."""
    rows = connection.execute(
        "SELECT session_id FROM sessions WHERE status = 'finished' AND seq > 0 AND saved_at < ?"
        " ORDER BY session_id",
        (before,),
    )
    return [session_id for (session_id,) in rows]


def _damaged_record(path: Path, state: State) -> StorageError:
    readable = f"saves up to {state.seq} (step {state.step})" if state.seq else "no saves"
    why = f"save {state.seq + 1} of session {state.session_id!r} cannot be read; {readable} are readable"
    return damaged(path, why)
