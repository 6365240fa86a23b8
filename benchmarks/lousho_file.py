"""lousho with a FileStore, through the executor as a program would call it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lousho_cli import Agent, AgentExecutor, FileStore, Tool, tool
from lousho_cli.execution.events import Event
from lousho_cli.execution.protocols import ModelRequest
from lousho_cli.testing import ScriptedModel

from . import workload
from .workload import Segments

SESSION = "bench"


def look_up_async() -> Tool:
    @tool(name=workload.TOOL)
    async def look_up(n: int) -> str:
        """Look something up."""
        return workload.result_text(n)

    return look_up


def look_up_sync() -> Tool:
    @tool(name=workload.TOOL)
    def look_up(n: int) -> str:
        """Look something up."""
        return workload.result_text(n)

    return look_up


class Run:
    """One session of `turns` turns, with events on.

    Args:
        home: the `.lousho` folder.
        turns: how many model turns ask for the tool.
        between: called when a piece of the run has been timed; what it does is not counted.
    """

    def __init__(
        self,
        home: Path,
        turns: int,
        *,
        sync_tools: bool = False,
        piece: int = 0,
        between: Callable[[], None] = lambda: None,
        latency: float = 0.0,
        session: str = SESSION,
    ) -> None:
        self.segments = Segments(piece or turns)
        self.events = 0
        self.home = home
        self.store = FileStore(home)
        self._turns = turns
        self._between = between
        self._latency = latency
        self._session = session
        self._agent = Agent("bench", "Be brief.", [look_up_sync() if sync_tools else look_up_async()])

    async def execute(self, store: FileStore | None = None) -> None:
        """Run the whole session."""
        played = 0

        def play(request: ModelRequest) -> str | Mapping[str, Any]:
            nonlocal played
            if played % self.segments.length == 0:
                if played:
                    self.segments.stop()
                    self._between()
                self.segments.start()
            played += 1
            reply = workload.turn(played, self._turns)
            if not self._latency:
                return reply
            return {"delay": self._latency, **({"text": reply} if isinstance(reply, str) else reply)}

        await AgentExecutor.execute(
            agent=self._agent,
            input=workload.QUESTION,
            provider=ScriptedModel([play], on_exhausted="repeat-last"),
            session_id=self._session,
            checkpoint_store=(store or self.store).checkpoints,
            max_steps=self._turns + 1,
            on_event=self._note,
        )

    def journal(self) -> Path:
        return self.home / "agents" / "default" / "checkpoints" / f"{self._session}.jsonl"

    def _note(self, event: Event) -> None:
        self.events += 1


def journal_lines(home: Path, turns: int = 50) -> list[bytes]:
    """What lousho appends in the saves of a run, header aside: the same bytes for a bare loop."""
    run = Run(home, turns)
    asyncio.run(run.execute())
    return run.journal().read_bytes().splitlines(keepends=True)[2:-1]


def sessions_per_second(home: Path, sessions: int, turns: int, latency: float = 0.0) -> float:
    """Turns per second of many sessions at once in one process and one store."""
    store = FileStore(home)
    runs = [Run(home, turns, latency=latency, session=f"s{n}") for n in range(sessions)]

    async def all_at_once() -> float:
        began = time.perf_counter()
        await asyncio.gather(*(run.execute(store) for run in runs))
        return time.perf_counter() - began

    return sessions * (turns + 1) / asyncio.run(all_at_once())
