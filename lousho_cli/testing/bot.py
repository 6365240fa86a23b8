"""An agent on the store under test, whose model and tools note each thing they do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from ..agents.tool import tool
from ..errors import PropagatingToolError
from ..execution.agent import Agent
from ..execution.executor import AgentExecutor, resume_after_approval
from ..execution.protocols import ApprovalStore, CheckpointStore, ModelRequest
from ..execution.records import Checkpoint, ExecutionResult, ForkResult, HistoryEntry
from ..execution.session import OpenSession, open_session
from ..execution.state import Record, State
from ..execution.tools import Tool, ToolContext
from ..providers.scripted import Reply, ScriptedModel
from ..stores.memory import MemoryStore
from .lives import Lives, keeping_history

SESSION = "s"


def asks(*names: str) -> Reply:
    """A model turn that calls these tools, once each, with ids `call_<name>`."""
    calls = [{"name": name, "args": {}, "id": f"call_{name}"} for name in names]
    return {"tool_calls": calls, "usage": {"input_tokens": 2, "output_tokens": 1}}


def delegates(name: str) -> Reply:
    """A model turn that hands a task to the sub-agent of that name, with id `call_1`."""
    return {"tool_calls": [{"name": f"delegate_{name}", "args": {"input": "Look."}, "id": "call_1"}]}


class Died(BaseException):
    """The process is gone."""


class Bot:
    """Runs an agent; each run is a life of its own, with the store as that process finds it.

    Its model plays the turn whose index is the number of model turns in the transcript, so what it generates
    twice can be seen. Its tools add their names to the list `did` of a business state that is an object.

    Args:
        checkpoints: where its session lives.
        script: the turns.
        tools: names of tools without arguments; one that begins with `gated` needs an approval.
        approvals: where its requests wait.

    Attributes:
        did: the tools that ran, in order.
        generated: the indexes of the turns that were generated, in order.
        requests: what the model was asked, in order.
        dying: tools whose next run ends the run, as a dying process would.
        watch: called with the name of each tool, and with `model`, before it does anything.
    """

    def __init__(
        self, checkpoints: Lives[CheckpointStore], script: Sequence[Reply], tools: Iterable[str] = (),
        *, approvals: Lives[ApprovalStore] | None = None, subagents: Iterable[Agent] = (),
    ) -> None:  # fmt: skip
        self.checkpoints = checkpoints
        self.approvals: Lives[ApprovalStore] = approvals or Lives(MemoryStore().approvals)
        self.did: list[str] = []
        self.generated: list[int] = []
        self.requests: list[ModelRequest] = []
        self.dying: set[str] = set()
        self.watch: Callable[[str], Awaitable[object]] | None = None
        self._model = self.model(script)
        self._subagents = tuple(subagents)
        self._tools = [self.tool(name) for name in tools]

    def model(self, script: Sequence[Reply]) -> ScriptedModel:
        async def play(request: ModelRequest) -> Reply:
            index = sum(message.role == "assistant" for message in request.messages)
            self.generated.append(index)
            self.requests.append(request)
            await self._watched("model")
            return script[index]

        return ScriptedModel([play], on_exhausted="repeat-last")

    def tool(self, name: str) -> Tool:
        async def run(ctx: ToolContext) -> str:
            await self._watched(name)
            self.did.append(name)
            if name in self.dying:
                self.dying.remove(name)
                raise PropagatingToolError(f"{name} died")
            if isinstance(ctx.business_state, dict):
                ctx.business_state.setdefault("did", []).append(name)
            return f"{name} done"

        return tool(run, name=name, needs_approval=name.startswith("gated"))

    def agent(self, **changes: Any) -> Agent:
        options: dict[str, Any] = {
            "name": "bot", "instructions": "Be brief.", "tools": self._tools, "subagents": self._subagents,
        }  # fmt: skip
        return Agent(**{**options, **changes})

    async def run(self, input: str = "", session: str = SESSION, **options: Any) -> ExecutionResult:
        """One life: sends `input`, or goes on without."""
        known = {
            "agent": self.agent(), "checkpoint_store": self.checkpoints.next(),
            "approval_store": self.approvals.next(), "provider": self._model,
        }  # fmt: skip
        return await AgentExecutor.execute(input=input, session_id=session, **{**known, **options})

    async def crash(self, input: str = "", session: str = SESSION, **options: Any) -> None:
        """One life, which a dying tool ends."""
        try:
            await self.run(input, session, **options)
        except PropagatingToolError:
            return
        raise AssertionError("the tool that was to die was not run")

    async def dies_after(self, saves: int, input: str, session: str) -> bool:
        """One life that ends right after so many saves; False if it was over before."""
        try:
            await self.run(
                input, session, checkpoint_store=_Mortal(self.checkpoints.next(), saves), tool_concurrency=1
            )
        except Died:
            return True
        return False

    async def decide(self, waiting: ExecutionResult, approved: bool, **decision: Any) -> ExecutionResult:
        """One life: decides what a run waits for, and goes on."""
        return await self.decide_over(self.checkpoints.next(), waiting, approved, **decision)

    async def decide_over(
        self, store: CheckpointStore | None, waiting: ExecutionResult, approved: bool, **decision: Any
    ) -> ExecutionResult:
        """One life: decides what a run waits for, and goes on with the session in `store`."""
        wanted = {"id": waiting.approval_id, "approved": approved, "by": "Ann", **decision}
        return await resume_after_approval(
            wanted, self.approvals.next(), None, self._model, {"agent": self.agent()}, store
        )

    async def fork(self, **options: Any) -> ForkResult:
        known = {"session_id": SESSION, "checkpoint_store": self.checkpoints.next()}
        return await AgentExecutor.fork(**{**known, **options})

    async def load(self, session: str = SESSION) -> Checkpoint:
        found = await self.checkpoints.next().load(session)
        assert found is not None, f"session {session!r} is not there"
        return Checkpoint.of(found)

    async def history(self, session: str = SESSION) -> list[HistoryEntry]:
        entries = await keeping_history(self.checkpoints.next()).history(session)
        return [HistoryEntry.of(entry) for entry in entries]

    async def _watched(self, name: str) -> None:
        if self.watch is not None:
            await self.watch(name)


def results(result: ExecutionResult | Checkpoint) -> dict[str, Any]:
    """The contents of the tool results in a transcript, by call id, in order."""
    return {str(m.tool_call_id): m.content for m in result.messages if m.role == "tool"}


def said(result: ExecutionResult | Checkpoint) -> list[Any]:
    """What the user said, in order."""
    return [message.content for message in result.messages if message.role == "user"]


def roles(result: ExecutionResult | Checkpoint) -> list[str]:
    return [message.role for message in result.messages]


class _Mortal:
    """A store whose process dies right after so many saves."""

    def __init__(self, store: CheckpointStore, saves: int) -> None:
        self._store = store
        self.saves = saves

    async def open_session(self, session_id: str) -> OpenSession:
        return _MortalSession(await open_session(self._store, session_id), self)


class _MortalSession:
    suspends = True

    def __init__(self, session: OpenSession, store: _Mortal) -> None:
        self.state = session.state
        self.fence = session.fence
        self._session = session
        self._store = store

    async def save(self, record: Record) -> State:
        self.state = await self._session.save(record)
        self._store.saves -= 1
        if self._store.saves == 0:
            raise Died
        return self.state

    async def close(self) -> None:
        await self._session.close()
