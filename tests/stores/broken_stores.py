"""Stores that each break one promise, and suites that have to find them out.

Run by `test_contracts_catch.py`; by itself this file is no test.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plain_stores import DiaryCheckpoints, FolderApprovals, FolderCheckpoints

from lousho_cli import (
    ApprovalDecision,
    ApprovalStore,
    Checkpoint,
    CheckpointStore,
    FileStore,
    HistoryEntry,
    MemoryStore,
    PendingApproval,
    StoredApproval,
)
from lousho_cli.execution.session import CheckpointSession, OpenSession, stored_state
from lousho_cli.execution.state import State
from lousho_cli.testing import approval_store_contract, checkpoint_store_contract


class Forgetful(FolderCheckpoints):
    """Loses one field of every checkpoint."""

    field = ""

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        data = checkpoint.model_dump(mode="json", by_alias=True, exclude_none=True)
        data.pop(self.field, None)
        await super().save(session_id, Checkpoint.model_validate(data))


class ForgetsEngine(Forgetful):
    field = "engine"


class ForgetsFingerprint(Forgetful):
    field = "agentFingerprint"


class ForgetsRunConfig(Forgetful):
    field = "runConfig"


class Rewrites(FolderCheckpoints):
    """Changes the text that is stored."""

    def rewrite(self, text: str) -> str:
        raise NotImplementedError

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        await super().save(session_id, checkpoint)
        path = self.path(session_id)
        path.write_bytes(self.rewrite(path.read_text(encoding="utf-8")).encode())


class LosesOddText(Rewrites):
    def rewrite(self, text: str) -> str:
        return text.encode("ascii", "ignore").decode()


class LosesBigNumbers(Rewrites):
    def rewrite(self, text: str) -> str:
        return json.dumps(json.loads(text, parse_int=lambda number: int(float(number))))


class CutsLongText(Rewrites):
    def rewrite(self, text: str) -> str:
        data = json.loads(text)
        for message in data["messages"]:
            message["content"] = message["content"][:65_535]
        return json.dumps(data)


class IgnoresCase(FolderCheckpoints):
    def path(self, session_id: str) -> Path:
        return super().path(session_id.casefold())


class CutsIds(FolderCheckpoints):
    def path(self, session_id: str) -> Path:
        return super().path(session_id[:64])


class Shares(FolderCheckpoints):
    """Keeps the objects it was given, and gives them away."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.kept: dict[str, Checkpoint] = {}

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        self.kept[session_id] = checkpoint

    async def load(self, session_id: str) -> Checkpoint | None:
        return self.kept.get(session_id)


class SavesLate(FolderCheckpoints):
    """Says that it has saved, and does so at the next save."""

    late: tuple[str, Checkpoint] | None = None

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        if self.late is not None:
            await super().save(*self.late)
        self.late = (session_id, checkpoint)


class KeepsInTheProcess(Shares):
    """Is empty when it is opened again."""


class NeverDeletes(FolderCheckpoints):
    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        pass


class LetsTwoRun(FolderCheckpoints):
    """Opens sessions for everybody."""

    async def open_session(self, session_id: str) -> OpenSession:
        found = await self.load(session_id)
        state = State(session_id) if found is None else stored_state(found, session_id)
        return CheckpointSession(self, session_id, state, lambda: None)


class OldestFirst(DiaryCheckpoints):
    async def history(self, session_id: str, *, limit: int | None = None) -> Sequence[HistoryEntry]:
        return list(await super().history(session_id))[::-1][:limit]


class IgnoresLimit(DiaryCheckpoints):
    async def history(self, session_id: str, *, limit: int | None = None) -> Sequence[HistoryEntry]:
        return await super().history(session_id)


class KeepsTooMuch(DiaryCheckpoints):
    def __init__(self, folder: Path, limit: int = 50) -> None:
        super().__init__(folder, limit + 1)


class KeepsDeleted(DiaryCheckpoints):
    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        await super().delete(session_id, keep_history=True)


class ForgetsTheHistory(DiaryCheckpoints):
    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        await super().delete(session_id)


class NoEmptyHistory(DiaryCheckpoints):
    async def history(self, session_id: str, *, limit: int | None = None) -> Sequence[HistoryEntry]:
        self.path(session_id).read_bytes()
        return await super().history(session_id, limit=limit)


class OnlyTheNewestIsWhole(DiaryCheckpoints):
    async def history(self, session_id: str, *, limit: int | None = None) -> Sequence[HistoryEntry]:
        now = await self.load(session_id)
        return [
            entry.model_copy(update={"checkpoint": now})
            for entry in await super().history(session_id, limit=limit)
        ]


class _Folder(checkpoint_store_contract):
    make: Any

    @pytest.fixture
    def store(self, tmp_path: Path) -> CheckpointStore:
        made: CheckpointStore = self.make(tmp_path / "s")
        return made


class _Reopened(_Folder):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], CheckpointStore]:
        return lambda: self.make(tmp_path / "s")

    @pytest.fixture
    def with_limit(self, tmp_path: Path) -> Callable[[int], CheckpointStore]:
        return lambda limit: self.make(tmp_path / "limited", limit)


class TestSound(_Reopened):
    make = DiaryCheckpoints


class TestForgetsEngine(_Folder):
    make = ForgetsEngine


class TestForgetsFingerprint(_Folder):
    make = ForgetsFingerprint


class TestForgetsRunConfig(_Folder):
    make = ForgetsRunConfig


class TestLosesOddText(_Folder):
    make = LosesOddText


class TestLosesBigNumbers(_Folder):
    make = LosesBigNumbers


class TestCutsLongText(_Folder):
    make = CutsLongText


class TestIgnoresCase(_Folder):
    make = IgnoresCase


class TestCutsIds(_Folder):
    make = CutsIds


class TestShares(_Folder):
    make = Shares


class TestSavesLate(_Folder):
    make = SavesLate


class TestKeepsInTheProcess(_Reopened):
    make = KeepsInTheProcess


class TestNeverDeletes(_Folder):
    make = NeverDeletes


class TestLetsTwoRun(_Folder):
    make = LetsTwoRun


class TestOldestFirst(_Reopened):
    make = OldestFirst


class TestIgnoresLimit(_Reopened):
    make = IgnoresLimit


class TestKeepsTooMuch(_Reopened):
    make = KeepsTooMuch


class TestKeepsDeleted(_Reopened):
    make = KeepsDeleted


class TestForgetsTheHistory(_Reopened):
    make = ForgetsTheHistory


class TestNoEmptyHistory(_Reopened):
    make = NoEmptyHistory


class TestOnlyTheNewestIsWhole(_Reopened):
    make = OnlyTheNewestIsWhole


class TestNeverRefusesALateRunner(checkpoint_store_contract):
    """Its lease is lost, and its files are left where the old runner writes."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> CheckpointStore:
        return FileStore(tmp_path / "one").checkpoints

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], CheckpointStore]:
        return lambda: FileStore(tmp_path / "other").checkpoints

    @pytest.fixture
    def lose_lease(self) -> Callable[[str], Awaitable[None]]:
        return lambda session_id: asyncio.sleep(0)


class LastWins(FolderApprovals):
    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        self.path(approval_id, "decision").unlink(missing_ok=True)
        return await super().decide(approval_id, decision)


class LooksThenWrites(FolderApprovals):
    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        stored = await self.get(approval_id)
        if stored is not None and stored.decision is not None:
            return stored
        await asyncio.sleep(0)
        self.path(approval_id, "decision").unlink(missing_ok=True)
        return await super().decide(approval_id, decision)


class ForgetsOtherThreads(FolderApprovals):
    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        stored = await self.get(approval_id)
        if stored is not None and stored.decision is not None:
            return stored
        time.sleep(0.01)  # noqa: ASYNC251
        self.path(approval_id, "decision").unlink(missing_ok=True)
        return await super().decide(approval_id, decision)


class ForgetsTheNote(FolderApprovals):
    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        return await super().decide(approval_id, decision.model_copy(update={"note": None}))


class TakesNoneForNothing(FolderApprovals):
    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        data = decision.model_dump(mode="json", exclude_none=True, exclude_unset=True)
        return await super().decide(approval_id, ApprovalDecision(**data))


class GuessesDecisions(FolderApprovals):
    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        approved = decision.model_copy(update={"approved": True})
        return await super().decide(approval_id, approved)


class DeletesWhatWasUsed(FolderApprovals):
    async def consume(self, approval_id: str) -> None:
        for part in ("request", "decision"):
            self.path(approval_id, part).unlink(missing_ok=True)


class ForgetsTheDecision(FolderApprovals):
    async def save(self, pending: PendingApproval, snapshot: Checkpoint) -> None:
        await super().save(pending, snapshot)
        self.path(pending.id, "decision").unlink(missing_ok=True)


class ListsEverything(FolderApprovals):
    async def list(self, *, status: str | None = "pending") -> Sequence[StoredApproval]:
        return await super().list(status=None)


class ForgetsTheSnapshot(FolderApprovals):
    async def get(self, approval_id: str) -> StoredApproval | None:
        stored = await super().get(approval_id)
        return None if stored is None else replace(stored, snapshot=None)


class DecidesTheUnknown(FolderApprovals):
    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        if await self.get(approval_id) is None:
            pending = PendingApproval(id=approval_id, tool_name="", tool_call_id="")
            await self.save(pending, Checkpoint())
        return await super().decide(approval_id, decision)


class _Approvals(approval_store_contract):
    make: Any

    @pytest.fixture
    def store(self, tmp_path: Path) -> ApprovalStore:
        made: ApprovalStore = self.make(tmp_path / "a")
        return made


class TestSoundApprovals(_Approvals):
    make = FolderApprovals


class TestLastWins(_Approvals):
    make = LastWins


class TestLooksThenWrites(_Approvals):
    make = LooksThenWrites


class TestForgetsOtherThreads(_Approvals):
    make = ForgetsOtherThreads


class TestForgetsTheNote(_Approvals):
    make = ForgetsTheNote


class TestTakesNoneForNothing(_Approvals):
    make = TakesNoneForNothing


class TestGuessesDecisions(_Approvals):
    make = GuessesDecisions


class TestDeletesWhatWasUsed(_Approvals):
    make = DeletesWhatWasUsed


class TestForgetsTheDecision(_Approvals):
    make = ForgetsTheDecision


class TestListsEverything(_Approvals):
    make = ListsEverything


class TestForgetsTheSnapshot(_Approvals):
    make = ForgetsTheSnapshot


class TestDecidesTheUnknown(_Approvals):
    make = DecidesTheUnknown


class TestForgetsWhenReopened(approval_store_contract):
    @pytest.fixture
    def store(self) -> ApprovalStore:
        return MemoryStore().approvals

    @pytest.fixture
    def reopen(self) -> Callable[[], ApprovalStore]:
        return lambda: MemoryStore().approvals
