"""An open session: the state, held by one runner, and the way to save what is new."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..errors import SessionBusyError, StorageError
from .checkpoint import checkpoint_of, state_of
from .protocols import CheckpointStore
from .records import Checkpoint
from .state import Record, State, apply
from .triggers import reached
from .unset import UNSET

T = TypeVar("T")

POLL_SECONDS = 0.05


class OpenSession(Protocol):
    """A session held by this runner alone.

    Attributes:
        state: the session as of its newest save.
        fence: this runner's fencing token, larger than that of every runner before it.
        suspends: whether a cancellation can cut `save` short.
    """

    state: State
    fence: int

    @property
    def suspends(self) -> bool: ...

    async def save(self, record: Record) -> State:
        """Make `record` durable and return the new state. Returns only when it is on disk.

        Raises:
            StorageError: it could not be saved; nothing changed.
            SessionBusyError: another runner took the session over.
        """
        ...

    async def close(self) -> None: ...


@runtime_checkable
class OpensSessions(Protocol):
    """A checkpoint store that saves records, not whole checkpoints."""

    async def open_session(self, session_id: str) -> OpenSession:
        """Take the session, reading its state once it is held.

        Raises:
            SessionBusyError: another runner holds it.
        """
        ...


@dataclass(frozen=True)
class Seen:
    """A session that was looked at without being held.

    Attributes:
        state: as it was then.
        read: what the store has read. As long as it is kept, taking the session need not read it again where
            nothing has changed since.
    """

    state: State
    read: object = None


@runtime_checkable
class LooksAtSessions(Protocol):
    """A store that need not read a session twice to look at it and then to take it."""

    async def look(self, session_id: str) -> Seen: ...


async def look_at(store: CheckpointStore, session_id: str) -> Seen:
    """A session of any store; one that does not exist is an empty one."""
    if isinstance(store, LooksAtSessions):
        return await store.look(session_id)
    loaded = await store.load(session_id)
    return Seen(State(session_id) if loaded is None else stored_state(loaded, session_id))


def now(later: float = 0.0) -> str:
    """The present instant, or one `later` seconds, UTC, ISO 8601 with microseconds."""
    instant = datetime.now(UTC)
    if later:
        instant += timedelta(seconds=later)
    return instant.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


class Numbered(Protocol):
    """What follows on a save."""

    @property
    def seq(self) -> int: ...


def stamp(record: Record, before: Numbered, fence: int) -> Record:
    """Number a record as the save that follows on `before`."""
    record.seq = before.seq + 1
    record.at = now()
    record.fence = fence
    return record


@dataclass(frozen=True)
class Holder:
    """Who holds a session: for messages only, never for decisions."""

    pid: int
    host: str
    since: str

    @classmethod
    def me(cls) -> Holder:
        return cls(os.getpid(), socket.gethostname(), now())

    def busy(self, session_id: str) -> SessionBusyError:
        return SessionBusyError(
            f"session {session_id!r} is being run by process {self.pid} on {self.host} since {self.since}",
            hint="wait for it (--wait SECONDS), or stop that process",
        )


class LocalLocks:
    """One holder per session within this process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[object, Holder] = {}

    def take(self, key: object, session_id: str) -> Callable[[], None]:
        """Hold `key` and return the function that lets it go.

        Raises:
            SessionBusyError: it is held.
        """
        with self._guard:
            holder = self._held.get(key)
            if holder is not None:
                raise holder.busy(session_id)
            self._held[key] = Holder.me()
        return lambda: self._release(key)

    def _release(self, key: object) -> None:
        with self._guard:
            self._held.pop(key, None)


class CheckpointSession:
    """A session of a store that only has save, load and delete: each save writes the whole checkpoint."""

    suspends = True

    def __init__(self, store: CheckpointStore, session_id: str, state: State, release: Callable[[], None]):
        self.state = state
        self.fence = state.fence + 1
        self._store = store
        self._session_id = session_id
        self._release = release

    async def save(self, record: Record) -> State:
        state = apply(self.state, stamp(record, self.state, self.fence))
        await self._store.save(self._session_id, checkpoint_of(state))
        self.state = state
        return state

    async def close(self) -> None:
        self._release()


class NestedSession:
    """A sub-agent's session, kept inside the session of the agent that called it.

    Its saves are saves of that session: one journal, one lock, one fencing token.
    """

    def __init__(self, lead: OpenSession, call_id: str) -> None:
        self.fence = lead.fence
        self.suspends = lead.suspends
        self.state = lead.state.subs.get(call_id) or State(lead.state.session_id)
        self._lead = lead
        self._call_id = call_id

    async def save(self, record: Record) -> State:
        # The nested record is stamped against its own session's state, which only this run changes.
        subs = {self._call_id: stamp(record, self.state, self.fence)}
        lead = self._lead.state
        outer = Record("sub", lead.status, lead.step, subs=subs)
        # There is one business state, the lead's.
        outer.business_state, record.business_state = record.business_state, UNSET
        reached("sub.saving")
        saved = await self._lead.save(outer)
        reached("sub.saved")
        self.state = saved.subs[self._call_id]
        return self.state

    @property
    def seq(self) -> int:
        """The seq of the lead's newest save, which holds this session's."""
        return self._lead.seq if isinstance(self._lead, NestedSession) else self._lead.state.seq

    async def close(self) -> None:
        return None


class UnstoredSession:
    """A session that lives only as long as its run."""

    suspends = False

    def __init__(self, state: State) -> None:
        self.state = state
        self.fence = state.fence + 1

    async def save(self, record: Record) -> State:
        self.state = apply(self.state, stamp(record, self.state, self.fence))
        return self.state

    async def close(self) -> None:
        return None


class _InTurn:
    """A session whose saves suspend: those of calls that run side by side are made one after another."""

    suspends = True

    def __init__(self, session: OpenSession) -> None:
        self.fence = session.fence
        self._session = session
        self._lock = asyncio.Lock()

    @property
    def state(self) -> State:
        return self._session.state

    @state.setter
    def state(self, state: State) -> None:
        self._session.state = state

    async def save(self, record: Record) -> State:
        async with self._lock:
            return await self._session.save(record)

    async def close(self) -> None:
        await self._session.close()


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns. A cancellation of the task that waits for it is heard when it is done."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as cancelled:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((task,))
        log_failure(None if task.cancelled() else task.exception())
        raise cancelled


def log_failure(error: BaseException | None) -> None:
    """Say that a save failed where its exception gives way to a cancellation."""
    if error is not None:
        logging.getLogger("lousho").error("a save failed while the run was cancelled: %s", error)


_locks = LocalLocks()


async def open_session(
    store: CheckpointStore | OpensSessions | None, session_id: str | None, *, wait: float = 0.0
) -> OpenSession:
    """Hold a session of any store.

    Args:
        store: None for a run without a store.
        session_id: None for a run without a session.
        wait: seconds to wait for another runner.

    Raises:
        SessionBusyError: another runner still holds it.
    """
    if store is None or session_id is None:
        return UnstoredSession(State(session_id))
    deadline = time.monotonic() + wait
    while True:
        try:
            session = await _open(store, session_id)
            return _InTurn(session) if session.suspends else session
        except SessionBusyError:
            if time.monotonic() >= deadline:
                raise
            await asyncio.sleep(POLL_SECONDS)


async def _open(store: CheckpointStore | OpensSessions, session_id: str) -> OpenSession:
    if isinstance(store, OpensSessions):
        return await store.open_session(session_id)
    return await _open_checkpoint(store, session_id)


async def _open_checkpoint(store: CheckpointStore, session_id: str) -> OpenSession:
    release = _locks.take((id(store), session_id), session_id)
    try:
        stored = await store.load(session_id)
        state = State(session_id) if stored is None else stored_state(stored, session_id)
    except BaseException:
        release()
        raise
    return CheckpointSession(store, session_id, state, release)


def stored_state(stored: Checkpoint | Mapping[str, Any], session_id: str) -> State:
    """The state of a checkpoint that a store returned.

    Raises:
        StorageError: it is no checkpoint.
    """
    try:
        return state_of(Checkpoint.of(stored), session_id)
    except ValueError as error:
        raise StorageError(
            f"the stored checkpoint of session {session_id!r} is damaged: {error}",
            code="LOUSHO_SESSION_FILE_CORRUPT",
        ) from error
