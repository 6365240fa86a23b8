"""Approvals as files: a request anyone may lose, and a decision that is made once (R3.4).

approvals/<id>.json             what is asked: an index for people, rebuilt from the session if it is lost
approvals/<id>~decision.json    what was decided: made exclusively, the truth until it is consumed
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ..errors import NotFoundError
from ..execution.checkpoint import checkpoint_of
from ..execution.messages import JsonObject
from ..execution.protocols import StoredApproval
from ..execution.record import Record
from ..execution.records import ApprovalDecision, Checkpoint, PendingApproval
from ..execution.session import now
from .approvals_reader import (
    damaged_approval,
    decision_data,
    is_legacy,
    pending_here,
    request_data,
)
from .decisions import decision_fields, decision_json, with_decision
from .files import UP_TO_WORKSPACE, create_once, make_folder, path_exists, replace_file
from .folder import AgentFolder
from .journal import json_bytes
from .reader import load_journal, session_summary

VERSION = 1
R = TypeVar("R", bound=Record)


class FileApprovals:
    """The approval store of a FileStore."""

    def __init__(self, folder: AgentFolder) -> None:
        self._folder = folder

    async def save(self, pending: PendingApproval, snapshot: Checkpoint) -> None:
        request = _request(pending)
        if not self._is_stored(snapshot, pending.id):
            request["snapshot"] = snapshot.model_dump(mode="json", by_alias=True, exclude_none=True)
        make_folder(self._folder.approvals, above=UP_TO_WORKSPACE)
        durable = "snapshot" in request
        replace_file(self._folder.request(pending.id), json_bytes(request), durable=durable, whole=True)

    async def get(self, approval_id: str) -> StoredApproval | None:
        request = request_data(self._folder, approval_id)
        if request is None:
            return None
        path = self._folder.request(approval_id)
        snapshot = request.get("snapshot")
        pending = _parse(path, PendingApproval, request["pending"])
        stored = StoredApproval(
            pending,
            lambda: self._snapshot(pending, snapshot),
            runs_later_calls=not is_legacy(snapshot) or "remainingToolCalls" in snapshot,
        )
        decision = decision_data(self._folder, approval_id)
        return stored if decision is None else self._decided(stored, decision)

    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        stored = await self.get(approval_id)
        if stored is None:
            raise NotFoundError(f"there is no approval {approval_id!r}", code="LOUSHO_APPROVAL_NOT_FOUND")
        make_folder(self._folder.approvals, above=UP_TO_WORKSPACE)
        request = self._folder.request(approval_id)
        if not path_exists(request):
            # The runner died before it wrote it. Soon the session no longer says what was decided on.
            replace_file(request, json_bytes(_request(stored.pending)), durable=False, whole=True)
        data = decision_json(decision)
        create_once(self._folder.decision(approval_id), json_bytes(data))
        held = decision_data(self._folder, approval_id)
        assert held is not None
        return self._decided(stored, held)

    async def consume(self, approval_id: str) -> None:
        held = decision_data(self._folder, approval_id)
        if held is not None and "consumedAt" not in held:
            data = json_bytes({**held, "consumedAt": now()})
            replace_file(self._folder.decision(approval_id), data, durable=False, whole=True)

    async def list(self, *, status: str | None = "pending") -> Sequence[StoredApproval]:
        ids = dict.fromkeys([*self._folder.request_ids(), *(p["id"] for p in pending_here(self._folder))])
        found = [await self.get(approval_id) for approval_id in ids]
        return [
            stored
            for stored in found
            if stored is not None
            and status in (None, stored.status)
            and (stored.status != "pending" or self._is_waited_for(stored.pending))
        ]

    def _is_stored(self, snapshot: Checkpoint, approval_id: str) -> bool:
        """Whether the session's own journal holds the pause."""
        return snapshot.session_id is not None and approval_id == self._waits_for(snapshot.session_id)

    def _is_waited_for(self, pending: PendingApproval) -> bool:
        """Whether its session waits for it; a run without a session lives in the request's snapshot."""
        session_id = pending.session_id
        waits_for = self._waits_for(session_id) if session_id is not None else None
        if waits_for is not None:
            return waits_for == pending.id
        return "snapshot" in (request_data(self._folder, pending.id) or {})

    def _waits_for(self, session_id: str) -> str | None:
        found = session_summary(self._folder, session_id)
        if found is None:
            return None
        return str(found.approval["id"]) if found.approval else ""

    def _snapshot(self, pending: PendingApproval, embedded: Any) -> Checkpoint | None:
        if is_legacy(embedded):
            from .legacy import snapshot_checkpoint

            return snapshot_checkpoint(embedded, pending.id)
        if embedded is not None:
            return _parse(self._folder.request(pending.id), Checkpoint, embedded)
        if pending.session_id is None:
            return None
        state = load_journal(self._folder, pending.session_id, 0).state
        return checkpoint_of(state) if state.exists else None

    def _decided(self, stored: StoredApproval, data: JsonObject) -> StoredApproval:
        path = self._folder.decision(stored.pending.id)
        decision = _parse(path, ApprovalDecision, decision_fields(data))
        return with_decision(stored, decision, data)


def _request(pending: PendingApproval) -> JsonObject:
    return {
        "version": VERSION,
        "pending": pending.model_dump(mode="json", by_alias=True, exclude_none=True),
    }


def _parse(path: Path, record: type[R], data: Any) -> R:
    try:
        return record.model_validate(data)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise damaged_approval(path, f"{place}: {problem['msg']}") from error
