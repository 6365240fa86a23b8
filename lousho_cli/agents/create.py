"""`create_agent`: an agent with its model and its store in one object."""

from __future__ import annotations

import asyncio
import queue
import secrets
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..errors import ConfigurationError, NothingToDoError
from ..execution.agent import Agent, Dynamic
from ..execution.budget import Budget
from ..execution.cancel import Cancel
from ..execution.deciding import record_decision
from ..execution.events import Event
from ..execution.executor import AgentExecutor, get_checkpoint_history, resume_after_approval
from ..execution.hooks import Hooks
from ..execution.intake import Input
from ..execution.model_settings import settings_of
from ..execution.output import OutputFormat
from ..execution.patience import RetryPolicy
from ..execution.protocols import ApprovalStore, CheckpointStore, ModelSettings, Provider, StoredApproval
from ..execution.records import (
    ApprovalDecision,
    ExecutionResult,
    ForkPatch,
    ForkResult,
    HistoryEntry,
)
from ..execution.redaction import Redaction
from ..execution.sync import run_sync
from ..execution.tools import Tool
from ..execution.unset import UNSET
from ..providers.resolve import resolve_model
from ..telemetry import current_tracing
from .mcp.settings import servers_of
from .mcp.toolset import McpToolset


class Store(Protocol):
    """Checkpoints and approvals together: MemoryStore, FileStore, or your own."""

    @property
    def checkpoints(self) -> CheckpointStore: ...

    @property
    def approvals(self) -> ApprovalStore: ...


def create_agent(
    *,
    name: str | None = None,
    instructions: Dynamic[str | None] = None,
    model: Dynamic[str | None] = None,
    provider: Provider | None = None,
    tools: Dynamic[Iterable[Tool]] = (),
    subagents: Iterable[Agent | DurableAgent] | None = None,
    store: Store | None = None,
    description: str = "",
    max_steps: int | None = None,
    approval_ttl: float | None = None,
    tool_concurrency: int | None = None,
    on_agent_drift: str = "warn",
    hooks: Hooks | None = None,
    model_settings: ModelSettings | Mapping[str, Any] | None = None,
    retries: RetryPolicy | Mapping[str, Any] | None = None,
    fallbacks: Iterable[Provider | str] | None = None,
    budget: Budget | Mapping[str, Any] | None = None,
    output: Any = None,
    redaction: Redaction | Mapping[str, Any] | bool | None = None,
    mcp: Mapping[str, Mapping[str, Any]] | None = None,
) -> DurableAgent:
    """Make an agent that keeps its sessions in a store.

    Args:
        name: names it in checkpoints and approvals; default `default`.
        instructions, model, tools: as for Agent; each may be a function of the run's context.
        provider: the model; default the one that `model` names.
        subagents: agents it may delegate to, as Agent or as another of these.
        store: where its sessions live; None keeps nothing.
        description: what it is for; a lead reads it.
        max_steps: model turns a run may take; default 10.
        approval_ttl: seconds a human has to decide; default no limit.
        tool_concurrency: tool calls of one turn that run at once; default 8.
        on_agent_drift: `warn`, `error` or `ignore`.
        hooks: functions around model and tool calls.
        model_settings: how the model is asked: temperature, timeout and the like.
        retries: when to ask the model again after a failure that may pass; default 4 attempts.
        fallbacks: models, or names of models, to ask in this order where the first cannot be asked.
        budget: what a run may use up: tokens, money, seconds, steps; default no limit.
        output: the shape of a final answer: a pydantic model or another type, or a JSON schema as a mapping;
            default free text.
        redaction: True takes keys and tokens out of all that is stored; a mapping adds `patterns` and `keys`.
        mcp: MCP servers to have tools from, by name, each with the keys of `[mcp.NAME]` in an `agent.toml`. A
            run starts them. Relative folders are relative to the current one.

    Raises:
        ConfigurationError: there is no model, two tools share a name, or a setting is impossible.
    """
    if provider is None:
        if not isinstance(model, str):
            raise ConfigurationError(
                "there is no model to ask",
                code="LOUSHO_CONFIG_MISSING_PROVIDER",
                hint='pass provider=, or model="demo"',
            )
        provider = resolve_model(model, Path.cwd())
    agent = Agent(
        name or "default",
        instructions,
        tools,
        model,
        description=description,
        subagents=[each.agent if isinstance(each, DurableAgent) else each for each in subagents or ()],
        provider=provider,
        hooks=hooks,
        max_steps=max_steps,
        model_settings=settings_of(model_settings),
        retries=retries,
        fallbacks=None if fallbacks is None else [_model(each) for each in fallbacks],
        budget=budget,
        output=OutputFormat.of(output),
        toolsets=[McpToolset(server) for server in servers_of(mcp or {}, Path.cwd())],
    )
    options = {
        "approval_ttl": approval_ttl,
        "tool_concurrency": tool_concurrency,
        "on_agent_drift": on_agent_drift,
        "hooks": hooks,
        "redaction": Redaction.of(redaction),
    }
    return DurableAgent(agent, provider, store, options)


def _model(given: Provider | str) -> Provider:
    return resolve_model(given, Path.cwd()) if isinstance(given, str) else given


class DurableAgent:
    """An agent, its model and its store. Make one with `create_agent`.

    Attributes:
        agent: what the engine runs.
        approvals: what its sessions wait for.
    """

    def __init__(
        self, agent: Agent, provider: Provider, store: Store | None, options: Mapping[str, Any]
    ) -> None:
        self.agent = agent
        self.approvals = AgentApprovals(self)
        self._provider = provider
        self._store = store
        self._options = options

    async def send(self, input: Input, *, session_id: str | None = None, **options: Any) -> ExecutionResult:
        """Send a message to a session, resuming first what is unfinished.

        Args:
            input: a text, a message, or a list of messages.
            session_id: the session; without one a new session is begun (its id is in the result).
            options: further keywords of `AgentExecutor.execute`.
        """
        if session_id is None and self._store is not None:
            session_id = f"session-{secrets.token_hex(6)}"
        return await AgentExecutor.execute(input=input, session_id=session_id, **self.execution(options))

    def send_sync(self, input: Input, *, session_id: str | None = None, **options: Any) -> ExecutionResult:
        """`send` for callers without an event loop."""
        return run_sync(lambda: self.send(input, session_id=session_id, **options))

    async def stream(
        self, input: Input, *, session_id: str | None = None, **options: Any
    ) -> AsyncIterator[Event]:
        """Like `send`, yielding each event as it happens; the last is `run.done`.

        Leaving the loop early stops the run at a safe point. What `send` raises is raised here.
        """
        _no_observer(options)
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        cancel = options.pop("cancel", None) or Cancel()
        run = asyncio.ensure_future(
            self.send(input, session_id=session_id, on_event=events.put_nowait, cancel=cancel, **options)
        )
        run.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
        finally:
            if not run.done():
                cancel.cancel("the stream was left")
                await asyncio.wait([run])
            if not run.cancelled() and (problem := run.exception()) is not None:
                raise problem

    def stream_sync(self, input: Input, *, session_id: str | None = None, **options: Any) -> Iterator[Event]:
        """`stream` for callers without an event loop."""
        _no_observer(options)
        events: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
        cancel = options.pop("cancel", None) or Cancel()

        def work() -> None:
            try:
                self.send_sync(input, session_id=session_id, on_event=events.put, cancel=cancel, **options)
            except BaseException as error:
                events.put(error)
            else:
                events.put(None)

        thread = threading.Thread(target=work, name="lousho-stream", daemon=True)
        thread.start()
        try:
            while (event := events.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            if thread.is_alive() and events.empty():
                cancel.cancel("the stream was left")
            thread.join()
            while not events.empty():
                left = events.get()
                if isinstance(left, BaseException):
                    raise left

    async def resume(self, session_id: str, **options: Any) -> ExecutionResult | None:
        """Finish the unfinished run of a session; None if there is none."""
        try:
            return await AgentExecutor.execute(input=None, session_id=session_id, **self.execution(options))
        except NothingToDoError:
            return None

    def resume_sync(self, session_id: str, **options: Any) -> ExecutionResult | None:
        """`resume` for callers without an event loop."""
        return run_sync(lambda: self.resume(session_id, **options))

    async def fork(
        self,
        session_id: str,
        *,
        from_step: int | None = None,
        at: int | None = None,
        patch: ForkPatch | Mapping[str, Any] | None = None,
        new_session_id: str | None = None,
    ) -> ForkResult:
        """Make a new session from a kept save of another; see `AgentExecutor.fork`."""
        return await AgentExecutor.fork(
            session_id=session_id,
            from_step=from_step,
            at=at,
            checkpoint_store=self.store.checkpoints,
            patch=patch,
            new_session_id=new_session_id,
        )

    def fork_sync(self, session_id: str, **options: Any) -> ForkResult:
        """`fork` for callers without an event loop."""
        return run_sync(lambda: self.fork(session_id, **options))

    def session(self, session_id: str) -> AgentSession:
        """One session of this agent, to talk to without repeating its id."""
        return AgentSession(self, session_id)

    @property
    def store(self) -> Store:
        """The store.

        Raises:
            ConfigurationError: the agent has none.
        """
        if self._store is None:
            raise ConfigurationError(
                f"agent {self.agent.name!r} has no store",
                code="LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE",
                hint="pass store= to create_agent",
            )
        return self._store

    def execution(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords of `execute` for this agent, `options` winning."""
        stores: dict[str, Any] = {}
        if self._store is not None:
            stores = {
                "checkpoint_store": self._store.checkpoints,
                "approval_store": self._store.approvals,
            }
        known = {"agent": self.agent, "provider": self._provider, "tracing": current_tracing()}
        return {**known, **stores, **self._options, **options}


class AgentApprovals:
    """What the sessions of an agent wait for."""

    def __init__(self, agent: DurableAgent) -> None:
        self._agent = agent

    async def list(self, *, status: str | None = "pending") -> Sequence[StoredApproval]:
        """The approvals of that status; None for all."""
        return await self._agent.store.approvals.list(status=status)

    def list_sync(self, *, status: str | None = "pending") -> Sequence[StoredApproval]:
        """`list` for callers without an event loop."""
        return run_sync(lambda: self.list(status=status))

    async def resolve(
        self,
        decision: ApprovalDecision | Mapping[str, Any] | str,
        approved: bool | None = None,
        *,
        note: str | None = None,
        arguments: dict[str, Any] | None = None,
        result: Any = UNSET,
        by: str | None = None,
        run: bool = True,
    ) -> ExecutionResult | None:
        """Decide an approval and go on with its run.

        Args:
            decision: the approval's id, or a whole decision.
            approved: True or False, with an id.
            note, arguments, result, by: as in ApprovalDecision, with an id.
            run: False only records the decision, and returns None.
        """
        if isinstance(decision, str):
            decision = {"id": decision, "approved": approved, "note": note, "arguments": arguments, "by": by}
            if result is not UNSET:
                decision["result"] = result
        elif (approved, note, arguments, result, by) != (None, None, None, UNSET, None):
            raise ConfigurationError(
                "a whole decision was given, and parts of one beside it", hint="give an id, or a decision"
            )
        lead = self._agent
        options = lead.execution({})
        provider, checkpoints = options.pop("provider"), lead.store.checkpoints
        if not run:
            await record_decision(
                decision,
                lead.store.approvals,
                checkpoints,
                agent=lead.agent,
                provider=provider,
                on_agent_drift=options["on_agent_drift"],
            )
            return None
        del options["checkpoint_store"], options["approval_store"]
        return await resume_after_approval(
            decision, lead.store.approvals, None, provider, options, checkpoints
        )

    def resolve_sync(self, *args: Any, **options: Any) -> ExecutionResult | None:
        """`resolve` for callers without an event loop."""
        return run_sync(lambda: self.resolve(*args, **options))


class AgentSession:
    """One session of an agent."""

    def __init__(self, agent: DurableAgent, session_id: str) -> None:
        self.id = session_id
        self._agent = agent

    async def send(self, input: Input, **options: Any) -> ExecutionResult:
        """See DurableAgent.send."""
        return await self._agent.send(input, session_id=self.id, **options)

    def send_sync(self, input: Input, **options: Any) -> ExecutionResult:
        """`send` for callers without an event loop."""
        return run_sync(lambda: self.send(input, **options))

    def stream(self, input: Input, **options: Any) -> AsyncIterator[Event]:
        """See DurableAgent.stream."""
        return self._agent.stream(input, session_id=self.id, **options)

    def stream_sync(self, input: Input, **options: Any) -> Iterator[Event]:
        """See DurableAgent.stream_sync."""
        return self._agent.stream_sync(input, session_id=self.id, **options)

    async def resume(self, **options: Any) -> ExecutionResult | None:
        """See DurableAgent.resume."""
        return await self._agent.resume(self.id, **options)

    def resume_sync(self, **options: Any) -> ExecutionResult | None:
        """`resume` for callers without an event loop."""
        return run_sync(lambda: self.resume(**options))

    async def fork(self, **options: Any) -> ForkResult:
        """See DurableAgent.fork."""
        return await self._agent.fork(self.id, **options)

    def fork_sync(self, **options: Any) -> ForkResult:
        """`fork` for callers without an event loop."""
        return run_sync(lambda: self.fork(**options))

    async def history(self, *, limit: int | None = None) -> Sequence[HistoryEntry] | None:
        """The kept saves, newest first; None if the store keeps none."""
        return await get_checkpoint_history(self._agent.store.checkpoints, self.id, limit=limit)

    def history_sync(self, *, limit: int | None = None) -> Sequence[HistoryEntry] | None:
        """`history` for callers without an event loop."""
        return run_sync(lambda: self.history(limit=limit))


def _no_observer(options: Mapping[str, Any]) -> None:
    if "on_event" in options:
        raise ConfigurationError("a stream yields the events itself", hint="leave on_event out, or use send")
