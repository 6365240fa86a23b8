"""A user and an agent over a FileStore: steps that may be taken again after a power cut, as a user would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol
from unittest import mock

from crash_facts import Asked, Data, Decided, Ran, Saved, Story

from lousho_cli import (
    Agent,
    AgentExecutor,
    ApprovalDecision,
    Cancel,
    Checkpoint,
    FileStore,
    ModelRequest,
    PropagatingToolError,
    SessionAwaitingApprovalError,
    SessionBusyError,
    StoredApproval,
    Tool,
    ToolContext,
    resume_after_approval,
    tool,
)
from lousho_cli.execution.checkpoint import checkpoint_of
from lousho_cli.execution.fork_stores import Forked
from lousho_cli.execution.session import OpenSession
from lousho_cli.execution.state import Record, State
from lousho_cli.stores import compaction
from lousho_cli.stores.compaction import compact_journal
from lousho_cli.stores.file import FileCheckpoints
from lousho_cli.stores.file_approvals import FileApprovals
from lousho_cli.stores.folder import AgentFolder
from lousho_cli.stores.prune_file import FilePruner
from lousho_cli.testing import ScriptedModel

LEAD = "bot"
Note = Callable[[object], None]


def call(name: str, id: str | None = None, **args: Any) -> Data:
    return {"name": name, "args": args, "id": id or f"call_{name}"}


def turn(*calls: Data) -> Data:
    return {"tool_calls": list(calls)}


def json_of(checkpoint: Checkpoint) -> Data:
    return checkpoint.model_dump(mode="json", by_alias=True, exclude_none=True)


class Step(Protocol):
    """Something a user does. Taking it again, when they were not told that it is done, does no harm."""

    async def take(self, talk: Talk) -> None: ...


class Talk:
    """One life of the process: an agent on the store in a folder, each fact noted as it becomes true.

    Attributes:
        ran: how often each call ran in this life.
        asked: the model turns that were asked for, in order.
        repeats: how often a call was allowed to run again by a human.
        models: whose requests can be looked at.
        told: whether the tool `dies` may live.
    """

    def __init__(
        self, folder: Path, scripts: dict[str, Sequence[Any]], story: Story, note: Note, *, told: bool = False
    ) -> None:
        store = FileStore(folder, LEAD, story.limit)
        self.checkpoints = NotedCheckpoints(store.checkpoints, story, note)
        self.approvals = NotedApprovals(store.approvals, note)
        self.ran: Counter[tuple[str, str]] = Counter()
        self.asked: list[Asked] = []
        self.repeats: Counter[tuple[str, str]] = Counter()
        self.models: list[ScriptedModel] = []
        self.told = told
        self.cancel = Cancel()
        self._note = note
        crew = [self._agent(name, script, ()) for name, script in scripts.items() if name != LEAD]
        self.agent = self._agent(LEAD, scripts[LEAD], crew)

    def _agent(self, name: str, script: Sequence[Any], crew: Sequence[Agent]) -> Agent:
        def play(request: ModelRequest) -> Any:
            index = sum(message.role == "assistant" for message in request.messages)
            asked = Asked(str(request.session_id), name, index)
            self.asked.append(asked)
            self._note(asked)
            return script[index]

        model = ScriptedModel([play], on_exhausted="repeat-last")
        self.models.append(model)
        calls = (each for each in script if isinstance(each, dict))
        names = dict.fromkeys(one["name"] for each in calls for one in each["tool_calls"])
        tools = [self._tool(each) for each in names if not each.startswith("delegate_")]
        return Agent(name, f"you are {name}", tools, provider=model, subagents=crew)

    def _tool(self, name: str) -> Tool:
        async def body(ctx: ToolContext, n: int = 0) -> str:
            self.ran[str(ctx.session_id), ctx.tool_call_id] += 1
            self._note(Ran(str(ctx.session_id), ctx.tool_call_id, name))
            if name == "dies" and not self.told:
                raise PropagatingToolError("died")
            if name == "stop":
                self.cancel.cancel("enough")
            return f"{name} did {n}"

        interrupted: dict[str, Literal["ask", "fail"]] = {"risky": "ask", "once": "fail"}
        gated = name.startswith("gated")
        return tool(name=name, needs_approval=gated, on_interrupt=interrupted.get(name))(body)

    async def load(self, session: str) -> Data | None:
        found = await self.checkpoints.load(session)
        return None if found is None else json_of(found)

    async def send(self, session: str, text: str | None = None) -> None:
        """What a user does to have a text answered, or, without one, to have the run finished."""
        found = await self.load(session)
        if found is not None and text in said(found):
            text = None
        if text is None and (found is None or found["status"] == "finished"):
            return
        if found is None or found["status"] != "awaiting-approval" or text is not None:
            await self._execute(session, text or [])
        await self.settle(session)

    async def _execute(self, session: str, given: Any) -> None:
        model = self.agent.provider
        assert model is not None
        await AgentExecutor.execute(
            agent=self.agent, input=given, provider=model, session_id=session, cancel=self.cancel,
            checkpoint_store=self.checkpoints, approval_store=self.approvals, tool_concurrency=1,
        )  # fmt: skip

    async def go_on(self, session: str) -> None:
        """Resume with the decision that is recorded; what is still undecided stays as it is."""
        found = await self.load(session)
        if found is None or found["status"] == "finished":
            return
        try:
            await self._execute(session, [])
        except SessionAwaitingApprovalError:
            return
        await self.settle(session)

    async def settle(self, session: str) -> None:
        """Look at each call that a crash interrupted, and let it run again."""
        while (asked := await self.pending(session)) and asked["kind"] == "interrupted":
            self.repeats[session, asked["toolCallId"]] += 1
            await self.decide(session, asked, approved=True)

    async def pending(self, session: str) -> Data | None:
        found = await self.load(session)
        approval: Data | None = found["engine"].get("approval") if found is not None else None
        return approval

    async def decide(self, session: str, asked: Data, **decision: Any) -> None:
        held = await self.approvals.get(asked["id"])
        assert held is not None, f"the request {asked['id']} is lost"
        if held.decision is not None:
            await self._execute(session, [])
            return
        model = self.agent.provider
        assert model is not None
        await resume_after_approval(
            {"id": asked["id"], "by": "ann", **decision}, self.approvals, None, model,
            {"agent": self.agent}, self.checkpoints,
        )  # fmt: skip


def said(checkpoint: Data) -> list[Any]:
    """What the user said, waiting input included."""
    messages = [*checkpoint["messages"], *checkpoint["engine"].get("queue", [])]
    return [message["content"] for message in messages if message["role"] == "user"]


class NotedCheckpoints(FileCheckpoints):
    """The checkpoint store, with each save noted when it returned."""

    def __init__(self, inner: FileCheckpoints, story: Story, note: Note) -> None:
        super().__init__(inner._folder, inner._limit)
        self.story = story
        self.note = note

    def add(self, session: str, kind: str, state: State | None, *, keep_history: bool = True) -> None:
        data = json_of(checkpoint_of(state)) if state is not None and state.exists else None
        self.note(Saved(session, self.story.add(session, kind, data, keep_history=keep_history)))

    async def open_session(self, session_id: str) -> OpenSession:
        return _NotedSession(await super().open_session(session_id), session_id, self)

    async def fork_session(self, session_id: str, seq: int, new_session_id: Any, make: Any) -> Forked:
        forked = await super().fork_session(session_id, seq, new_session_id, make)
        self.add(forked.session_id, "fork", forked.read(), keep_history=False)
        return forked

    @property
    def folder(self) -> AgentFolder:
        return self._folder

    def lock(self, session_id: str) -> Path:
        return self._folder.lock(session_id)

    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        await super().delete(session_id, keep_history=keep_history)
        if not keep_history:
            self.add(session_id, "delete", None, keep_history=False)


class _NotedSession:
    suspends = False

    def __init__(self, inner: OpenSession, session_id: str, store: NotedCheckpoints) -> None:
        self.state = inner.state
        self.fence = inner.fence
        self._inner = inner
        self._session_id = session_id
        self._store = store

    async def save(self, record: Record) -> State:
        self.state = await self._inner.save(record)
        self._store.add(self._session_id, record.kind, self.state)
        return self.state

    async def close(self) -> None:
        await self._inner.close()


class NotedApprovals(FileApprovals):
    """The approval store, with each decision noted when it was recorded."""

    def __init__(self, inner: FileApprovals, note: Note) -> None:
        super().__init__(inner._folder)
        self.note = note

    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        held = await super().decide(approval_id, decision)
        assert held.decision is not None
        self.note(Decided(str(held.pending.session_id), approval_id, held.decision.approved))
        return held


@dataclass(frozen=True)
class Say:
    """Have a text answered; without one, have the run finished."""

    text: str | None
    session: str = "s"

    async def take(self, talk: Talk) -> None:
        talk.told = True
        await talk.send(self.session, self.text)


@dataclass(frozen=True)
class SayAndDie:
    """Say a text whose run ends in the middle of a turn."""

    text: str

    async def take(self, talk: Talk) -> None:
        found = await talk.load("s")
        if found is not None and "call_dies" in _calls(found) and "call_a" in _results(found):
            return
        talk.told = False
        try:
            await talk.send("s", self.text)
        except PropagatingToolError:
            return
        raise AssertionError("the run was to die")


@dataclass(frozen=True)
class SayAndStop:
    """Say a text whose run is told to stop."""

    text: str

    async def take(self, talk: Talk) -> None:
        found = await talk.load("s")
        if found is not None and "call_stop" in _results(found):
            talk.cancel.cancel("enough")
        if found is None or found.get("finishReason") != "aborted":
            await talk.send("s", self.text)
        talk.cancel = Cancel()


@dataclass(frozen=True)
class Decide:
    """Decide the call of a tool, and go on."""

    tool: str
    approved: bool = True
    arguments: Data | None = None
    session: str = "s"

    async def take(self, talk: Talk) -> None:
        asked = await talk.pending(self.session)
        if asked is None:
            await talk.send(self.session)
        elif asked["kind"] == "needs-approval" and asked["toolName"] == self.tool:
            more = {} if self.arguments is None else {"arguments": self.arguments}
            note = {} if self.approved else {"note": "not today"}
            await talk.decide(self.session, asked, approved=self.approved, **more, **note)
        await talk.settle(self.session)


@dataclass(frozen=True)
class RecordDecision:
    """Record a decision and start nothing; the first one counts, whoever comes behind."""

    tool: str
    approved: bool
    counts: bool

    async def take(self, talk: Talk) -> None:
        asked = await talk.pending("s")
        if asked is None or asked["toolName"] != self.tool or asked["kind"] != "needs-approval":
            return
        wanted = ApprovalDecision(id=asked["id"], approved=self.approved, by="ann")
        held = await talk.approvals.decide(asked["id"], wanted)
        assert held.decision is not None
        assert held.decision.approved == (self.approved == self.counts), "a decision was overruled"


@dataclass(frozen=True)
class GoOn:
    """Resume with the decision that is recorded."""

    async def take(self, talk: Talk) -> None:
        await talk.go_on("s")


@dataclass(frozen=True)
class Fork:
    """Fork a session, unless that is done."""

    step: int
    name: str
    text: str | None = None
    session: str = "s"

    async def take(self, talk: Talk) -> None:
        if await talk.load(self.name) is None:
            patch = {} if self.text is None else {"append_input": self.text}
            await AgentExecutor.fork(
                session_id=self.session, from_step=self.step, new_session_id=self.name, patch=patch,
                checkpoint_store=talk.checkpoints,
            )  # fmt: skip


@dataclass(frozen=True)
class Delete:
    """Delete a session."""

    keep_history: bool = False
    session: str = "s"

    async def take(self, talk: Talk) -> None:
        if await talk.load(self.session) is not None or not self.keep_history:
            await talk.checkpoints.delete(self.session, keep_history=self.keep_history)
        assert await talk.load(self.session) is None, "a deleted session is there"


@dataclass(frozen=True)
class Compact:
    """Compact a session's journal, however little that saves."""

    session: str = "s"

    async def take(self, talk: Talk) -> None:
        with mock.patch.object(compaction, "MOST", 1000):
            compact_journal(talk.checkpoints.folder, self.session, talk.checkpoints.story.limit)


@dataclass(frozen=True)
class Prune:
    """Remove a session as `lousho prune` does."""

    session: str = "s"

    async def take(self, talk: Talk) -> None:
        found = await talk.load(self.session)
        if found is not None:
            store = talk.checkpoints
            assert FilePruner(store.folder, store.story.limit).remove(self.session, found["engine"]["seq"])
            store.add(self.session, "delete", None, keep_history=False)
        assert await talk.load(self.session) is None, "a pruned session is there"


@dataclass(frozen=True)
class LoseSession:
    """While a runner sleeps, its lock file is removed and another runner goes on; the first one wakes up."""

    text: str

    async def take(self, talk: Talk) -> None:
        if await talk.load("s") is None:
            asleep = await talk.checkpoints.open_session("s")
            talk.checkpoints.lock("s").unlink()
            await talk.send("s", self.text)
            try:
                await asleep.save(Record("save", "in-progress", 9))
            except SessionBusyError:
                await asleep.close()
                return
            raise AssertionError("two runners have written to one session")
        await talk.send("s", self.text)


def _calls(checkpoint: Data) -> set[str]:
    return {one["id"] for message in checkpoint["messages"] for one in message.get("toolCalls", ())}


def _results(checkpoint: Data) -> set[str]:
    waiting = checkpoint["engine"].get("results", {})
    return {*waiting, *(m["toolCallId"] for m in checkpoint["messages"] if m["role"] == "tool")}
