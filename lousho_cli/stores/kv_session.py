"""A session of a key-value store, held by this runner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from ..execution.messages import JsonObject
from ..execution.session import stamp
from ..execution.state import Record, State, apply
from .kv_access import Access
from .kv_entries import Entries, Stored, kept_entry, read_stored
from .kv_hold import Hold
from .kv_keys import Keys
from .kv_lease import taken_over
from .kv_values import checkpoint_text
from .trail import Save, save_of

Announce = Callable[[JsonObject], Awaitable[None]]


class KVSession:
    """Saves write the checkpoint, the entry, the index, and then delete what was dropped.

    With `put_if` each save replaces exactly the checkpoint this runner knows, so that one that was taken over
    is refused before it has written anything.
    """

    suspends = True

    def __init__(
        self, access: Access, keys: Keys, hold: Hold, stored: Stored, entries: Entries, announce: Announce
    ) -> None:
        self.state = stored.state
        self.fence = hold.fence_above(stored.state.fence)
        self._access = access
        self._keys = keys
        self._hold = hold
        self._checkpoint = stored.checkpoint
        self._entries = entries
        self._announce = announce

    @classmethod
    async def open(
        cls, access: Access, keys: Keys, session_id: str, limit: int, announce: Announce
    ) -> KVSession:
        """Take a session and read it; finish the save that a crash cut short.

        Args:
            announce: keeps the request of a pause.

        Raises:
            SessionBusyError: another runner holds it.
            StorageError: it cannot be read.
        """
        hold = await Hold.take(access, keys, session_id)
        try:
            stored = await read_stored(access, keys, session_id)
            newest = await kept_entry(access, keys, stored, max(stored.ids, default=0))
            if not stored.state.exists and newest is not None:
                stored = replace(stored, state=replace(stored.state, fence=newest.state.fence))
            entries = Entries(access, keys, stored, limit, newest)
            session = cls(access, keys, hold, stored, entries, announce)
            await session._finish_last_save(stored)
            return session
        except BaseException:
            await hold.close()
            raise

    async def save(self, record: Record) -> State:
        state = apply(self.state, stamp(record, self.state, self.fence))
        text = checkpoint_text(state)
        await self._hold.check()
        if record.kind == "pause" and state.approval is not None:
            # Before the checkpoint, or a crash would leave a session that waits for what nobody can decide.
            await self._announce(state.approval)
        await self._put_checkpoint(text)
        self.state = state
        await self._entries.add(save_of(record, state), state, text)
        return state

    async def close(self) -> None:
        await self._hold.close()

    async def _put_checkpoint(self, text: str) -> None:
        assert self.state.session_id is not None
        key = self._keys.checkpoint(self.state.session_id)
        if not self._access.atomic:
            await self._access.put(key, text)
        elif not await self._access.swap(key, text, self._checkpoint):
            raise taken_over(self.state.session_id)
        self._checkpoint = text

    async def _finish_last_save(self, stored: Stored) -> None:
        """Write what a crash kept the runner before from writing."""
        state = stored.state
        if stored.lacks_entry and stored.checkpoint is not None:
            save = Save(state.seq, state.step, state.status, state.saved_at, "save", state.message_count)
            await self._entries.add(save, state, stored.checkpoint)
        if state.approval is not None:
            await self._announce({"sessionId": state.session_id, "agent": state.agent, **state.approval})
