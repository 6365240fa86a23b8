"""The command line's view of a key-value store on a Redis or Valkey server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors import StorageError
from ..execution.kept import KeptSaves, not_kept
from ..execution.messages import JsonObject
from ..execution.state import State
from ..execution.sync import run_sync
from .backend_location import StoreLocation
from .journal import Header
from .kv import KVStore
from .kv_access import Access
from .kv_entries import Stored, kept_entries, kept_entry, read_stored
from .kv_keys import Keys
from .kv_saves import save_of_entry
from .kv_values import Entry, decode, first_own_seq
from .reader import SessionSummary, no_session, unreadable
from .redis_server import RedisServer
from .trail import Save

if TYPE_CHECKING:
    from .backend import Store
    from .findings import Progress, StoreReport
    from .pruning import Pruner

PREFIX = "lousho:"
"""What the keys begin with, so that a database may hold other things too."""

_READ_AT_ONCE = 20


class KVBackend:
    """The sessions of all agents, in one database of a server.

    Raises:
        ConfigurationError: the redis package is not installed, or an option in the URL is wrong.
    """

    def __init__(self, location: StoreLocation, history_limit: int) -> None:
        self._server = RedisServer(location)
        self._access = Access(self._server, None)
        self._keys = Keys(PREFIX)
        self._limit = history_limit
        self._checkpoints = KVStore(self._server, PREFIX, history_limit=history_limit).checkpoints

    def summaries(self) -> Iterator[SessionSummary]:
        yield from run_sync(self._summaries)

    def summary(self, session_id: str) -> SessionSummary | None:
        return run_sync(lambda: self._summary(session_id))

    def owner(self, session_id: str) -> str | None:
        header = self.header(session_id)
        return None if header is None else header.agent

    def header(self, session_id: str) -> Header | None:
        return run_sync(lambda: self._header(session_id))

    def history(self, session_id: str) -> list[Save]:
        return [save_of_entry(entry) for entry in run_sync(lambda: self._entries(session_id))]

    def kept_saves(self, session_id: str) -> KeptSaves:
        return run_sync(lambda: self._checkpoints.kept_saves(session_id)) or KeptSaves(0, ())

    def state(self, session_id: str, seq: int | None = None) -> State:
        if seq is not None:
            entry = run_sync(lambda: self._entry(session_id, seq))
            if entry is None:
                raise not_kept(session_id, self.kept_saves(session_id), at=seq)
            return entry.state
        state = run_sync(lambda: self._read(session_id)).state
        if not state.exists:
            raise no_session(session_id)
        return state

    def undecided(self, pending: JsonObject) -> JsonObject | None:
        return run_sync(lambda: self._undecided(pending))

    def approval_ids(self) -> list[str]:
        key = self._keys.approvals()
        text = run_sync(lambda: self._access.get(key))
        return [] if text is None else [str(each) for each in decode(key, text, list)]

    def approval_agent(self, approval_id: str) -> str:
        pending = run_sync(lambda: self._request(approval_id))
        session_id = pending.get("sessionId")
        if not pending.get("agent") and session_id:
            return self.owner(str(session_id)) or ""
        return str(pending.get("agent") or "")

    def check(self, progress: Progress, only: Sequence[str] | None = None) -> StoreReport:
        from .check_kv import KVCheck

        return run_sync(lambda: KVCheck(self._server, self._access, self._keys).report(progress, only))

    def pruner(self) -> Pruner:
        from .kv_approvals import KVApprovals
        from .prune_kv import KVPruner

        approvals = KVApprovals(self._access, self._keys)
        return KVPruner(self._access, self._keys, self._checkpoints, approvals)

    def store(self) -> Store:
        return KVStore(self._server, PREFIX, history_limit=self._limit)

    async def _read(self, session_id: str) -> Stored:
        return await read_stored(self._access, self._keys, session_id)

    async def _summaries(self) -> list[SessionSummary]:
        keys = await self._server.keys(PREFIX)
        ids = self._keys.sessions(keys)
        found: list[SessionSummary | None] = []
        for start in range(0, len(ids), _READ_AT_ONCE):
            batch = ids[start : start + _READ_AT_ONCE]
            found += await asyncio.gather(*(self._listed(session_id) for session_id in batch))
        return [session for session in found if session is not None]

    async def _listed(self, session_id: str) -> SessionSummary | None:
        try:
            return await self._summary(session_id)
        except StorageError as error:
            if error.code == StorageError.default_code:
                raise
            return unreadable(session_id, "", error)

    async def _summary(self, session_id: str) -> SessionSummary | None:
        state = (await self._read(session_id)).state
        if not state.exists:
            return None
        return SessionSummary(
            session_id, state.agent, state.status, state.step, state.seq, state.saved_at, "",
            _parent(state), state.approval, state.finish_reason,
        )  # fmt: skip

    async def _header(self, session_id: str) -> Header | None:
        stored = await self._read(session_id)
        if stored.state.exists:
            return _header(session_id, stored.state)
        entries = await kept_entries(self._access, self._keys, stored, self._limit, 1)
        return _header(session_id, entries[0].state) if entries else None

    async def _entries(self, session_id: str) -> list[Entry]:
        return await kept_entries(self._access, self._keys, await self._read(session_id), self._limit)

    async def _entry(self, session_id: str, seq: int) -> Entry | None:
        return await kept_entry(self._access, self._keys, await self._read(session_id), seq)

    async def _undecided(self, pending: JsonObject) -> JsonObject | None:
        approval_id = str(pending["id"])
        if await self._access.get(self._keys.decision(approval_id)) is not None:
            return None
        return pending if "digest" in pending else pending | await self._request(approval_id)

    async def _request(self, approval_id: str) -> JsonObject:
        """What is asked, as far as its request says."""
        key = self._keys.request(approval_id)
        text = await self._access.get(key)
        pending = decode(key, text, dict).get("pending") if text is not None else None
        return pending if isinstance(pending, dict) else {}


def _header(session_id: str, state: State) -> Header:
    """When it was made is not stored."""
    return Header(session_id, state.agent, "", _parent(state))


def _parent(state: State) -> JsonObject | None:
    """A fork's parent. A fork's checkpoint that was saved under another name is no fork of this store."""
    return state.parent if first_own_seq(state) > 1 else None
