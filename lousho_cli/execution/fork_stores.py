"""Forking on a store: which saves it keeps, and making a session out of one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast, runtime_checkable

from ..errors import ConfigurationError
from .checkpoint import checkpoint_of
from .kept import KeptSaves
from .protocols import CheckpointStore, KeepsHistory
from .session import stamp, stored_state
from .state import Record, State, apply

MakeRecord = Callable[[State], Record]


@runtime_checkable
class ForksSessions(Protocol):
    """A store that forks by itself, without making checkpoints of every kept save."""

    async def kept_saves(self, session_id: str) -> KeptSaves | None:
        """None if there is no such session."""
        ...

    async def fork_session(
        self, session_id: str, seq: int, new_session_id: str | None, make: MakeRecord
    ) -> State:
        """Start a session from a kept save.

        Args:
            new_session_id: None for the first free `<session_id>.fork-<n>`.
            make: the fork's first own save, from the state it starts from.

        Raises:
            ConfigurationError: the name is taken.
        """
        ...


def fork_name(session_id: str, n: int) -> str:
    return f"{session_id}.fork-{n}"


def name_taken(session_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"session {session_id!r} exists already", hint="choose another name, or leave it out"
    )


def forks_of(store: CheckpointStore) -> ForksSessions:
    """How `store` forks.

    Raises:
        ConfigurationError: it keeps no history.
    """
    if isinstance(store, ForksSessions):
        return store
    if not isinstance(store, KeepsHistory):
        raise ConfigurationError(
            "this checkpoint store keeps no history, and a fork starts from a kept save",
            hint="use one of the stores of lousho_cli, or give your store a history() method",
        )
    return _HistoryForks(store)


class _HistoryForks:
    """Forking over `history`, `load` and `save` of any store."""

    def __init__(self, store: KeepsHistory) -> None:
        self._history = store
        self._store = cast(CheckpointStore, store)

    async def kept_saves(self, session_id: str) -> KeptSaves | None:
        entries = await self._history.history(session_id)
        if not entries and await self._store.load(session_id) is None:
            return None
        saves = tuple((entry.seq, entry.step) for entry in entries)
        return KeptSaves(max((seq for seq, _ in saves), default=0), saves)

    async def fork_session(
        self, session_id: str, seq: int, new_session_id: str | None, make: MakeRecord
    ) -> State:
        entries = await self._history.history(session_id)
        entry = next(entry for entry in entries if entry.seq == seq)
        source = stored_state(entry.checkpoint, session_id)
        name = await self._name(session_id, new_session_id)
        record = make(source)
        state = apply(source.as_session(name), stamp(record, source, source.fence))
        await self._store.save(name, checkpoint_of(state))
        return state

    async def _name(self, session_id: str, wanted: str | None) -> str:
        if wanted is not None:
            if await self._store.load(wanted) is not None:
                raise name_taken(wanted)
            return wanted
        n = 1
        while await self._store.load(fork_name(session_id, n)) is not None:
            n += 1
        return fork_name(session_id, n)
