"""Entering a session: what its state asks for before the loop may run, and the result after it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, cast

from ..errors import AgentChangedError, ConfigurationError, SessionAwaitingApprovalError
from .agent import Agent
from .approval import consume
from .cancel import Cancel
from .events import Observer
from .fingerprint import drift, fingerprint, missing_tools
from .intake import Input, normalise, queue_input, start_run
from .messages import JsonObject, MessageData
from .protocols import ApprovalStore, Provider, StoredApproval
from .records import (
    ApprovalDecision,
    ExecutionResult,
    FinishReason,
    Messages,
    PendingApproval,
    ToolCalls,
    Usage,
)
from .run import Run, Settings
from .session import OpenSession
from .state import Record, RunStart, State
from .tools import InvalidArgumentsError, ToolRegistry
from .unset import UNSET
from .values import clean, message_of, to_json_value

DEFAULT_MAX_STEPS = 10
DEFAULT_CONCURRENCY = 8
DRIFT_POLICIES = ("warn", "error", "ignore")

logger = logging.getLogger("lousho")


def model_of(agent: Agent, provider: Provider) -> str:
    """The id of the model a run asks: the agent's, else the provider's own."""
    return agent.model or str(getattr(provider, "model", None) or type(provider).__name__)


class Entry:
    """One way into a session for run, resume, approve and retry: what to do is read off the state."""

    def __init__(
        self,
        *,
        agent: Agent,
        provider: Provider | None,
        registry: ToolRegistry | None,
        approvals: ApprovalStore | None,
        max_steps: int | None,
        concurrency: int,
        on_agent_drift: str,
        business_state: Any,
        observer: Observer | None,
        cancel: Cancel,
    ) -> None:
        if provider is None:
            raise ConfigurationError(
                "there is no model to ask", code="LOUSHO_CONFIG_MISSING_PROVIDER", hint="pass provider="
            )
        if on_agent_drift not in DRIFT_POLICIES:
            raise ConfigurationError(
                f"on_agent_drift is {on_agent_drift!r}", hint="use warn, error or ignore"
            )
        if max_steps is not None and max_steps < 1:
            raise ConfigurationError(f"max_steps is {max_steps}", hint="use a number from 1")
        if concurrency < 1:
            raise ConfigurationError(f"tool_concurrency is {concurrency}", hint="use a number from 1")
        self._agent = agent
        self._provider = provider
        self._registry = registry if registry is not None else agent.tools
        self._approvals = approvals
        self._max_steps = max_steps
        self._concurrency = concurrency
        self._on_drift = on_agent_drift
        self._business_state = UNSET if business_state is UNSET else to_json_value(business_state)
        self._observer = observer
        self._cancel = cancel
        self._model = model_of(agent, provider)
        self._fingerprint = fingerprint(agent, self._registry, self._model)

    async def enter(self, session: OpenSession, given: Input) -> ExecutionResult:
        """Take the input in, then run until there is nothing more to do now."""
        messages = normalise(given)
        resumed = session.state.status != "finished"
        changes = await self._resume(session, messages) if resumed else await self._start(session, messages)
        run = Run(session, self._settings(session.state))
        await run.tell("run.start", agent=self._agent.name, model=self._model, resumed=resumed)
        if changes:
            await run.tell("agent.drift", changes=changes)
        reason = await run.drive()
        result = _result(session.state, reason, run)
        done: JsonObject = {"finishReason": reason, "steps": result.steps, "usage": session.state.usage}
        if result.approval_id:
            done["approvalId"] = result.approval_id
        await run.tell("run.done", **done)
        return result

    async def _start(self, session: OpenSession, messages: Sequence[MessageData]) -> list[str]:
        record = start_run(
            session.state,
            messages,
            max_steps=self._max_steps or self._agent.max_steps or DEFAULT_MAX_STEPS,
            agent=self._agent.name,
            system=clean(self._agent.instructions),
            fingerprint=self._fingerprint,
            run_config={"model": self._model},
            business_state=self._business_state,
        )
        await session.save(record)
        return []

    async def _resume(self, session: OpenSession, messages: Sequence[MessageData]) -> list[str]:
        """Settle what the state waits for; returns what changed in the agent."""
        decided = await self._decision(session.state)
        if decided is not None and not cast(Any, decided.decision).approved:
            await self._consume(session, decided)
            decided = None
        changes = self._check_agent(session.state)
        if decided is not None:
            await self._consume(session, decided)
        queued = queue_input(session.state, messages)
        if queued is not None:
            await session.save(queued)
        await self._save_options(session)
        return changes

    async def _decision(self, state: State) -> StoredApproval | None:
        """The recorded decision the session waits for; None if it waits for none.

        Raises:
            SessionAwaitingApprovalError: nobody has decided yet.
        """
        if state.status != "awaiting-approval":
            return None
        approval_id = str((state.approval or {}).get("id", ""))
        stored = await self._approvals.get(approval_id) if self._approvals is not None else None
        if stored is None or stored.decision is None:
            raise SessionAwaitingApprovalError(str(state.session_id), approval_id)
        return stored

    async def _consume(self, session: OpenSession, stored: StoredApproval) -> None:
        assert self._approvals is not None
        await session.save(consume(session.state, stored, session.fence))
        await self._approvals.consume(stored.pending.id)

    def check_approvable(self, state: State, decision: ApprovalDecision) -> None:
        """Refuse an approval that could not be carried out.

        Raises:
            AgentChangedError: the tool is gone, or the agent changed under `error`.
            ConfigurationError: the edited arguments do not fit the tool.
        """
        self._check_agent(state, warn=False)
        tool = self._registry.get(str((state.approval or {}).get("toolName")))
        if decision.arguments is None or tool is None:
            return
        try:
            tool.bind(decision.arguments)
        except InvalidArgumentsError as error:
            raise ConfigurationError(
                f"the edited arguments do not fit {tool.name}: {message_of(error)}",
                code="LOUSHO_TOOL_ARGS_INVALID",
                hint="the request is still undecided",
            ) from error

    def _check_agent(self, state: State, *, warn: bool = True) -> list[str]:
        """Compare today's agent with the one the run was started with (R3.12).

        Raises:
            AgentChangedError: a pending call's tool is gone, or anything changed under `error`.
        """
        _check_tools(state, self._registry)
        changes = [] if self._on_drift == "ignore" else drift(state.fingerprint, self._fingerprint)
        if not changes:
            return []
        what = f"agent {self._agent.name!r} changed since session {state.session_id!r} was started"
        text = f"{what}: {'; '.join(changes)}"
        if self._on_drift == "error":
            raise AgentChangedError(text, hint="restore it, or go on with --on-agent-drift warn")
        if warn:
            logger.warning("%s", text)
        return changes

    async def _save_options(self, session: OpenSession) -> None:
        """Keep what this call sets for the rest of the run."""
        state = session.state
        record = Record("save", "in-progress", state.step, finish_reason=state.finish_reason)
        if self._max_steps is not None and self._max_steps != state.run.max_steps:
            record.run = RunStart(state.run.index, state.run.opening, self._max_steps)
        if self._business_state is not UNSET and self._business_state != state.business_state:
            record.business_state = self._business_state
        if record.run is not None or record.business_state is not UNSET:
            await session.save(record)

    def _settings(self, state: State) -> Settings:
        return Settings(
            self._agent, self._registry, self._provider, self._model, self._approvals, state.run.max_steps,
            self._concurrency, self._cancel, self._observer,
        )  # fmt: skip


def _check_tools(state: State, registry: ToolRegistry) -> None:
    """Refuse a resume whose pending call's tool is gone.

    Raises:
        AgentChangedError: `LOUSHO_RESUME_TOOL_MISSING`.
    """
    called = [call["function"]["name"] for call in state.pending_calls()]
    missing = missing_tools(state.fingerprint, registry, called)
    if missing:
        raise AgentChangedError(
            f"session {state.session_id!r} has a pending call of {missing[0]!r}, a tool the agent lost",
            code="LOUSHO_RESUME_TOOL_MISSING",
            hint="bring the tool back, or fork the session from an earlier step",
        )


def _result(state: State, reason: str, run: Run) -> ExecutionResult:
    pending = PendingApproval.model_validate(state.approval) if state.approval else None
    return ExecutionResult(
        text=state.last_text(),
        messages=Messages(state.log, state.system),
        tool_calls=ToolCalls(state.log, state.run.index),
        usage=Usage.model_validate(state.usage),
        step_usage=[Usage.model_validate(usage) for usage in run.step_usage],
        finish_reason=cast(FinishReason, reason),
        steps=state.step,
        approval_id=pending.id if pending else None,
        session_id=state.session_id,
        approval=pending,
    )
