"""Forking on a store: which saves it keeps, and making a session out of one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from ..errors import ConfigurationError, NotFoundError
from .checkpoint import checkpoint_of
from .kept import KeptSaves, choose_save
from .protocols import CheckpointStore, KeepsHistory
from .session import stamp, stored_state
from .state import Record, State, apply
from .triggers import reached


@dataclass(frozen=True, slots=True)
class ForkSource:
    """The save that a fork starts from.

    Attributes:
        session_id, seq, step, fence: of the save.
        read: the whole session after it; long, where a store has to read its transcript first.
    """

    session_id: str
    seq: int
    step: int
    fence: int
    read: Callable[[], State]

    @classmethod
    def of(cls, state: State) -> ForkSource:
        return cls(str(state.session_id), state.seq, state.step, state.fence, lambda: state)


@dataclass(frozen=True, slots=True)
class Forked:
    """A session that was forked from another.

    Attributes:
        session_id: its name.
        step: of the save it starts from.
        read: the session as it was then, its first own save included.
    """

    session_id: str
    step: int
    read: Callable[[], State]

    @classmethod
    def of(cls, state: State) -> Forked:
        return cls(str(state.session_id), state.step, lambda: state)


MakeRecord = Callable[[ForkSource], Record]


@runtime_checkable
class ForksSessions(Protocol):
    """A store that forks by itself, without making checkpoints of every kept save."""

    async def kept_saves(self, session_id: str) -> KeptSaves | None:
        """None if there is no such session."""
        ...

    async def fork_session(
        self, session_id: str, seq: int, new_session_id: str | None, make: MakeRecord
    ) -> Forked:
        """Start a session from a kept save.

        Args:
            new_session_id: None for the first free `<session_id>.fork-<n>`.
            make: the fork's first own save, from the save it starts from.

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


async def fork_session(
    store: CheckpointStore,
    session_id: str,
    from_step: int | None,
    at: int | None,
    new_session_id: str | None,
    make: MakeRecord,
) -> Forked:
    """Fork a kept save of a session, named by its step or its seq.

    Args:
        make: the fork's first own save.

    Raises:
        NotFoundError: no such session, step or save; lists the steps kept.
        ConfigurationError: the store keeps no history, or the name is taken.
    """
    forks = forks_of(store)
    kept = await forks.kept_saves(session_id)
    if kept is None:
        raise NotFoundError(
            f"there is no session {session_id!r} (steps kept: none)", code="LOUSHO_CHECKPOINT_NOT_FOUND"
        )
    seq = choose_save(session_id, kept, from_step=from_step, at=at)
    reached("fork.saving")
    forked = await forks.fork_session(session_id, seq, new_session_id, make)
    reached("fork.saved")
    return forked


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
    ) -> Forked:
        entries = await self._history.history(session_id)
        entry = next(entry for entry in entries if entry.seq == seq)
        source = stored_state(entry.checkpoint, session_id)
        name = await self._name(session_id, new_session_id)
        record = make(ForkSource.of(source))
        state = apply(source.as_session(name), stamp(record, source, source.fence))
        await self._store.save(name, checkpoint_of(state))
        return Forked.of(state)

    async def _name(self, session_id: str, wanted: str | None) -> str:
        if wanted is not None:
            if await self._store.load(wanted) is not None:
                raise name_taken(wanted)
            return wanted
        n = 1
        while await self._store.load(fork_name(session_id, n)) is not None:
            n += 1
        return fork_name(session_id, n)
