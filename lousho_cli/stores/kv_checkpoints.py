"""The checkpoint store of a KVStore."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import NotFoundError, SessionBusyError
from ..execution.checkpoint import checkpoint_of, record_of
from ..execution.fork_stores import Forked, ForkSource, MakeRecord, fork_name, name_taken
from ..execution.kept import KeptSaves
from ..execution.records import Checkpoint, HistoryEntry
from ..execution.session import OpenSession
from ..execution.state import State
from .ids import check_id
from .kv_access import Access
from .kv_entries import Entries, Stored, kept_entries, kept_entry, read_stored
from .kv_hold import Hold
from .kv_keys import Keys
from .kv_session import Announce, KVSession
from .kv_values import Entry, first_own_seq


class KVCheckpoints:
    """Sessions in a key-value store.

    Args:
        limit: how many saves of a session are kept.
        announce: keeps the request of a pause.
    """

    def __init__(self, access: Access, keys: Keys, limit: int, announce: Announce) -> None:
        self._access = access
        self._keys = keys
        self._limit = limit
        self._announce = announce

    async def open_session(self, session_id: str) -> OpenSession:
        check_id(session_id)
        return await KVSession.open(self._access, self._keys, session_id, self._limit, self._announce)

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        session = await self.open_session(session_id)
        try:
            await session.save(record_of(Checkpoint.of(checkpoint)))
        finally:
            await session.close()

    async def load(self, session_id: str) -> Checkpoint | None:
        state = (await self._read(session_id)).state
        return checkpoint_of(state) if state.exists else None

    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        if not (await self._read(session_id)).known:
            return
        hold = await Hold.take(self._access, self._keys, session_id)
        gone = False
        try:
            stored = await self._read(session_id)
            await hold.check()
            await self._access.delete(self._keys.checkpoint(session_id))
            if not keep_history:
                # The index goes last: as long as it is there, deleting again finds the entries.
                for id in stored.ids.values():
                    await self._access.delete(self._keys.entry(session_id, id))
                await self._access.delete(self._keys.index(session_id))
                gone = True
        finally:
            await hold.close(gone=gone)

    async def history(self, session_id: str, *, limit: int | None = None) -> Sequence[HistoryEntry]:
        stored = await self._read(session_id)
        return [entry.public() for entry in await self._entries(stored, limit)]

    async def kept_saves(self, session_id: str) -> KeptSaves | None:
        stored = await self._read(session_id)
        if not stored.known:
            return None
        entries = await self._entries(stored)
        state = stored.state if stored.state.exists or not entries else entries[0].state
        return KeptSaves(
            stored.state.seq,
            tuple((entry.state.seq, entry.step) for entry in entries),
            first_own_seq(state),
            max(entries[0].last_step if entries else 0, state.step),
        )

    async def fork_session(
        self, session_id: str, seq: int, new_session_id: str | None, make: MakeRecord
    ) -> Forked:
        source = await self._state_at(session_id, seq)
        name, hold = await self._free_name(session_id, new_session_id)
        fork = Stored(None, None, source.as_session(name), {})
        history = Entries(self._access, self._keys, fork, self._limit, None)
        session = KVSession(self._access, self._keys, hold, fork, history, self._announce)
        try:
            return Forked.of(await session.save(make(ForkSource.of(source))))
        finally:
            await session.close()

    async def _free_name(self, session_id: str, wanted: str | None) -> tuple[str, Hold]:
        """A name no session has, held until the fork is written."""
        n = 0
        while True:
            n += 1
            name = wanted if wanted is not None else fork_name(session_id, n)
            if not (await self._read(name)).known:
                try:
                    hold = await Hold.take(self._access, self._keys, name)
                except SessionBusyError:
                    if wanted is not None:
                        raise
                    continue
                if not (await self._read(name)).known:
                    return name, hold
                await hold.close()
            if wanted is not None:
                raise name_taken(wanted)

    async def _read(self, session_id: str) -> Stored:
        return await read_stored(self._access, self._keys, session_id)

    async def _state_at(self, session_id: str, seq: int) -> State:
        entry = await kept_entry(self._access, self._keys, await self._read(session_id), seq)
        if entry is None:
            raise NotFoundError(f"save {seq} is gone", code="LOUSHO_CHECKPOINT_NOT_FOUND")
        return entry.state

    async def _entries(self, stored: Stored, limit: int | None = None) -> list[Entry]:
        return await kept_entries(self._access, self._keys, stored, self._limit, limit)
