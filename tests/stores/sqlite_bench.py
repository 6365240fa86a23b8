"""A SQLite store in a scratch folder, with an agent that plays a fixed conversation."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from store_bench import Turns, calls

from lousho_cli import (
    Agent,
    AgentExecutor,
    ApprovalDecision,
    Checkpoint,
    ExecutionResult,
    ForkResult,
    HistoryEntry,
    StoredApproval,
    resume_after_approval_sync,
    tool,
)
from lousho_cli.execution.protocols import ModelRequest
from lousho_cli.execution.session import OpenSession, open_session
from lousho_cli.execution.state import Record
from lousho_cli.stores.sqlite import SqliteStore
from lousho_cli.stores.sqlite_schema import SEQ_BITS
from lousho_cli.testing import ScriptedModel

TWO_STEPS: Turns = [calls("echo", step=1), calls("echo", step=2), "done"]
_OF_NO_SESSION = f"id >> {SEQ_BITS} NOT IN (SELECT id FROM sessions)"
PAUSE: Turns = [calls("pay", step=1), "paid"]


class SqliteBench:
    """One database file.

    Attributes:
        did: what the model and the tools were asked, in order.
    """

    def __init__(self, root: Path, limit: int = 50) -> None:
        self.path = root / "s.db"
        self.store = SqliteStore(self.path, limit)
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

        self.agent = Agent("bot", "Be brief.", [echo, pay])

    def model(self, turns: Turns) -> ScriptedModel:
        """Plays the turn whose index is the number of model turns so far."""

        def play(request: ModelRequest) -> str | Mapping[str, Any]:
            self.did.append("model")
            return turns[sum(message.role == "assistant" for message in request.messages)]

        return ScriptedModel([play], on_exhausted="repeat-last")

    def run(
        self, session: str = "s", text: str | None = "go", turns: Turns = TWO_STEPS, **options: Any
    ) -> ExecutionResult:
        return AgentExecutor.execute_sync(
            agent=self.agent, input=text, provider=self.model(turns), session_id=session,
            checkpoint_store=self.store.checkpoints, approval_store=self.store.approvals, **options,
        )  # fmt: skip

    def pause(self, session: str = "s") -> str:
        """Run a session up to an approval; returns the approval's id."""
        approval_id = self.run(session, turns=PAUSE).approval_id
        assert approval_id is not None
        return approval_id

    def approve(self, approval_id: str, approved: bool = True) -> ExecutionResult:
        return resume_after_approval_sync(
            {"id": approval_id, "approved": approved}, self.store.approvals, self.agent.tools,
            self.model(PAUSE), {"agent": self.agent}, self.store.checkpoints,
        )  # fmt: skip

    def decide(self, approval_id: str, approved: bool = True, **more: Any) -> StoredApproval:
        """Record a decision and start nothing."""
        decision = ApprovalDecision(id=approval_id, approved=approved, **more)
        return asyncio.run(self.store.approvals.decide(approval_id, decision))

    def approvals(self, status: str | None = "pending") -> Sequence[StoredApproval]:
        return asyncio.run(self.store.approvals.list(status=status))

    def fork(self, session: str = "s", **options: Any) -> ForkResult:
        return AgentExecutor.fork_sync(session_id=session, checkpoint_store=self.store.checkpoints, **options)

    def load(self, session: str = "s") -> Checkpoint | None:
        return asyncio.run(self.store.checkpoints.load(session))

    def loaded(self, session: str = "s") -> Checkpoint:
        checkpoint = self.load(session)
        assert checkpoint is not None
        return checkpoint

    def history(self, session: str = "s", limit: int | None = None) -> Sequence[HistoryEntry]:
        return asyncio.run(self.store.checkpoints.history(session, limit=limit))

    def seqs(self, session: str = "s") -> list[int]:
        return [entry.seq for entry in self.history(session)]

    def delete(self, session: str = "s", *, keep_history: bool = False) -> None:
        asyncio.run(self.store.checkpoints.delete(session, keep_history=keep_history))

    def take(self, session: str = "s", wait: float = 0.0) -> OpenSession:
        return asyncio.run(open_session(self.store.checkpoints, session, wait=wait))

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What somebody else does to the file."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(statement, values).fetchall()

    def rows(self, session: str = "s") -> dict[str, list[tuple[Any, ...]]]:
        """Everything the file says of a session."""
        tables = ("sessions", "checkpoint_history", "approvals")
        rows = {table: self.sql(f"SELECT * FROM {table} WHERE session_id = ?", session) for table in tables}
        # Of a session that is gone nobody knows the number: all there are, then.
        where = f"id >> {SEQ_BITS} = {rows['sessions'][0][0]}" if rows["sessions"] else _OF_NO_SESSION
        return rows | {"records": self.sql(f"SELECT * FROM records WHERE {where}")}

    def is_gone(self, session: str = "s") -> bool:
        """Whether the file says nothing of a session."""
        return not any(self.rows(session).values())

    def is_sound(self) -> bool:
        return self.sql("PRAGMA integrity_check") == [("ok",)]


def save(session: OpenSession, text: str = "taken") -> None:
    record = Record("save", "in-progress", 1, add=[{"role": "user", "content": text}])
    asyncio.run(session.save(record))


def close(session: OpenSession) -> None:
    asyncio.run(session.close())


def contents(checkpoint: Checkpoint) -> list[Any]:
    return [message.content for message in checkpoint.messages]
