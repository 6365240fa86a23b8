"""The engine's public entry points: execute, resume after an approval, fork."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from ..errors import ConfigurationError
from .agent import Agent
from .budget import Budget
from .cancel import Cancel
from .checkpoint import checkpoint_of
from .deciding import decide_and_resume
from .entry import DEFAULT_CONCURRENCY, Entry, Options
from .events import Observer
from .fork_stores import fork_session
from .forking import fork_record
from .hooks import Hooks
from .intake import Input
from .patience import RetryPolicy
from .protocols import ApprovalStore, CheckpointStore, KeepsHistory, ModelSettings, Provider
from .records import (
    ApprovalDecision,
    ExecutionResult,
    ForkPatch,
    ForkResult,
    HistoryEntry,
)
from .redaction import Redaction
from .session import open_session
from .sync import run_sync
from .tools import ToolRegistry
from .tracing import Tracing
from .unset import UNSET


class AgentExecutor:
    """Runs agents durably. There is one loop; whether it starts, resumes or goes on is in the checkpoint."""

    @staticmethod
    async def execute(
        *,
        agent: Agent,
        input: Input,
        provider: Provider | None = None,
        tool_registry: ToolRegistry | None = None,
        session_id: str | None = None,
        checkpoint_store: CheckpointStore | None = None,
        approval_store: ApprovalStore | None = None,
        max_steps: int | None = None,
        approval_ttl: float | None = None,
        tool_concurrency: int | None = None,
        on_agent_drift: str = "warn",
        business_state: Any = UNSET,
        on_event: Observer | None = None,
        cancel: Cancel | None = None,
        hooks: Hooks | None = None,
        model_settings: ModelSettings | Mapping[str, Any] | None = None,
        retries: RetryPolicy | Mapping[str, Any] | None = None,
        fallbacks: Iterable[Provider] | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        output: Any = None,
        redaction: Redaction | Mapping[str, Any] | bool | None = None,
        tracing: Tracing | None = None,
        wait: float = 0.0,
    ) -> ExecutionResult:
        """Run an agent on a session until it finishes or pauses, resuming first what is unfinished.

        Args:
            agent: name, instructions, tools.
            input: a text, a message, or a list of messages; empty to just resume.
            provider: the model.
            tool_registry: the tools, if not the agent's own.
            session_id: names the conversation; without it nothing is kept.
            checkpoint_store: where the session lives.
            approval_store: where requests for a human wait.
            max_steps: limit of model turns of the whole run, resumes included; default: what the run began
                with, or the agent's, or 10.
            approval_ttl: seconds a human has to decide, and the run to act on it; after that the call counts
                as rejected. Default: no limit.
            tool_concurrency: how many calls of a turn run at once; default 8.
            on_agent_drift: `warn`, `error` or `ignore`.
            business_state: a JSON value that the tools of the run share.
            on_event: called with each Event.
            cancel: set it to stop the run.
            hooks: functions around model and tool calls.
            model_settings: how the model is asked; what is set here wins over the agent's, and holds for the
                rest of the run, resumes included.
            retries: when to ask the model again after a failure that may pass; default the agent's, or 4
                attempts.
            fallbacks: the models to ask, in this order, where `provider` cannot be asked; default the
                agent's.
            budget: what the run may use up in all, resumes included; what is set here wins over what the run
                began with.
            output: the shape of the final answer: a pydantic model or another type, or a JSON schema as a
                mapping; default the agent's. The answer is `output` of the result.
            redaction: True takes keys and tokens out of inputs, results and texts before they are stored; a
                mapping adds `patterns` and `keys` (names of fields). A provider's own key never is stored.
            tracing: what follows the run: `lousho_cli.telemetry.current_tracing()`, or your own.
            wait: seconds to wait for another runner of the session.

        Raises:
            SessionAwaitingApprovalError: a decision is pending; nothing was run.
            SessionBusyError: another runner holds the session.
            AgentChangedError: drift under `error`, or a pending call's tool is gone.
            ProviderError: the model could not be asked; the session can be resumed.
            PropagatingToolError: a tool ended the run; the session can be resumed.
            StorageError: a save failed; nothing further was run.
        """
        options = Options(
            provider=cast(Provider, provider),
            registry=tool_registry,
            approvals=approval_store,
            max_steps=max_steps,
            approval_ttl=approval_ttl,
            concurrency=DEFAULT_CONCURRENCY if tool_concurrency is None else tool_concurrency,
            on_agent_drift=on_agent_drift,
            business_state=business_state,
            observer=on_event,
            cancel=cancel,
            hooks=hooks,
            model_settings=model_settings,
            retries=retries,
            fallbacks=fallbacks,
            budget=budget,
            output=output,
            redaction=redaction,
            tracing=tracing,
        )
        async with Entry(agent, options) as entry:
            session = await open_session(checkpoint_store, session_id, wait=wait)
            try:
                return await entry.enter(session, input)
            finally:
                await session.close()

    @staticmethod
    def execute_sync(**options: Any) -> ExecutionResult:
        """`execute` for callers without an event loop; works inside a running loop too."""
        return run_sync(lambda: AgentExecutor.execute(**options))

    @staticmethod
    async def fork(
        *,
        session_id: str,
        from_step: int | None = None,
        at: int | None = None,
        checkpoint_store: CheckpointStore,
        patch: ForkPatch | Mapping[str, Any] | None = None,
        new_session_id: str | None = None,
    ) -> ForkResult:
        """Make a new, unfinished session out of a kept save of another, which stays as it is.

        Args:
            session_id: the session to fork.
            from_step: fork from the newest save of this step, or
            at: from the save with this seq.
            patch: what to change in the fork.
            new_session_id: default `<session_id>.fork-<n>`, the first free n.

        Raises:
            NotFoundError: no such session, step or save; lists the steps kept.
            ConfigurationError: the store keeps no history, the name is taken, or the patch does not fit.
        """
        changes = _patch(patch or {})
        forked = await fork_session(
            checkpoint_store, session_id, from_step, at, new_session_id,
            lambda source: fork_record(source, changes),
        )  # fmt: skip
        return ForkResult.of_fork(forked.session_id, forked.step, lambda: checkpoint_of(forked.read()))

    @staticmethod
    def fork_sync(**options: Any) -> ForkResult:
        """`fork` for callers without an event loop."""
        return run_sync(lambda: AgentExecutor.fork(**options))


async def resume_after_approval(
    decision: ApprovalDecision | Mapping[str, Any],
    approval_store: ApprovalStore,
    tool_registry: ToolRegistry | None,
    provider: Provider,
    options: Mapping[str, Any] | None = None,
    checkpoint_store: CheckpointStore | None = None,
) -> ExecutionResult:
    """Record a decision and go on with the run that waits for it.

    Args:
        decision: an ApprovalDecision or a mapping like it.
        approval_store: where the request waits.
        tool_registry: the tools as they are today; None for those of `options["agent"]`.
        provider: the model.
        options: further keywords of `execute`; `agent` is the agent as it is today.
        checkpoint_store: where the session lives. Without it the run goes on from the snapshot the request
            keeps, and the session's own checkpoint stays as it is.

    Raises:
        NotFoundError: `LOUSHO_APPROVAL_NOT_FOUND`: unknown, settled, or decided otherwise by somebody else.
        AgentChangedError: the agent changed; an approval was not recorded.
        SessionBusyError: another runner holds the session; the decision is recorded.
    """
    return await decide_and_resume(
        decision, approval_store, checkpoint_store, tool_registry, provider, dict(options or {})
    )


def resume_after_approval_sync(*args: Any, **options: Any) -> ExecutionResult:
    """`resume_after_approval` for callers without an event loop."""
    return run_sync(lambda: resume_after_approval(*args, **options))


async def get_checkpoint_history(
    checkpoint_store: CheckpointStore, session_id: str, *, limit: int | None = None
) -> Sequence[HistoryEntry] | None:
    """The kept saves of a session, newest first; None if the store keeps no history."""
    if not isinstance(checkpoint_store, KeepsHistory):
        return None
    return await checkpoint_store.history(session_id, limit=limit)


def _patch(given: ForkPatch | Mapping[str, Any]) -> ForkPatch:
    try:
        return ForkPatch.of(given)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"]) or "patch"
        raise ConfigurationError(
            f"not a fork patch: {place}: {problem['msg']}",
            hint="it takes messages, business_state, tool_result and append_input",
        ) from error
