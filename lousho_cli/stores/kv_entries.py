"""The kept saves of one session in a key-value store, while a runner holds it (R3.1, R3.10)."""

from __future__ import annotations

from dataclasses import dataclass

from ..execution.checkpoint import ENGINE_KEY
from ..execution.state import State
from .kv_access import Access
from .kv_keys import Keys
from .kv_lease import taken_over
from .kv_values import (
    Entry,
    decode,
    entry_id,
    entry_text,
    first_own_seq,
    index_text,
    read_entry,
    read_index,
    read_state,
)
from .trail import Save, Trail


@dataclass(frozen=True)
class Stored:
    """What a session's keys say.

    Attributes:
        checkpoint, index: as they are stored, or None.
        state: made of the checkpoint; without one, a session that does not exist (any more).
        ids: of the kept entries, by seq, oldest first.
        foreign: whether another program wrote the checkpoint.
    """

    checkpoint: str | None
    index: str | None
    state: State
    ids: dict[int, str]
    foreign: bool = False

    @property
    def known(self) -> bool:
        """Whether there is such a session, or a history of one."""
        return self.checkpoint is not None or bool(self.ids)

    @property
    def lacks_entry(self) -> bool:
        """Whether a crash came between the newest save's checkpoint and its entry."""
        newest = max(self.ids, default=0)
        return self.checkpoint is not None and not self.foreign and newest < self.state.seq


async def read_stored(access: Access, keys: Keys, session_id: str) -> Stored:
    """A session without its entries.

    Raises:
        StorageError: a value is damaged.
    """
    key, index_key = keys.checkpoint(session_id), keys.index(session_id)
    checkpoint = await access.get(key)
    index = await access.get(index_key)
    ids = read_index(index_key, index)
    newest = max(ids, default=0)
    if checkpoint is None:
        return Stored(None, index, State(session_id, seq=newest, deleted=bool(ids)), ids)
    data = decode(key, checkpoint, dict)
    state = read_state(key, data, session_id, max(newest, 1))
    return Stored(checkpoint, index, state, ids, foreign=ENGINE_KEY not in data)


async def kept_entry(access: Access, keys: Keys, stored: Stored, seq: int) -> Entry | None:
    """The entry of a save; None if it is not in the index, or is missing."""
    session_id = stored.state.session_id
    if session_id is None or seq not in stored.ids:
        return None
    key = keys.entry(session_id, stored.ids[seq])
    text = await access.get(key)
    return None if text is None else read_entry(key, text, session_id, seq)


async def kept_entries(
    access: Access, keys: Keys, stored: Stored, kept: int, limit: int | None = None
) -> list[Entry]:
    """The newest `limit` of the entries that are kept, newest first; one that is missing is skipped."""
    found: list[Entry] = []
    for seq in sorted(stored.ids, reverse=True)[:kept]:
        if limit is not None and len(found) >= limit:
            break
        entry = await kept_entry(access, keys, stored, seq)
        if entry is not None:
            found.append(entry)
    return found


class Entries:
    """The index and the entries of a held session.

    The trail decides which saves share an entry and which are dropped; the states it carries are not used.
    """

    def __init__(self, access: Access, keys: Keys, stored: Stored, limit: int, newest: Entry | None) -> None:
        self._access = access
        self._keys = keys
        self._session_id = str(stored.state.session_id)
        self._ids = stored.ids
        self._index = stored.index
        self._trail = Trail(limit, min([first_own_seq(stored.state), *stored.ids]))
        for seq in stored.ids:
            # A save may share the newest entry only if that is the entry of the checkpoint it goes on from.
            shared = newest is not None and newest.state.seq == seq == stored.state.seq
            kind = newest.event if newest is not None and shared else "save"
            last_step = newest.last_step if newest is not None else 0
            self._trail.add(Save(seq, last_step, "", "", kind, 0), stored.state)

    async def add(self, save: Save, state: State, checkpoint: str) -> None:
        """Write the entry of a save and the index, then delete what it dropped.

        Raises:
            SessionBusyError: another runner wrote the index.
        """
        self._trail.add(save, state)
        saves = list(self._trail.saves())
        ids = {each.seq: self._ids.get(each.seq, entry_id(each.seq)) for each in saves}
        if save.seq in ids:
            key = self._keys.entry(self._session_id, ids[save.seq])
            await self._access.put(key, entry_text(saves[-1], self._trail.last_step, checkpoint))
        if ids == self._ids:
            return
        dropped = [id for seq, id in self._ids.items() if seq not in ids]
        await self._put_index(index_text(list(ids.values())))
        self._ids = ids
        for id in dropped:
            await self._access.delete(self._keys.entry(self._session_id, id))

    async def _put_index(self, text: str) -> None:
        key = self._keys.index(self._session_id)
        if not self._access.atomic:
            await self._access.put(key, text)
        elif not await self._access.swap(key, text, self._index):
            raise taken_over(self._session_id)
        self._index = text
