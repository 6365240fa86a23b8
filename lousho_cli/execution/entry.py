"""Entering a session: what its state asks for before the loop may run, and the result after it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from ..errors import ConfigurationError, SDKError, SessionAwaitingApprovalError
from .agent import Agent
from .approval import consume, expired_decision, has_expired
from .asking import AskedModel
from .batch import Finished, Paused, failed
from .budget import UNLIMITED, Budget, BudgetWatch
from .business_state import BusinessState
from .cancel import Cancel
from .checkpoint import checkpoint_of
from .conversation import Messages, ToolCalls
from .drift import check_agent, check_edited, sub_agent_gone
from .events import Observer
from .hooks import Hooks
from .intake import Input, normalise, queue_input, start_run
from .messages import JsonObject, MessageData
from .model_settings import settings_of, settings_to_json, with_settings
from .output import OutputFormat
from .patience import RetryPolicy
from .preparation import PreparedCall
from .protocols import ApprovalStore, ModelSettings, Provider, StoredApproval
from .records import (
    ApprovalDecision,
    ExecutionResult,
    FinishReason,
    PendingApproval,
    Usage,
)
from .redacting import (
    RedactedSession,
    redact_error,
    redacted_messages,
    redacted_observer,
    redacted_tracing,
    redactor_for,
)
from .redaction import Redaction
from .resolution import ResolvedAgent, provider_model, resolve_again, resolve_new
from .run import Run, Settings
from .session import NestedSession, OpenSession, to_the_end
from .state import Record, State
from .tools import ToolRegistry
from .toolsets import OpenToolsets
from .tracing import KEPT, EnteredRun, Tracing
from .triggers import reached
from .unset import UNSET
from .values import to_json_text, to_json_value

DEFAULT_MAX_STEPS = 10
DEFAULT_CONCURRENCY = 8
DRIFT_POLICIES = ("warn", "error", "ignore")

logger = logging.getLogger("lousho")
_MODEL_SETTINGS = "modelSettings"


@dataclass(frozen=True)
class Options:
    """What a caller wants of a run, checked.

    Raises:
        ConfigurationError: a value is impossible.
    """

    provider: Provider
    registry: ToolRegistry | None = None
    approvals: ApprovalStore | None = None
    max_steps: int | None = None
    approval_ttl: float | None = None
    concurrency: int = DEFAULT_CONCURRENCY
    on_agent_drift: str = "warn"
    business_state: Any = UNSET
    observer: Observer | None = None
    cancel: Cancel | None = None
    hooks: Hooks | None = None
    model_settings: ModelSettings | Mapping[str, Any] | None = None
    retries: RetryPolicy | Mapping[str, Any] | None = None
    fallbacks: Iterable[Provider] | None = None
    budget: Budget | Mapping[str, Any] | None = None
    output: Any = None
    redaction: Redaction | Mapping[str, Any] | bool | None = None
    tracing: Tracing | None = None

    def __post_init__(self) -> None:
        if cast(Any, self.provider) is None:
            raise ConfigurationError(
                "there is no model to ask", code="LOUSHO_CONFIG_MISSING_PROVIDER", hint="pass provider="
            )
        if self.on_agent_drift not in DRIFT_POLICIES:
            raise ConfigurationError(
                f"on_agent_drift is {self.on_agent_drift!r}", hint="use warn, error or ignore"
            )
        if self.max_steps is not None and self.max_steps < 1:
            raise ConfigurationError(f"max_steps is {self.max_steps}", hint="use a number from 1")
        if self.approval_ttl is not None and self.approval_ttl <= 0:
            raise ConfigurationError(f"approval_ttl is {self.approval_ttl}", hint="use seconds above 0")
        if self.concurrency < 1:
            raise ConfigurationError(f"tool_concurrency is {self.concurrency}", hint="use a number from 1")


class Entry:
    """One way into a session for run, resume, approve and retry: what to do is read off the state.

    Args:
        agent: who runs.
        options: how.
        lead: the agent whose session it is, where `agent` is a sub-agent.
        path: the sub-agents from there to `agent`, which is the last.
        toolsets: the lead's, where `agent` is a sub-agent.
    """

    def __init__(
        self,
        agent: Agent,
        options: Options,
        *,
        lead: str | None = None,
        path: tuple[str, ...] = (),
        toolsets: OpenToolsets | None = None,
    ) -> None:
        self._agent = agent
        self._redactor = (
            None if path else redactor_for(_providers(agent, options), Redaction.of(options.redaction))
        )
        if self._redactor is not None:
            options = replace(
                options,
                observer=redacted_observer(options.observer, self._redactor),
                tracing=redacted_tracing(options.tracing, self._redactor),
            )
        self._o = options
        self._cancel = options.cancel or Cancel()
        self._lead = lead or agent.name
        self._path = path
        self._shared: BusinessState | None = None
        self._entered: list[tuple[Record, State]] = []
        given = options.business_state
        self._business_state = UNSET if given is UNSET else to_json_value(given)
        self._model_settings = settings_of(options.model_settings)
        self._retries = RetryPolicy.of(options.retries if options.retries is not None else agent.retries)
        fallbacks = options.fallbacks if options.fallbacks is not None else agent.fallbacks
        self._fallbacks = tuple(fallbacks or ())
        self._budget = Budget.of(options.budget)
        self._output = OutputFormat.of(options.output if options.output is not None else agent.output)
        self._watch: BudgetWatch | None = None
        self._toolsets = toolsets or OpenToolsets()
        self._to_keep: JsonObject | None = None

    async def __aenter__(self) -> Entry:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._toolsets.are_open:
            await to_the_end(self._toolsets.close())

    async def enter(self, session: OpenSession, given: Input) -> ExecutionResult:
        """Take the input in, then run until there is nothing more to do now."""
        with self._followed(session.state) as self._to_keep:
            if self._redactor is None:
                return await self._enter(session, normalise(given))
            messages = redacted_messages(normalise(given), self._redactor)
            try:
                return await self._enter(RedactedSession(session, self._redactor, self._o.observer), messages)
            except SDKError as error:
                redact_error(error, self._redactor)
                raise

    def _followed(self, state: State) -> AbstractContextManager[JsonObject | None]:
        """What surrounds the run for its tracer, if there is one."""
        if self._o.tracing is None:
            return nullcontext()
        kept = None if state.status == "finished" else (state.run_config or {}).get(KEPT)
        return self._o.tracing.run(EnteredRun(self._agent.name, state.session_id, kept, bool(self._path)))

    async def _enter(self, session: OpenSession, messages: Sequence[MessageData]) -> ExecutionResult:
        resumed = session.state.status != "finished"
        if resumed:
            agent, changes = await self._resume(session, messages)
        else:
            agent, changes = await self._start(session, messages), []
        if self._watch is None:
            self._watch = BudgetWatch(session.state.run.budget, lambda: session.state)
        run = Run(session, self._settings(session.state, agent, self._watch))
        teller = run.teller
        await teller.tell("run.start", agent=agent.name, model=agent.model, resumed=resumed)
        if changes:
            await teller.tell("agent.drift", changes=changes)
        for record, state in self._entered:
            await teller.saved(state)
            if record.kind == "decision":
                await teller.decided(record, state)
        reason = await run.drive()
        result = _result(session.state, reason, run, self._output)
        done: JsonObject = {"finishReason": reason, "steps": result.steps, "usage": session.state.usage}
        if result.approval_id:
            done["approvalId"] = result.approval_id
        await teller.tell("run.done", **done)
        return result

    async def check_approvable(self, state: State, decision: ApprovalDecision) -> None:
        """Refuse an approval that could not be carried out.

        Raises:
            AgentChangedError: the tool is gone, or the agent changed under `error`.
            ConfigurationError: the edited arguments do not fit the tool.
        """
        await self._changes(state)
        entry, inner = self, state
        while inner.approval is not None and "leadCallId" in inner.approval:
            call_id = str(inner.approval["leadCallId"])
            nested = await entry._nested_entry(inner, call_id)
            assert nested is not None
            entry, inner = nested, inner.subs[call_id]
        agent = await entry._resolve_again(inner)
        check_edited(agent.registry, str((inner.approval or {}).get("toolName")), decision.arguments)

    async def _start(self, session: OpenSession, messages: Sequence[MessageData]) -> ResolvedAgent:
        state = session.state
        known = self._business_state if self._shared is None else self._shared.value
        agent = await resolve_new(
            self._agent, self._o.provider, self._o.registry, self._toolsets, state, known
        )
        run_config = self._with_model_settings(
            agent.run_config, with_settings(settings_of(self._agent.model_settings), self._model_settings)
        )
        if self._to_keep is not None:
            run_config = {**run_config, KEPT: self._to_keep}
        record = start_run(
            state,
            messages,
            max_steps=self._o.max_steps or self._agent.max_steps or DEFAULT_MAX_STEPS,
            # A sub-agent uses up its lead's.
            budget=UNLIMITED if self._path else self._agent.budget.with_limits(self._budget),
            agent=agent.name,
            system=agent.instructions,
            fingerprint=agent.fingerprint,
            run_config=run_config,
            business_state=self._business_state,
        )
        await self._save(session, record)
        return agent

    async def _save(self, session: OpenSession, record: Record) -> None:
        """Save before the run begins; it is told afterwards."""
        reached(f"{record.kind}.saving")
        self._entered.append((record, await session.save(record)))
        reached(f"{record.kind}.saved")

    async def _resume(
        self, session: OpenSession, messages: Sequence[MessageData]
    ) -> tuple[ResolvedAgent, list[str]]:
        """Settle what the state waits for; returns the agent and what changed in it."""
        decided = await self._decision(session.state)
        if decided is not None and not cast(Any, decided.decision).approved:
            await self._consume(session, decided)
            decided = None
        changes = await self._changes(session.state)
        if changes:
            logger.warning("%s", "; ".join(changes))
        if decided is not None:
            await self._consume(session, decided)
        queued = queue_input(session.state, messages)
        if queued is not None:
            await self._save(session, queued)
        await self._save_options(session)
        return await self._resolve_again(session.state), changes

    async def _resolve_again(self, state: State) -> ResolvedAgent:
        return await resolve_again(self._agent, self._o.provider, self._o.registry, self._toolsets, state)

    async def _decision(self, state: State) -> StoredApproval | None:
        """The recorded decision the session waits for; None if it waits for none.

        Raises:
            SessionAwaitingApprovalError: nobody has decided yet.
        """
        if state.status != "awaiting-approval":
            return None
        approval_id = str((state.approval or {}).get("id", ""))
        stored = await self._o.approvals.get(approval_id) if self._o.approvals is not None else None
        if stored is not None and stored.decision is None and has_expired(stored.pending):
            assert self._o.approvals is not None
            stored = await self._o.approvals.decide(approval_id, expired_decision(stored.pending))
        if stored is not None and stored.decision is not None:
            return stored
        if stored is None and self._o.approvals is not None and not self._path:
            # The request is an index of the checkpoint: lost, or never written, it is made again.
            pending = PendingApproval.model_validate(state.approval)
            await self._o.approvals.save(pending, checkpoint_of(state))
        raise SessionAwaitingApprovalError(str(state.session_id), approval_id)

    async def _consume(self, session: OpenSession, stored: StoredApproval) -> None:
        assert self._o.approvals is not None
        await self._save(session, consume(session.state, stored, session.fence))
        if self._o.tracing is not None:
            self._o.tracing.decided(stored)
        reached("decision.noting")
        await self._o.approvals.consume(stored.pending.id)
        reached("decision.noted")

    async def _changes(self, state: State) -> list[str]:
        """What changed in the agent since the run was started, and in each sub-agent that is on its way.

        Raises:
            AgentChangedError: a pending call's tool is gone, or anything changed under `error`.
        """
        agent = await self._resolve_again(state)
        changes = check_agent(state, agent, self._o.on_agent_drift)
        for call in state.pending_calls():
            nested = await self._nested_entry(state, call["id"])
            if nested is not None:
                changes += [
                    f"sub-agent {nested._agent.name}: {change}"
                    for change in await nested._changes(state.subs[call["id"]])
                ]
        return changes

    async def _nested_entry(self, state: State, call_id: str) -> Entry | None:
        """The entry of the sub-agent that a pending call runs, if it is on its way.

        Raises:
            AgentChangedError: the agent no longer has that sub-agent.
        """
        sub = state.subs.get(call_id)
        if sub is None or sub.status == "finished":
            return None
        agent = await self._resolve_again(state)
        names = [c["function"]["name"] for c in state.pending_calls() if c["id"] == call_id]
        tool = agent.registry.get(names[0]) if names else None
        if tool is None or tool.delegate is None:
            raise sub_agent_gone(state, agent.name, sub.agent)
        return self._nested(tool.delegate, self._o.on_agent_drift)

    def _nested(self, agent: Agent, on_agent_drift: str) -> Entry:
        """How a sub-agent is entered."""
        observer = self._o.observer
        options = replace(
            self._o,
            provider=agent.provider or self._o.provider,
            hooks=agent.hooks or self._o.hooks,
            registry=None,
            max_steps=None,
            budget=None,
            output=None,
            model_settings=None,
            retries=agent.retries or self._retries,
            fallbacks=self._fallbacks_of(agent),
            on_agent_drift=on_agent_drift,
            business_state=UNSET,
            observer=None if observer is None else _from_inside(observer, agent.name),
            cancel=self._cancel,
        )
        path = (*self._path, agent.name)
        return Entry(agent, options, lead=self._lead, path=path, toolsets=self._toolsets)

    async def _delegate(
        self, lead: OpenSession, call: PreparedCall, business: BusinessState
    ) -> Finished | Paused:
        """Run, or go on with, the sub-agent of a call."""
        assert call.tool is not None
        assert call.tool.delegate is not None
        session = NestedSession(lead, call.id)
        # What changed in it was judged when its lead was entered.
        entry = self._nested(call.tool.delegate, "ignore")
        entry._shared = business
        entry._watch = self._watch
        state = session.state
        if not (state.exists and state.status == "finished"):
            # Still undecided: its lead goes on waiting.
            with suppress(SessionAwaitingApprovalError):
                await entry.enter(session, None if state.exists else call.kwargs["input"])
        return _delegated(session.state, call)

    async def _save_options(self, session: OpenSession) -> None:
        """Keep what this call sets for the rest of the run."""
        state = session.state
        record = Record("save", "in-progress", state.step, finish_reason=state.finish_reason)
        run = replace(
            state.run,
            max_steps=self._o.max_steps or state.run.max_steps,
            budget=state.run.budget.with_limits(self._budget),
        )
        if run != state.run:
            record.run = run
        if self._business_state is not UNSET and self._business_state != state.business_state:
            record.business_state = self._business_state
        known = self._settings_of_run(state)
        wanted = with_settings(known, self._model_settings)
        if wanted != known:
            record.run_config = self._with_model_settings(state.run_config or {}, wanted)
        changed = (record.run, record.run_config) != (None, None) or record.business_state is not UNSET
        if changed:
            await self._save(session, record)

    def _settings_of_run(self, state: State) -> ModelSettings:
        """How the model is asked in this run: as when it began, or as somebody said since."""
        saved = (state.run_config or {}).get(_MODEL_SETTINGS)
        return settings_of(self._agent.model_settings if saved is None else saved)

    def _with_model_settings(self, run_config: JsonObject, settings: ModelSettings) -> JsonObject:
        chosen = settings_to_json(settings)
        return {**run_config, _MODEL_SETTINGS: chosen} if chosen else run_config

    def _fallbacks_of(self, agent: Agent) -> tuple[Provider, ...]:
        """What a sub-agent falls back to: its lead's, where it uses its lead's model."""
        if agent.fallbacks is not None:
            return agent.fallbacks
        return () if agent.provider is not None else self._fallbacks

    def _settings(self, state: State, agent: ResolvedAgent, watch: BudgetWatch) -> Settings:
        return Settings(
            agent=agent,
            models=[
                AskedModel(self._o.provider, agent.model),
                *(AskedModel(each, provider_model(each)) for each in self._fallbacks),
            ],
            retries=self._retries,
            model_settings=self._settings_of_run(state),
            output=self._output,
            approvals=self._o.approvals,
            max_steps=state.run.max_steps,
            approval_ttl=self._o.approval_ttl,
            concurrency=self._o.concurrency,
            cancel=self._cancel,
            observer=self._o.observer,
            hooks=self._o.hooks or Hooks(),
            business=self._shared or BusinessState(state.business_state),
            delegate=self._delegate,
            lead=self._lead,
            budget=watch,
            path=self._path,
            tracing=self._o.tracing,
        )


def _from_inside(observer: Observer, name: str) -> Observer:
    """An observer for a sub-agent's events: it is told where they come from."""
    return lambda event: observer(replace(event, path=(name, *event.path)))


def _delegated(state: State, call: PreparedCall) -> Finished | Paused:
    """What a sub-agent's session means for the call that runs it."""
    if state.approval is not None:
        return Paused(call, state.approval)
    if state.finish_reason == "stop":
        return Finished(call, to_json_text(state.last_text()))
    text = f"the sub-agent ended early ({state.finish_reason}): {state.last_text()}"
    return failed(call, "tool-error", text)


def _result(state: State, reason: str, run: Run, output: OutputFormat | None) -> ExecutionResult:
    pending = PendingApproval.model_validate(state.approval) if state.approval else None
    return ExecutionResult(
        text=state.last_text(),
        messages=Messages(state.log, state.system),
        tool_calls=ToolCalls(state.log, state.run.index),
        usage=Usage.model_validate(state.usage),
        step_usage=[Usage.model_validate(usage) for usage in run.step_usage],
        output=output.read(state.last_text()) if output is not None and reason == "stop" else None,
        finish_reason=cast(FinishReason, reason),
        steps=state.step,
        approval_id=pending.id if pending else None,
        session_id=state.session_id,
        approval=pending,
    )


def _providers(agent: Agent, options: Options) -> Iterator[Provider]:
    """Every model that a run may ask."""
    yield options.provider
    yield from options.fallbacks or agent.fallbacks or ()
    for sub in agent.subagents:
        if sub.provider is not None:
            yield sub.provider
        yield from _providers(sub, options)
