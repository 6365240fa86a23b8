"""The command line's view of a SQLite store. Reading changes nothing in the file, and makes none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import StorageError
from ..execution.kept import KeptSaves, not_kept
from ..execution.messages import JsonObject
from ..execution.state import State
from .ids import check_id
from .journal import Header
from .reader import SessionSummary, no_session
from .sqlite_database import damaged
from .sqlite_listing import agent_of, find_session, list_sessions, read_header
from .sqlite_reading import ReadOnlyDatabase
from .sqlite_rows import StoredSession, read_session
from .trail import Save

if TYPE_CHECKING:
    from .backend import Store
    from .findings import Progress, StoreReport
    from .pruning import Pruner


class SqliteBackend:
    """The sessions of all agents, in one file. One that does not exist yet holds none."""

    def __init__(self, path: Path, history_limit: int) -> None:
        self._database = ReadOnlyDatabase(path)
        self._limit = history_limit

    def summaries(self) -> Iterator[SessionSummary]:
        with self._database.reading() as connection:
            found = list_sessions(connection, self._database.path)
        yield from found

    def summary(self, session_id: str) -> SessionSummary | None:
        check_id(session_id)
        with self._database.reading() as connection:
            return find_session(connection, self._database.path, session_id)

    def owner(self, session_id: str) -> str | None:
        check_id(session_id)
        with self._database.reading() as connection:
            return agent_of(connection, session_id)

    def header(self, session_id: str) -> Header | None:
        check_id(session_id)
        with self._database.reading() as connection:
            return read_header(connection, session_id)

    def history(self, session_id: str) -> list[Save]:
        stored = self._read(session_id)
        return [] if stored is None else [save for save, _ in stored.trail.newest_first()]

    def kept_saves(self, session_id: str) -> KeptSaves:
        stored = self._read(session_id)
        return KeptSaves(0, ()) if stored is None else stored.trail.kept_saves()

    def state(self, session_id: str, seq: int | None = None) -> State:
        stored = self._read(session_id)
        if stored is None or (seq is None and not stored.state.exists):
            raise no_session(session_id)
        if seq is None:
            return stored.state
        found = stored.trail.at(seq)
        if found is None:
            raise not_kept(session_id, stored.trail.kept_saves(), at=seq)
        return found[1]

    def undecided(self, pending: JsonObject) -> JsonObject | None:
        row = self._approval(str(pending["id"]))
        if row is None:
            return pending
        request, decision = row
        if decision is not None:
            return None
        return pending if "digest" in pending else pending | self._parse(pending["id"], request)

    def approval_ids(self) -> list[str]:
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT approval_id FROM approvals UNION"
                " SELECT approval_id FROM sessions WHERE approval_id IS NOT NULL"
            )
            return [approval_id for (approval_id,) in rows]

    def approval_agent(self, approval_id: str) -> str:
        row = self._approval(approval_id)
        if row is not None:
            return str(self._parse(approval_id, row[0]).get("agent") or "")
        with self._database.reading() as connection:
            waiting = connection.execute(
                "SELECT session_id FROM sessions WHERE approval_id = ?", (approval_id,)
            ).fetchone()
            return (agent_of(connection, waiting[0]) or "") if waiting is not None else ""

    def check(self, progress: Progress, only: Sequence[str] | None = None) -> StoreReport:
        from .check_sqlite import check_sqlite

        return check_sqlite(self._database, self._limit, progress, only)

    def pruner(self) -> Pruner:
        from .prune_sqlite import SqlitePruner

        return SqlitePruner(self._database.path)

    def store(self) -> Store:
        from .sqlite import SqliteStore

        return SqliteStore(self._database.path, self._limit)

    def _read(self, session_id: str) -> StoredSession | None:
        check_id(session_id)
        with self._database.reading() as connection:
            return read_session(connection, self._database.path, session_id, self._limit)

    def _approval(self, approval_id: str) -> tuple[str, str | None] | None:
        """What is asked and what was decided, as JSON texts."""
        with self._database.reading() as connection:
            row: tuple[str, str | None] | None = connection.execute(
                "SELECT pending, decision FROM approvals WHERE approval_id = ?", (approval_id,)
            ).fetchone()
        return row

    def _parse(self, approval_id: object, text: str) -> dict[str, Any]:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._damaged(approval_id, str(error)) from error
        if not isinstance(data, dict):
            raise self._damaged(approval_id, "not a JSON object")
        return data

    def _damaged(self, approval_id: object, why: str) -> StorageError:
        return damaged(self._database.path, f"approval {approval_id!r}: {why}")
