"""A workspace with the agent `bot`, whose sessions are made through the Python API, and its command line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lousho_cli import Agent, AgentExecutor, ExecutionResult, FileStore, tool
from lousho_cli.cli import app
from lousho_cli.testing import ScriptedModel

Turn = str | Mapping[str, Any]


@tool
def weather(city: str = "Oslo") -> dict[str, Any]:
    """The weather."""
    return {"forecast": "sunny", "city": city}


@tool
def plan(day: str = "sat") -> str:
    """Plan a day."""
    return f"planned {day}"


@tool(needs_approval=True)
def pay(amount: int = 1, to: str = "Ann") -> str:
    """Pay somebody."""
    return f"paid {amount}"


TRIP: list[Turn] = [
    {"tool_calls": [{"name": "weather", "args": {"city": "Oslo"}, "id": "w1"}]},
    {"text": "Sunny.", "tool_calls": [{"name": "plan", "id": "p1"}, {"name": "plan", "id": "p2"}]},
    "all planned",
]
"""Three steps: `weather`, `plan` twice, an answer."""

PAYMENT: list[Turn] = [{"tool_calls": [{"name": "pay", "args": {"amount": 5}, "id": "pay1"}]}]
"""One step that pauses on `pay`."""


@dataclass(frozen=True)
class Ran:
    """What a command line did."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class BotWorkspace:
    """`.lousho` in `root`; commands are run in this process, in the current folder."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.home = root / ".lousho"
        self.agent = self.home / "agents" / "bot"
        self.agent.mkdir(parents=True)
        self._capsys = capsys

    def play(
        self,
        session: str,
        turns: Sequence[Turn],
        *,
        input: str = "go",
        agent: str = "bot",
        history_limit: int = 50,
        concurrency: int = 1,
    ) -> ExecutionResult:
        """Run the agent on a session with a model that says `turns`; each result is a save of its own."""
        store = FileStore(self.home, agent=agent, history_limit=history_limit)
        return AgentExecutor.execute_sync(
            agent=Agent(name=agent, instructions="Do the work.", tools=[weather, plan, pay]),
            input=input,
            provider=ScriptedModel(list(turns)),
            session_id=session,
            tool_concurrency=concurrency,
            checkpoint_store=store.checkpoints,
            approval_store=store.approvals,
        )

    def run(self, *arguments: str) -> Ran:
        self._capsys.readouterr()
        code = app.run(arguments)
        captured = self._capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    def journal(self, session: str) -> Path:
        return self.agent / "checkpoints" / f"{session}.jsonl"

    def damage(self, session: str) -> None:
        """Break the first line of a session's journal; valid saves follow it."""
        file = self.journal(session)
        file.write_bytes(b"x" + file.read_bytes()[1:])

    def state_files(self) -> dict[str, tuple[int, bytes]]:
        """Every file of the workspace: when it was written, and what it holds."""
        files = (each for each in self.home.rglob("*") if each.is_file())
        return {str(each): (each.stat().st_mtime_ns, each.read_bytes()) for each in files}
