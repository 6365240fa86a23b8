"""Random lives of sessions whose journals are compacted at any moment: nothing but bytes may go (R3.21)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import precondition, rule, run_state_machine_as_test
from rules_kit import World
from test_state_machine import COMMON, Lives

from lousho_cli.stores import compaction
from lousho_cli.stores.compaction import compact_journal
from lousho_cli.stores.folder import agent_folder

KEPT = 3


class CompactedLives(Lives):
    """Lives of the file store with a short history, so that most saves are dropped."""

    def __init__(self) -> None:
        super().__init__()
        tools = self.world.tools
        self.world = World("file", self._folder, KEPT)
        self.world.tools = tools

    @precondition(lambda self: self.sessions)
    @rule()
    def compact(self) -> None:
        for session in self.sessions:
            before = self._all_of(session)
            compact_journal(agent_folder(self._folder / ".lousho", "default"), session, KEPT)
            assert self._all_of(session) == before

    def _all_of(self, session: str) -> Any:
        """All that can be seen of a session: its state, each kept save, and which were dropped."""
        checkpoints = self.world.store.checkpoints
        stored = asyncio.run(checkpoints.load(session))
        entries = asyncio.run(checkpoints.history(session))
        return (
            stored and stored.model_dump(mode="json", by_alias=True),
            [entry.model_dump(mode="json", by_alias=True) for entry in entries],
            asyncio.run(checkpoints.kept_saves(session)),
        )


def live(examples: int) -> None:
    run_state_machine_as_test(CompactedLives, settings=settings(COMMON, max_examples=examples))


@pytest.fixture(autouse=True)
def however_little_it_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST", 1000)


# It passes in seconds; looking for the shortest life that goes wrong takes longer.
@pytest.mark.timeout(400)
def test_a_compacted_session_goes_on_as_if_it_were_not() -> None:
    live(25)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_thousands_of_compacted_sessions_go_on_as_if_they_were_not() -> None:
    live(5000)
