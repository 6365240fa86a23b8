"""A store that lives as long as its process: for tests, and for programs that keep nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import NotFoundError
from ..execution.checkpoint import checkpoint_of, record_of
from ..execution.fork_stores import Forked, ForkSource, MakeRecord, fork_name, name_taken
from ..execution.kept import KeptSaves
from ..execution.protocols import StoredApproval
from ..execution.records import ApprovalDecision, Checkpoint, HistoryEntry, PendingApproval
from ..execution.session import LocalLocks, OpenSession, now, stamp
from ..execution.state import Record, State, apply
from .ids import check_id
from .trail import Save, Trail, save_of


class MemoryStore:
    """Checkpoints and approvals in memory.

    Args:
        history_limit: how many saves of a session are kept; 0 keeps none.
    """

    def __init__(self, history_limit: int = 50) -> None:
        self.checkpoints = MemoryCheckpoints(history_limit)
        self.approvals = MemoryApprovals()


class _Kept:
    """One session's state and kept saves."""

    def __init__(self, session_id: str, limit: int) -> None:
        self.state = State(session_id)
        self.trail = Trail(limit)

    def add(self, record: Record) -> None:
        self.state = apply(self.state, record)
        self.trail.add(save_of(record, self.state), self.state)


class MemoryCheckpoints:
    """The checkpoint store of a MemoryStore."""

    def __init__(self, history_limit: int) -> None:
        self._limit = history_limit
        self._sessions: dict[str, _Kept] = {}
        self._locks = LocalLocks()

    async def open_session(self, session_id: str) -> OpenSession:
        check_id(session_id)
        release = self._locks.take(session_id, session_id)
        return _MemorySession(self, session_id, release)

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        session = await self.open_session(session_id)
        try:
            await session.save(record_of(Checkpoint.of(checkpoint)))
        finally:
            await session.close()

    async def load(self, session_id: str) -> Checkpoint | None:
        kept = self._sessions.get(session_id)
        return checkpoint_of(kept.state) if kept is not None and kept.state.exists else None

    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        kept = self._sessions.get(session_id)
        if kept is None:
            return
        release = self._locks.take(session_id, session_id)
        try:
            if keep_history:
                kept.add(stamp(Record("delete", "finished", 0), kept.state, kept.state.fence))
            else:
                del self._sessions[session_id]
        finally:
            release()

    async def history(self, session_id: str, *, limit: int | None = None) -> Sequence[HistoryEntry]:
        kept = self._sessions.get(session_id)
        return [] if kept is None else [entry_of(*pair) for pair in kept.trail.newest_first(limit)]

    async def kept_saves(self, session_id: str) -> KeptSaves | None:
        kept = self._sessions.get(session_id)
        return None if kept is None else kept.trail.kept_saves()

    async def fork_session(
        self, session_id: str, seq: int, new_session_id: str | None, make: MakeRecord
    ) -> Forked:
        found = self._sessions[session_id].trail.at(seq)
        if found is None:
            raise NotFoundError(f"save {seq} is gone", code="LOUSHO_CHECKPOINT_NOT_FOUND")
        source = found[1]
        name = self._free_name(session_id, new_session_id)
        fork = _Kept(name, self._limit)
        fork.state = source.as_session(name)
        fork.trail.first = source.seq + 1
        fork.add(stamp(make(ForkSource.of(source)), source, source.fence))
        self._sessions[name] = fork
        return Forked.of(fork.state)

    def _free_name(self, session_id: str, wanted: str | None) -> str:
        if wanted is not None:
            if wanted in self._sessions:
                raise name_taken(wanted)
            return wanted
        n = 1
        while fork_name(session_id, n) in self._sessions:
            n += 1
        return fork_name(session_id, n)

    def kept(self, session_id: str) -> _Kept:
        return self._sessions.setdefault(session_id, _Kept(session_id, self._limit))

    def peek(self, session_id: str) -> State:
        kept = self._sessions.get(session_id)
        return kept.state if kept is not None else State(session_id)


class _MemorySession:
    suspends = False

    def __init__(self, store: MemoryCheckpoints, session_id: str, release: Callable[[], None]) -> None:
        self._store = store
        self._session_id = session_id
        self._release = release
        self.state = store.peek(session_id)
        self.fence = self.state.fence + 1

    async def save(self, record: Record) -> State:
        kept = self._store.kept(self._session_id)
        kept.add(stamp(record, self.state, self.fence))
        self.state = kept.state
        return self.state

    async def close(self) -> None:
        self._release()


def entry_of(save: Save, state: State) -> HistoryEntry:
    """The public form of a kept save."""
    return HistoryEntry.model_construct(
        seq=save.seq, step=save.step, saved_at=save.at, status=save.status, checkpoint=checkpoint_of(state)
    )


class MemoryApprovals:
    """The approval store of a MemoryStore."""

    def __init__(self) -> None:
        self._stored: dict[str, StoredApproval] = {}
        self._lock = threading.Lock()

    async def save(self, pending: PendingApproval, snapshot: Checkpoint) -> None:
        with self._lock:
            known = self._stored.get(pending.id, StoredApproval(pending))
            self._stored[pending.id] = replace(known, pending=pending, snapshot=snapshot)

    async def get(self, approval_id: str) -> StoredApproval | None:
        return self._stored.get(approval_id)

    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        with self._lock:
            stored = self._stored.get(approval_id)
            if stored is None:
                raise NotFoundError(f"there is no approval {approval_id!r}", code="LOUSHO_APPROVAL_NOT_FOUND")
            if stored.decision is None:
                stored = self._stored[approval_id] = stored.decided(decision, now())
            return stored

    async def consume(self, approval_id: str) -> None:
        with self._lock:
            stored = self._stored.get(approval_id)
            if stored is not None and stored.decision is not None:
                self._stored[approval_id] = stored.consumed()

    async def list(self, *, status: str | None = "pending") -> Sequence[StoredApproval]:
        with self._lock:
            return [stored for stored in self._stored.values() if status in (None, stored.status)]
