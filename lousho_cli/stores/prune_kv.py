"""Pruning a key-value store. A save there deletes what it drops, so nothing is left to compact."""

from __future__ import annotations

from collections.abc import Sequence

from ..execution.sync import run_sync
from .kv_access import Access
from .kv_approvals import KVApprovals
from .kv_checkpoints import KVCheckpoints
from .kv_entries import read_stored
from .kv_keys import Keys
from .kv_lease import Note
from .pruning import Compaction, Weight


class KVPruner:
    """Pruning the sessions behind one prefix."""

    def __init__(
        self, access: Access, keys: Keys, checkpoints: KVCheckpoints, approvals: KVApprovals
    ) -> None:
        self._access = access
        self._keys = keys
        self._checkpoints = checkpoints
        self._approvals = approvals
        self._asked: dict[str, Sequence[str]] | None = None

    def weigh(self, session_id: str) -> Weight:
        return run_sync(lambda: self._weigh(session_id))

    async def _weigh(self, session_id: str) -> Weight:
        stored = await read_stored(self._access, self._keys, session_id)
        size = len((stored.checkpoint or "").encode()) + len((stored.index or "").encode())
        for id in stored.ids.values():
            size += len((await self._access.get(self._keys.entry(session_id, id)) or "").encode())
        return Weight(len(stored.ids), size)

    def is_running(self, session_id: str) -> bool:
        key = self._keys.lease(session_id)
        return Note.read(key, run_sync(lambda: self._access.get(key))).live_holder() is not None

    def remove(self, session_id: str, seq: int) -> bool:
        return run_sync(lambda: self._remove(session_id, seq))

    async def _remove(self, session_id: str, seq: int) -> bool:
        if (await read_stored(self._access, self._keys, session_id)).state.seq != seq:
            return False
        await self._checkpoints.delete(session_id)
        if self._asked is None:
            self._asked = await self._approvals.by_session()
        await self._approvals.forget(self._asked.pop(session_id, ()))
        return True

    def compact(self, session_id: str, *, dry_run: bool) -> Compaction | None:
        return None
