"""A workspace that has one of everything: the files that the hostile tests damage."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lousho_cli import Agent, AgentExecutor, ApprovalDecision, ExecutionResult, FileStore, tool
from lousho_cli.providers.cassette import slug
from lousho_cli.stores.folder import AgentFolder, agent_folder
from lousho_cli.testing import ScriptedModel, record_replay

AGENT_TOML = """\
description = "Plans trips"
model = "script:turns.json"
max_steps = 8
tool_concurrency = 2

[budget]
max_tokens = 5000
"""
CONFIG_TOML = 'history_limit = 50\non_agent_drift = "warn"\n'
EVAL_TOML = """\
name = "trips"
tags = ["fast"]

[[cases]]
label = "sunny"
input = ["plan my trip"]
[cases.expect]
completed = true
called = [{ tool = "weather", args = { city = "Oslo" } }]
"""


@tool
def weather(city: str = "Oslo") -> str:
    """The weather."""
    return f"sunny in {city}"


@tool(needs_approval=True)
def pay(amount: int = 1) -> str:
    """Pay somebody."""
    return f"paid {amount}"


def call(name: str, number: int, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "id": f"c{number}", "args": args}]}


@dataclass(frozen=True)
class Sample:
    """A workspace with the sessions `trip` (finished), `pause` and `decided` (paused), and a fork.

    Attributes:
        waiting: the approval that `pause` waits for.
        decided: the approval of `decided`, which was decided and is not taken up.
    """

    root: Path
    waiting: str
    decided: str

    @property
    def home(self) -> Path:
        return self.root / ".lousho"

    @property
    def folder(self) -> AgentFolder:
        return agent_folder(self.home, "bot")

    def store(self) -> FileStore:
        return FileStore(self.home, agent="bot")

    @property
    def files(self) -> Mapping[str, Path]:
        """What is damaged, by what it is."""
        agent = self.folder
        return {
            "journal": agent.journal("trip"),
            "journal of a paused session": agent.journal("pause"),
            "journal of a fork": agent.journal("trip.fork-1"),
            "history": agent.history("trip"),
            "request": agent.request(self.waiting),
            "decision": agent.decision(self.decided),
            "older checkpoint": agent.checkpoints / "older.json",
            "older history": agent.path / "checkpoint-history" / "older.json",
            "agent.toml": agent.path / "agent.toml",
            "config.toml": self.home / "config.toml",
            "eval": agent.path / "evals" / "trips.toml",
            "cassette": agent.path / "evals" / "__cassettes__" / "trips" / f"{slug('sunny')}.json",
        }

    def copy(self, root: Path) -> Sample:
        """The same in another folder."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return Sample(root, self.waiting, self.decided)


def contents(root: Path) -> dict[str, bytes | str]:
    """Everything below a folder: what files hold, and what is something else. Lock files hold nothing."""
    found: dict[str, bytes | str] = {}
    for folder, folders, files in os.walk(root):
        if Path(folder).name == "locks":
            continue
        for name in (*folders, *files):
            path = Path(folder, name)
            if path.is_symlink():
                found[str(path)] = f"-> {path.readlink()}"
            elif path.is_file():
                found[str(path)] = path.read_bytes() if os.access(path, os.R_OK) else "not readable"
            else:
                found[str(path)] = oct(path.lstat().st_mode)
    return found


def play(store: FileStore, session: str, text: str, turns: list[Any], **options: Any) -> ExecutionResult:
    return AgentExecutor.execute_sync(
        agent=Agent("bot", "Do the work.", [weather, pay]), input=text, provider=ScriptedModel(turns),
        session_id=session, checkpoint_store=store.checkpoints, approval_store=store.approvals, **options,
    )  # fmt: skip


def make_sample(root: Path) -> Sample:
    home = root / ".lousho"
    agent = home / "agents" / "bot"
    (agent / "evals").mkdir(parents=True)
    (home / "config.toml").write_text(CONFIG_TOML)
    (agent / "agent.toml").write_text(AGENT_TOML)
    (agent / "turns.json").write_text('["Done."]')
    (agent / "instructions.md").write_text("Do the work.")
    (agent / "evals" / "trips.toml").write_text(EVAL_TOML)
    store = FileStore(home, agent="bot")
    play(store, "trip", "plan my trip", [call("weather", 1), call("weather", 2, city="Rome"), "done é"])
    play(store, "trip", "and back", ["back"], business_state={"seats": [1, 2.5, None, "é"]})
    waiting = str(play(store, "pause", "pay", [call("pay", 1, amount=5)]).approval_id)
    decided = str(play(store, "decided", "pay", [call("pay", 1, amount=7)]).approval_id)
    decision = ApprovalDecision(id=decided, approved=True, by="ann", note="fine")
    asyncio.run(store.approvals.decide(decided, decision))
    AgentExecutor.fork_sync(session_id="trip", from_step=1, checkpoint_store=store.checkpoints)
    sample = Sample(root, waiting, decided)
    _put_older(sample)
    _record(sample)
    return sample


def _put_older(sample: Sample) -> None:
    message = {"role": "user", "content": "hello"}
    answer = {"role": "assistant", "content": "hi", "toolCalls": []}
    first = {"sessionId": "older", "stepIndex": 0, "messages": [message], "status": "in-progress"}
    newest = {"sessionId": "older", "stepIndex": 1, "messages": [message, answer], "status": "finished"}
    saves = [
        {
            "step": each["stepIndex"],
            "savedAt": "2026-01-01T00:00:00Z",
            "status": each["status"],
            "checkpoint": each,
        }
        for each in (first, newest)
    ]
    sample.files["older checkpoint"].write_text(json.dumps(newest))
    sample.files["older history"].write_text(json.dumps(saves))


def _record(sample: Sample) -> None:
    path = sample.files["cassette"]
    path.parent.mkdir(parents=True)
    answers = ScriptedModel([call("weather", 1), "done"])
    with record_replay(path, "record", answers) as model:
        AgentExecutor.execute_sync(
            agent=Agent("bot", "Do the work.", [weather]), input="plan my trip", provider=model
        )
