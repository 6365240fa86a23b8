"""A workspace in a scratch folder, with an agent that plays a fixed conversation."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lousho_cli import Agent, AgentExecutor, Checkpoint, ExecutionResult, FileStore, ForkResult, tool
from lousho_cli.execution.protocols import ModelRequest
from lousho_cli.execution.state import State
from lousho_cli.stores.folder import agent_folder
from lousho_cli.stores.journal_fold import read_journal
from lousho_cli.stores.reader import SessionSummary, summaries
from lousho_cli.stores.saves_reader import read_history
from lousho_cli.stores.trail import Save
from lousho_cli.testing import ScriptedModel

Turns = Sequence[str | Mapping[str, Any]]


def calls(*names: str, step: int) -> dict[str, Any]:
    """A model turn that calls tools by name."""
    return {"tool_calls": [{"name": name, "id": f"{name}-{step}", "args": {"n": step}} for name in names]}


TWO_STEPS: Turns = [calls("echo", step=1), calls("echo", step=2), "done"]


class Bench:
    """One `.lousho` folder.

    Attributes:
        did: what the model and the tools were asked, in order: `model`, `echo-1`, ...
    """

    def __init__(self, root: Path, limit: int = 50, agent: str = "default") -> None:
        self.home = root / ".lousho"
        self.store = FileStore(self.home, agent=agent, history_limit=limit)
        self.folder = agent_folder(self.home, agent)
        self.limit = limit
        self.did: list[str] = []

        @tool
        def echo(n: int) -> str:
            """Give it back."""
            self.did.append(f"echo-{n}")
            return f"result {n}"

        @tool(needs_approval=True)
        def pay(n: int) -> str:
            """Pay."""
            self.did.append(f"pay-{n}")
            return f"paid {n}"

        self.agent = Agent(agent, "Be brief.", [echo, pay])

    def model(self, turns: Turns) -> ScriptedModel:
        """Plays the turn whose index is the number of model turns so far."""

        def play(request: ModelRequest) -> str | Mapping[str, Any]:
            self.did.append("model")
            return turns[sum(message.role == "assistant" for message in request.messages)]

        return ScriptedModel([play], on_exhausted="repeat-last")

    def run(
        self, session: str = "s", text: str | None = "go", turns: Turns = TWO_STEPS, **options: Any
    ) -> ExecutionResult:
        options.setdefault("agent", self.agent)
        return AgentExecutor.execute_sync(
            input=text, provider=self.model(turns), session_id=session,
            checkpoint_store=self.store.checkpoints, approval_store=self.store.approvals, **options,
        )  # fmt: skip

    def fork(self, session: str = "s", **options: Any) -> ForkResult:
        return AgentExecutor.fork_sync(session_id=session, checkpoint_store=self.store.checkpoints, **options)

    def load(self, session: str = "s") -> Checkpoint | None:
        return asyncio.run(self.store.checkpoints.load(session))

    def loaded(self, session: str = "s") -> Checkpoint:
        checkpoint = self.load(session)
        assert checkpoint is not None
        return checkpoint

    def delete(self, session: str = "s", *, keep_history: bool = False) -> None:
        asyncio.run(self.store.checkpoints.delete(session, keep_history=keep_history))

    def journal(self, session: str = "s") -> Path:
        return self.home / "agents" / self.folder.path.name / "checkpoints" / f"{session}.jsonl"

    def history_file(self, session: str = "s") -> Path:
        return self.home / "agents" / self.folder.path.name / "checkpoint-history" / f"{session}.json"

    def state(self, session: str = "s") -> State:
        """The state the journal folds to, whatever else the store does."""
        path = self.journal(session)
        return read_journal(path, path.read_bytes(), session, self.limit).state

    def history(self, session: str = "s") -> list[Save]:
        return read_history(self.folder, session, self.limit)

    def seqs(self, session: str = "s") -> list[int]:
        return [save.seq for save in self.history(session)]

    def kept_in_file(self, session: str = "s") -> list[int]:
        content = json.loads(self.history_file(session).read_bytes())
        return [entry["seq"] for entry in content["entries"]]

    def sessions(self) -> list[SessionSummary]:
        return list(summaries(self.folder))

    def files(self) -> dict[str, bytes | str]:
        """Everything there is below the workspace: contents of files, targets of links."""
        found: dict[str, bytes | str] = {}
        for path in sorted(self.home.rglob("*")):
            name = str(path.relative_to(self.home))
            if path.is_symlink():
                found[name] = f"-> {path.readlink()}"
            elif path.is_file():
                found[name] = path.read_bytes()
        return found


def texts(checkpoint: Checkpoint) -> list[str]:
    return [f"{message.role}: {message.content}" for message in checkpoint.messages]


def sealed(line: bytes) -> bool:
    """Whether a line ends with the checksum of what stands before it, counted by hand."""
    body, key, tail = line.rpartition(b',"crc":"')
    return bool(key) and tail == b'%08x"}' % zlib.crc32(body + b"}")


def resealed(line: bytes, **changes: Any) -> bytes:
    """The line with other values, and a checksum that holds. `...` takes a key out."""
    data = {key: value for key, value in json.loads(line).items() if key != "crc"}
    data.update(changes)
    body = json.dumps({key: value for key, value in data.items() if value is not ...}).encode()
    body = body.replace(b'{"seq": ', b'{"seq":', 1)
    return b'%s,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body))


def python(code: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start a process of the same interpreter on `code`."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ}, **options,
    )  # fmt: skip
