"""A store under test, and the fixtures that say which it is and what can be done with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import pytest

from ..execution.fork_stores import ForksSessions
from ..execution.protocols import ApprovalStore, CheckpointStore, KeepsHistory
from ..execution.session import OpensSessions

S = TypeVar("S")


class Lives(Generic[S]):
    """One store, over several lives of the process that uses it.

    Attributes:
        store: the store object the test began with.
    """

    def __init__(self, store: S, reopen: Callable[[], S] | None = None) -> None:
        self.store = store
        self._reopen = reopen

    def next(self) -> S:
        """The store as the next process finds it; the same object where it cannot be reopened."""
        return self.store if self._reopen is None else self._reopen()

    def reopened(self) -> S:
        """The store as the next process finds it; skips the test where it cannot be reopened."""
        if self._reopen is None:
            pytest.skip("the suite has no fixture `reopen`: this store lives as long as its object")
        return self._reopen()


class StoreFixtures:
    """Which store is under test."""

    @pytest.fixture
    def store(self) -> Any:
        """The store: an empty one for each test."""
        pytest.fail("say which store is tested: give the class a fixture `store`", pytrace=False)

    @pytest.fixture
    def reopen(self) -> Callable[[], Any] | None:
        """A function that opens the data of `store` again, as another process would."""
        return None


class CheckpointFixtures(StoreFixtures):
    """Which checkpoint store is under test."""

    @pytest.fixture
    def lives(
        self, store: CheckpointStore, reopen: Callable[[], CheckpointStore] | None
    ) -> Lives[CheckpointStore]:
        return Lives(store, reopen)

    @pytest.fixture
    def with_limit(self) -> Callable[[int], CheckpointStore] | None:
        """A function that makes another store, one that keeps at most so many saves of a session."""
        return None

    @pytest.fixture
    def lose_lease(self) -> Callable[[str], Awaitable[None]] | None:
        """An async function that makes the store forget who holds the session of that id."""
        return None


class ApprovalFixtures(StoreFixtures):
    """Which approval store is under test."""

    @pytest.fixture
    def lives(self, store: ApprovalStore, reopen: Callable[[], ApprovalStore] | None) -> Lives[ApprovalStore]:
        return Lives(store, reopen)


def keeping_history(store: CheckpointStore) -> KeepsHistory:
    """The store as one that keeps a history; skips the test if it is none."""
    if not isinstance(store, KeepsHistory):
        pytest.skip("this store has no method `history`: it keeps no history, and its sessions cannot fork")
    return store


def opening_sessions(store: CheckpointStore) -> OpensSessions:
    """The store as one that holds sessions itself; skips the test if it does not."""
    if not isinstance(store, OpensSessions):
        pytest.skip("this store has no method `open_session`: the engine holds sessions within one process")
    return store


def forking_sessions(store: CheckpointStore) -> ForksSessions:
    """The store as one that forks by itself; skips the test if it does not."""
    if not isinstance(store, ForksSessions):
        pytest.skip("this store has no methods `kept_saves` and `fork_session`: forks go over `history`")
    return store
