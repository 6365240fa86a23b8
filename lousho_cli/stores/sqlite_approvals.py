"""Approvals in a SQLite store (R3.4).

A request is an index for people: one that was lost is rebuilt from the session that waits for it. A decision
is made once, by one transaction, and is the truth until it is consumed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from ..errors import NotFoundError
from ..execution.checkpoint import checkpoint_of
from ..execution.messages import JsonObject
from ..execution.protocols import StoredApproval
from ..execution.record import Record as PublicRecord
from ..execution.records import ApprovalDecision, Checkpoint, PendingApproval
from ..execution.session import now
from .decisions import decision_fields, decision_json
from .ids import check_id
from .sqlite_database import Database, damaged
from .sqlite_rows import newest_record, read_session

R = TypeVar("R", bound=PublicRecord)

_REQUESTS = """
    SELECT approvals.approval_id, pending, snapshot, decision, decided_at, consumed_at,
        CASE WHEN sessions.seq > 0 THEN sessions.approval_id IS approvals.approval_id
            ELSE snapshot IS NOT NULL END
    FROM approvals LEFT JOIN sessions USING (session_id)
"""
"""The last column: whether the session waits for it. Of a session kept elsewhere, the snapshot tells."""


class SqliteApprovals:
    """The approval store of a SqliteStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, pending: PendingApproval, snapshot: Checkpoint) -> None:
        check_id(pending.id, "approval")
        with self._database.writing() as connection:
            waits = connection.execute(
                "SELECT 1 FROM sessions WHERE session_id = ? AND approval_id = ?",
                (pending.session_id, pending.id),
            ).fetchone()
            # The session's own records hold the checkpoint already.
            text = None if waits else _text(_dump(snapshot))
            connection.execute(
                "INSERT INTO approvals (approval_id, session_id, pending, snapshot) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (approval_id) DO UPDATE SET session_id = excluded.session_id,"
                " pending = excluded.pending, snapshot = excluded.snapshot",
                (pending.id, pending.session_id, _text(_dump(pending)), text),
            )

    async def get(self, approval_id: str) -> StoredApproval | None:
        check_id(approval_id, "approval")
        with self._database.reading() as connection:
            return self._find(connection, approval_id)

    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        check_id(approval_id, "approval")
        with self._database.writing() as connection:
            stored = self._find(connection, approval_id)
            if stored is None:
                raise NotFoundError(f"there is no approval {approval_id!r}", code="LOUSHO_APPROVAL_NOT_FOUND")
            if stored.decision is not None:
                return stored
            pending, at = stored.pending, now()
            connection.execute(
                "INSERT INTO approvals (approval_id, session_id, pending) VALUES (?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (approval_id, pending.session_id, _text(_dump(pending))),
            )
            connection.execute(
                "UPDATE approvals SET decision = ?, decided_at = ? WHERE approval_id = ?",
                (_text(decision_json(decision)), at, approval_id),
            )
        return stored.decided(decision, at)

    async def consume(self, approval_id: str) -> None:
        check_id(approval_id, "approval")
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE approvals SET consumed_at = ?"
                " WHERE approval_id = ? AND decision IS NOT NULL AND consumed_at IS NULL",
                (now(), approval_id),
            )

    async def list(self, *, status: str | None = "pending") -> Sequence[StoredApproval]:
        with self._database.reading() as connection:
            rows = connection.execute(_REQUESTS).fetchall()
            known = {row[0] for row in rows}
            found = [stored for row in rows if (stored := self._stored(row)).status != "pending" or row[-1]]
            waited_for = connection.execute("SELECT approval_id FROM sessions WHERE approval_id IS NOT NULL")
            lost = [self._rebuilt(connection, each) for (each,) in waited_for.fetchall() if each not in known]
        found += [stored for stored in lost if stored is not None]
        found.sort(key=lambda stored: (stored.pending.created_at, stored.pending.id))
        return [stored for stored in found if status in (None, stored.status)]

    def _find(self, connection: sqlite3.Connection, approval_id: str) -> StoredApproval | None:
        row = connection.execute(f"{_REQUESTS} WHERE approvals.approval_id = ?", (approval_id,)).fetchone()
        return self._rebuilt(connection, approval_id) if row is None else self._stored(row)

    def _stored(self, row: tuple[Any, ...]) -> StoredApproval:
        approval_id, pending_text, snapshot, decision_text, decided_at, consumed_at, _ = row
        pending = self._parse(PendingApproval, approval_id, pending_text)
        stored = StoredApproval(pending, lambda: self._snapshot(pending, snapshot))
        if decision_text is None:
            return stored
        decision = self._parse(ApprovalDecision, approval_id, decision_text, decision_fields)
        stored = stored.decided(decision, decided_at)
        return stored if consumed_at is None else stored.consumed()

    def _rebuilt(self, connection: sqlite3.Connection, approval_id: str) -> StoredApproval | None:
        """The request of a session that waits for it, from the session's own last save."""
        row = connection.execute(
            "SELECT session_id FROM sessions WHERE approval_id = ?", (approval_id,)
        ).fetchone()
        record = None if row is None else newest_record(connection, self._database.path, row[0])
        if record is None or record.approval is None:
            return None
        asked = _text({"sessionId": row[0], **record.approval})
        pending = self._parse(PendingApproval, approval_id, asked)
        return StoredApproval(pending, lambda: self._snapshot(pending, None))

    def _snapshot(self, pending: PendingApproval, text: str | None) -> Checkpoint | None:
        if text is not None:
            return self._parse(Checkpoint, pending.id, text)
        if pending.session_id is None:
            return None
        with self._database.reading() as connection:
            stored = read_session(connection, self._database.path, pending.session_id, 0)
        return checkpoint_of(stored.state) if stored is not None and stored.state.exists else None

    def _parse(
        self,
        record: type[R],
        approval_id: str,
        text: str,
        of: Callable[[JsonObject], JsonObject] = dict,
    ) -> R:
        try:
            return record.model_validate(of(json.loads(text)))
        except (ValueError, TypeError, RecursionError) as error:
            why = str(error).splitlines()[0]
            if isinstance(error, ValidationError):
                problem = error.errors()[0]
                why = f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
            raise damaged(self._database.path, f"approval {approval_id!r}: {why}") from error


def _dump(record: PublicRecord) -> JsonObject:
    return record.model_dump(mode="json", by_alias=True, exclude_none=True)


def _text(data: JsonObject) -> str:
    return json.dumps(data, allow_nan=False)
