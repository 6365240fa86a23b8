"""Stores as somebody writes them who has read the documentation and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from lousho_cli import (
    UNSET,
    ApprovalDecision,
    Checkpoint,
    HistoryEntry,
    PendingApproval,
    SDKError,
    StoredApproval,
)


def write(path: Path, text: str) -> None:
    new = path.with_name(f"{uuid4()}.new")
    new.write_bytes(text.encode())
    new.replace(path)


class FolderCheckpoints:
    """A JSON file for each session: the three methods, and no more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)

    def path(self, session_id: str) -> Path:
        return self.folder / f"{hashlib.sha256(session_id.encode()).hexdigest()}.json"

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        write(self.path(session_id), checkpoint.model_dump_json(by_alias=True, exclude_none=True))

    async def load(self, session_id: str) -> Checkpoint | None:
        if not self.path(session_id).exists():
            return None
        return Checkpoint.model_validate_json(self.path(session_id).read_bytes())

    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        self.path(session_id).unlink(missing_ok=True)


class DiaryCheckpoints(FolderCheckpoints):
    """A file for each save beside them, so that sessions can be forked."""

    def __init__(self, folder: Path, limit: int = 50) -> None:
        super().__init__(folder)
        self.limit = limit

    def pages(self, session_id: str) -> Path:
        return self.path(session_id).with_suffix("")

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        await super().save(session_id, checkpoint)
        self.pages(session_id).mkdir(exist_ok=True)
        number = max(self.numbers(session_id), default=0) + 1
        page = {
            "seq": number, "step": checkpoint.step_index, "status": checkpoint.status,
            "savedAt": datetime.now(UTC).isoformat(),
            "checkpoint": checkpoint.model_dump(mode="json", by_alias=True, exclude_none=True),
        }  # fmt: skip
        write(self.pages(session_id) / f"{number}.json", json.dumps(page))
        for old in self.numbers(session_id)[self.limit :]:
            (self.pages(session_id) / f"{old}.json").unlink()

    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        await super().delete(session_id)
        if not keep_history:
            for number in self.numbers(session_id):
                (self.pages(session_id) / f"{number}.json").unlink()

    async def history(self, session_id: str, *, limit: int | None = None) -> Sequence[HistoryEntry]:
        return [
            HistoryEntry.model_validate_json((self.pages(session_id) / f"{number}.json").read_bytes())
            for number in self.numbers(session_id)[: self.limit][:limit]
        ]

    def numbers(self, session_id: str) -> list[int]:
        return sorted((int(page.stem) for page in self.pages(session_id).glob("*.json")), reverse=True)


class FolderApprovals:
    """A file for each request, and one for each decision."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)

    def path(self, approval_id: str, part: str) -> Path:
        return self.folder / f"{hashlib.sha256(approval_id.encode()).hexdigest()}.{part}"

    async def save(self, pending: PendingApproval, snapshot: Checkpoint) -> None:
        request = {
            "pending": pending.model_dump(mode="json", by_alias=True, exclude_none=True),
            "snapshot": snapshot.model_dump(mode="json", by_alias=True, exclude_none=True),
        }
        write(self.path(pending.id, "request"), json.dumps(request))

    async def get(self, approval_id: str) -> StoredApproval | None:
        request = self.path(approval_id, "request")
        return self.read(request) if request.exists() else None

    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        request = self.path(approval_id, "request")
        if not request.exists():
            raise SDKError(f"there is no approval {approval_id!r}", code="LOUSHO_APPROVAL_NOT_FOUND")
        fields: dict[str, Any] = decision.model_dump(mode="json", exclude={"result"})
        if decision.result is not UNSET:
            fields["result"] = decision.result
        text = json.dumps({"at": datetime.now(UTC).isoformat(), "decision": fields})
        new = self.folder / f"{uuid4()}.new"
        new.write_text(text, encoding="utf-8")
        with suppress(FileExistsError):
            os.link(new, self.path(approval_id, "decision"))
        new.unlink()
        return self.read(request)

    async def consume(self, approval_id: str) -> None:
        self.path(approval_id, "consumed").touch()

    async def list(self, *, status: str | None = "pending") -> Sequence[StoredApproval]:
        found = [self.read(request) for request in self.folder.glob("*.request")]
        return [stored for stored in found if status in (None, stored.status)]

    def read(self, request: Path) -> StoredApproval:
        data = json.loads(request.read_bytes())
        pending = PendingApproval.model_validate(data["pending"])
        stored = StoredApproval(pending, Checkpoint.model_validate(data["snapshot"]))
        if self.path(pending.id, "decision").exists():
            made = json.loads(self.path(pending.id, "decision").read_bytes())
            stored = stored.decided(ApprovalDecision(**made["decision"]), made["at"])
        return stored.consumed() if self.path(pending.id, "consumed").exists() else stored


class FolderStore:
    """Both parts in one folder."""

    def __init__(self, folder: Path) -> None:
        self.checkpoints = FolderCheckpoints(folder / "sessions")
        self.approvals = FolderApprovals(folder / "approvals")
