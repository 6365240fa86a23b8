"""A world for the rules of durable execution: a store, a scripted model, and tools that leave a trace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lousho_cli import (
    Agent,
    AgentExecutor,
    ApprovalDecision,
    Checkpoint,
    ExecutionResult,
    FileStore,
    ForkResult,
    KVStore,
    MemoryStore,
    Message,
    PropagatingToolError,
    SqliteStore,
    Tool,
    ToolContext,
    ToolRegistry,
    resume_after_approval,
    tool,
)
from lousho_cli.execution.session import OpenSession
from lousho_cli.execution.state import Record, State
from lousho_cli.testing import ScriptedModel

Data = dict[str, Any]
Store = MemoryStore | FileStore | SqliteStore | KVStore

KINDS = ("memory", "file", "sqlite", "kv")
"""Every store that keeps the rules. A new store is added here and in `open_store`."""


def open_store(kind: str, path: Path, history_limit: int = 50) -> Store:
    if kind == "memory":
        return MemoryStore(history_limit)
    if kind == "sqlite":
        return SqliteStore(path / "sessions.db", history_limit)
    if kind == "kv":
        return KVStore(DictKV(), history_limit=history_limit)
    return FileStore(path / ".lousho", history_limit=history_limit)


class DictKV:
    """A KV that swaps atomically, in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    async def get(self, key: str) -> str | None:
        return self.values.get(key)

    async def put(self, key: str, value: str, *, ttl: float | None = None) -> None:
        self.values[key] = value

    async def delete(self, key: str) -> None:
        self.values.pop(key, None)

    async def put_if(self, key: str, value: str, expected: str | None, *, ttl: float | None = None) -> bool:
        if self.values.get(key) != expected:
            return False
        self.values[key] = value
        return True


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param, tmp_path)


class World:
    """Runs agents on one store. Every call without an `a` in front is a life of its own, loop included.

    Attributes:
        model: the model of the newest call.
        ledger: what the tools did.
    """

    def __init__(self, kind: str, path: Path, history_limit: int = 50) -> None:
        self.kind = kind
        self.path = path
        self.store = open_store(kind, path, history_limit)
        self.checkpoints: Any = self.store.checkpoints
        self.approvals: Any = self.store.approvals
        self.model = ScriptedModel([])
        self.ledger = Ledger()
        self.tools: Sequence[Tool] = ()

    def agent(self) -> Agent:
        return Agent("bot", "be brief", self.tools)

    async def aexecute(
        self, script: Iterable[Any] = (), input: Any = "go", session: str | None = "s1", **options: Any
    ) -> ExecutionResult:
        model = self.model = ScriptedModel(script)
        known = {
            "agent": self.agent(), "provider": model, "checkpoint_store": self.checkpoints,
            "approval_store": self.approvals,
        }  # fmt: skip
        return await AgentExecutor.execute(input=input, session_id=session, **{**known, **options})

    def execute(self, script: Iterable[Any] = (), input: Any = "go", **options: Any) -> ExecutionResult:
        return asyncio.run(self.aexecute(script, input, **options))

    def resume(self, script: Iterable[Any] = (), **options: Any) -> ExecutionResult:
        return self.execute(script, [], **options)

    def crash(self, script: Iterable[Any] = (), input: Any = "go", **options: Any) -> None:
        """A run that a dying tool or a failing model ends."""
        with pytest.raises(Exception, match="died"):
            self.execute(script, input, **options)

    async def adecide(
        self, approval: str | None, script: Iterable[Any] = (), approved: Any = True, *,
        options: Mapping[str, Any] | None = None, **decision: Any,
    ) -> ExecutionResult:  # fmt: skip
        model = self.model = ScriptedModel(script)
        return await resume_after_approval(
            {"id": approval, "approved": approved, **decision},
            self.approvals,
            ToolRegistry(self.tools),
            model,
            {"agent": self.agent(), **(options or {})},
            self.checkpoints,
        )

    def decide(
        self, approval: str | None, script: Iterable[Any] = (), approved: Any = True, **rest: Any
    ) -> ExecutionResult:
        return asyncio.run(self.adecide(approval, script, approved, **rest))

    def record_only(self, approval: str | None, approved: bool = True, **decision: Any) -> None:
        """The decision is recorded, and whoever recorded it dies."""
        assert approval is not None
        wanted = ApprovalDecision(id=approval, approved=approved, by="ann", **decision)
        asyncio.run(self.store.approvals.decide(approval, wanted))

    async def afork(
        self, session: str = "s1", from_step: int | None = None, name: str | None = None, **options: Any
    ) -> ForkResult:
        return await AgentExecutor.fork(
            session_id=session,
            from_step=from_step,
            checkpoint_store=self.checkpoints,
            new_session_id=name,
            **options,
        )

    def fork(self, session: str = "s1", from_step: int | None = None, **options: Any) -> ForkResult:
        return asyncio.run(self.afork(session, from_step, **options))

    def load(self, session: str = "s1") -> Checkpoint:
        found = asyncio.run(self.store.checkpoints.load(session))
        assert found is not None
        return found

    def history(self, session: str = "s1") -> list[Any]:
        return list(asyncio.run(self.store.checkpoints.history(session)))

    def sent(self) -> list[Data]:
        """The transcript of the newest request."""
        return dump(self.model.calls[-1].messages)

    def files(self, name: str = "s1") -> dict[str, bytes]:
        """The stored bytes of one session, for a store that has files."""
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.rglob(f"{name}.json*"))
        }


class Ledger:
    """Tools that note each time they run, with the id of the call."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def runs(self, name: str) -> int:
        return sum(line[0] == name for line in self.lines)

    def ids(self, name: str) -> list[str]:
        return [line[1] for line in self.lines if line[0] == name]

    def counts(self) -> dict[str, int]:
        return {name: self.runs(name) for name, _ in self.lines}

    def tool(
        self, name: str, does: Callable[[], Any] | None = None, *, dies: int = 0, **options: Any
    ) -> Tool:
        """A tool that runs `does`; its first `dies` runs end the run as a dying process would."""

        def body(ctx: ToolContext, n: int = 0) -> Any:
            self.lines.append((name, ctx.tool_call_id))
            if self.runs(name) <= dies:
                raise PropagatingToolError(f"{name} died")
            return f"{name} done" if does is None else does()

        return tool(name=name, description=name, **options)(body)


def call(name: str, id: str | None = None, **args: Any) -> Data:
    return {"name": name, "args": args, "id": f"call_{name}" if id is None else id}


def turn(*calls: Data, **more: Any) -> Data:
    return {"tool_calls": list(calls), **more}


def asks(*names: str) -> Data:
    """A model turn that calls these tools, with ids call_<name>."""
    return turn(*(call(name) for name in names))


def user(text: str) -> Data:
    return {"role": "user", "content": text}


def dump(messages: Iterable[Message]) -> list[Data]:
    return [message.model_dump(mode="json", by_alias=True, exclude_none=True) for message in messages]


def roles(messages: Iterable[Message]) -> list[str]:
    return [message.role for message in messages]


def said(messages: Iterable[Message]) -> list[Any]:
    """What the user said, in order."""
    return [message.content for message in messages if message.role == "user"]


def results(messages: Iterable[Message]) -> dict[str, Any]:
    """The results, parsed, by call id."""
    return {m["toolCallId"]: json.loads(m["content"]) for m in dump(messages) if m["role"] == "tool"}


def kinds(messages: Iterable[Message]) -> list[str | None]:
    """For each result, in order: the kind of the error, None for a result that is none."""
    return [
        json.loads(m["content"])["kind"] if m.get("isError") else None
        for m in dump(messages)
        if m["role"] == "tool"
    ]


def engine(checkpoint: Checkpoint) -> Data:
    found: Data = (checkpoint.model_extra or {})["engine"]
    return found


def queued(checkpoint: Checkpoint) -> list[Any]:
    return [message["content"] for message in engine(checkpoint).get("queue", [])]


def check_transcript(messages: Iterable[Message], *, open_end: bool = False) -> None:
    """Every call has exactly one result, in call order, directly behind its turn; ids are unique.

    With `open_end` the last turn may lack its last results, if nothing stands behind it.
    """
    data = dump(messages)
    expected: list[str] = []
    seen: set[str] = set()
    for position, message in enumerate(data):
        assert message["role"] != "system" or position == 0, f"a system message at {position}"
        if message["role"] == "tool":
            assert expected, f"a stray result at {position}"
            assert message["toolCallId"] == expected.pop(0), f"a result out of order at {position}"
            continue
        assert not expected, f"message {position} stands before the results of {expected}"
        if message["role"] == "assistant":
            expected = [one["id"] for one in message.get("toolCalls", [])]
            assert all(expected), "a call without an id"
            assert len(expected) == len(set(expected)), f"an id twice in one turn: {expected}"
            assert not seen & set(expected), f"an id that was used before: {expected}"
            seen |= set(expected)
    assert open_end or not expected, f"no results of {expected}"


def check_sent(model: ScriptedModel) -> None:
    for request in model.calls:
        check_transcript(request.messages)


class Killed(BaseException):
    """The process is gone. Nothing may catch this."""


class Killer:
    """Kills at the n-th write to a store: before it is durable, or right after."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at = at
        self.after = after
        self.count = 0

    def writes(self) -> Iterator[None]:
        """Around one write: die first, or write and die."""
        self.count += 1
        if self.count == self.at and not self.after:
            raise Killed(f"before write {self.at}")
        yield
        if self.count == self.at and self.after:
            raise Killed(f"after write {self.at}")


class KillingCheckpoints:
    """A checkpoint store whose sessions die at a write."""

    def __init__(self, inner: Any, killer: Killer) -> None:
        self._inner = inner
        self._killer = killer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def open_session(self, session_id: str) -> OpenSession:
        return _KillingSession(await self._inner.open_session(session_id), self._killer)


class _KillingSession:
    suspends = True

    def __init__(self, inner: OpenSession, killer: Killer) -> None:
        self._inner = inner
        self._killer = killer
        self.fence = inner.fence

    @property
    def state(self) -> State:
        return self._inner.state

    @state.setter
    def state(self, value: State) -> None:
        self._inner.state = value

    async def save(self, record: Record) -> State:
        saved = self._inner.state
        for _ in self._killer.writes():
            saved = await self._inner.save(record)
        return saved

    async def close(self) -> None:
        await self._inner.close()


class KillingApprovals:
    """An approval store that dies at a write."""

    def __init__(self, inner: Any, killer: Killer) -> None:
        self._inner = inner
        self._killer = killer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def save(self, *args: Any) -> None:
        for _ in self._killer.writes():
            await self._inner.save(*args)

    async def decide(self, *args: Any) -> Any:
        held: Any = None
        for _ in self._killer.writes():
            held = await self._inner.decide(*args)
        return held

    async def consume(self, *args: Any) -> None:
        for _ in self._killer.writes():
            await self._inner.consume(*args)


def scripted_by_position(turns: Sequence[Any]) -> Callable[[Any], Any]:
    """A turn function: the turn whose number is that of the model turns already in the transcript."""
    return lambda request: turns[sum(m.role == "assistant" for m in request.messages)]
