"""Key-value stores in memory that record and die, and an agent that plays a fixed conversation on them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from lousho_cli import Agent, AgentExecutor, Checkpoint, ExecutionResult, ForkResult, HistoryEntry, tool
from lousho_cli.execution.protocols import ModelRequest
from lousho_cli.execution.state import Record, State
from lousho_cli.stores.kv import KVStore
from lousho_cli.testing import ScriptedModel

Op = tuple[str, str]
"""What was done, and to which key."""


class Died(Exception):
    """The process ended here."""


class DictKV:
    """A dictionary as a key-value store. Every call gives way to other tasks once, as a real one does.

    Attributes:
        data: the values.
        did: every write, in order.
        ttls: what each put was given.
        dies_at: the number of the write (from 0) that is not carried out, nor anything after it.
    """

    def __init__(self, data: dict[str, str] | None = None) -> None:
        self.data: dict[str, str] = {} if data is None else data
        self.did: list[Op] = []
        self.ttls: list[float | None] = []
        self.dies_at: int | None = None

    async def get(self, key: str) -> str | None:
        await asyncio.sleep(0)
        self._live()
        return self.data.get(key)

    async def put(self, key: str, value: str, *, ttl: float | None = None) -> None:
        await self._write("put", key)
        self.ttls.append(ttl)
        self.data[key] = value

    async def delete(self, key: str) -> None:
        await self._write("delete", key)
        self.data.pop(key, None)

    async def _write(self, what: str, key: str) -> None:
        await asyncio.sleep(0)
        self._live()
        self.did.append((what, key))

    def _live(self) -> None:
        if self.dies_at is not None and len(self.did) >= self.dies_at:
            raise Died

    def json(self, key: str) -> Any:
        return json.loads(self.data[key])


class SwapKV(DictKV):
    """One that can compare and set, as the simplest do."""

    async def put_if(self, key: str, value: str, expected: str | None) -> bool:
        await self._write("put_if", key)
        if self.data.get(key) != expected:
            return False
        self.data[key] = value
        return True


class ExpiringSwapKV(SwapKV):
    """One whose compare-and-set takes an expiry too."""

    async def put_if(self, key: str, value: str, expected: str | None, *, ttl: float | None = None) -> bool:
        done = await super().put_if(key, value, expected)
        if done:
            self.ttls.append(ttl)
        return done


KINDS: dict[str, Callable[..., DictKV]] = {"put only": DictKV, "put_if": SwapKV}


def calls(*names: str, step: int) -> dict[str, Any]:
    """A model turn that calls tools by name."""
    return {"tool_calls": [{"name": name, "id": f"{name}-{step}", "args": {"n": step}} for name in names]}


Turns = list[str | dict[str, Any]]
TWO_STEPS: Turns = [calls("echo", step=1), calls("echo", "echo2", step=2), "done"]


class KVBench:
    """One key-value store and an agent.

    Attributes:
        did: what the model and the tools were asked, in order.
        saved: the seqs that were reported as saved.
    """

    def __init__(self, kv: Any = None, **options: Any) -> None:
        self.kv = DictKV() if kv is None else kv
        self.store: Any = KVStore(self.kv, **options)
        self.did: list[str] = []
        self.saved: list[int] = []
        self._report_saves()

        @tool
        def echo(n: int) -> str:
            """Give it back."""
            self.did.append(f"echo-{n}")
            return f"result {n}"

        @tool
        def echo2(n: int) -> str:
            """Give it back twice."""
            self.did.append(f"echo2-{n}")
            return f"result {n}{n}"

        @tool(needs_approval=True)
        def pay(n: int) -> str:
            """Pay."""
            self.did.append(f"pay-{n}")
            return f"paid {n}"

        self.tools = [echo, echo2, pay]
        self.agent = Agent("bot", "Be brief.", self.tools)

    def _report_saves(self) -> None:
        opened = self.store.checkpoints.open_session

        async def open_session(session_id: str) -> Any:
            session = await opened(session_id)
            save = session.save

            async def reported(record: Record) -> State:
                state: State = await save(record)
                self.saved.append(state.seq)
                return state

            session.save = reported
            return session

        self.store.checkpoints.open_session = open_session

    def model(self, turns: Turns) -> ScriptedModel:
        """Plays the turn whose index is the number of model turns so far."""

        def play(request: ModelRequest) -> str | Mapping[str, Any]:
            self.did.append("model")
            return turns[sum(message.role == "assistant" for message in request.messages)]

        return ScriptedModel([play], on_exhausted="repeat-last")

    async def arun(
        self, session: str | None = "s", text: Any = "go", turns: Turns = TWO_STEPS, **options: Any
    ) -> ExecutionResult:
        known = {
            "checkpoint_store": self.store.checkpoints, "approval_store": self.store.approvals,
            "tool_concurrency": 1,
        }  # fmt: skip
        return await AgentExecutor.execute(
            agent=self.agent,
            input=text,
            provider=self.model(turns),
            session_id=session,
            **{**known, **options},
        )

    def run(
        self, session: str = "s", text: Any = "go", turns: Turns = TWO_STEPS, **options: Any
    ) -> ExecutionResult:
        return asyncio.run(self.arun(session, text, turns, **options))

    def fork(self, session: str = "s", **options: Any) -> ForkResult:
        return AgentExecutor.fork_sync(session_id=session, checkpoint_store=self.store.checkpoints, **options)

    def load(self, session: str = "s") -> Checkpoint:
        checkpoint: Checkpoint | None = asyncio.run(self.store.checkpoints.load(session))
        assert checkpoint is not None
        return checkpoint

    def history(self, session: str = "s", limit: int | None = None) -> list[HistoryEntry]:
        return list(asyncio.run(self.store.checkpoints.history(session, limit=limit)))

    def seqs(self, session: str = "s") -> list[int]:
        return [entry.seq for entry in self.history(session)]

    def delete(self, session: str = "s", *, keep_history: bool = False) -> None:
        asyncio.run(self.store.checkpoints.delete(session, keep_history=keep_history))


def texts(checkpoint: Checkpoint) -> list[str]:
    return [f"{message.role}: {message.content}" for message in checkpoint.messages]


def dump(record: Any) -> Any:
    return record.model_dump(mode="json", by_alias=True, exclude_none=True)
