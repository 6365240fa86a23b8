"""Deciding an approval: what must hold before a decision is recorded, and going on after it (R3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import ValidationError

from ..errors import ConfigurationError, NotFoundError
from .agent import Agent
from .approval import expired_decision, has_expired, how, os_user
from .entry import Entry, Options
from .protocols import ApprovalStore, CheckpointStore, Provider, StoredApproval
from .records import ApprovalDecision, ExecutionResult, PendingApproval
from .session import OpenSession, Seen, UnstoredSession, look_at, open_session, stored_state
from .state import State
from .tools import ToolRegistry
from .triggers import reached
from .unset import UNSET
from .values import to_json_text, to_json_value


async def decide_and_resume(
    decision: ApprovalDecision | Mapping[str, Any],
    approvals: ApprovalStore,
    checkpoints: CheckpointStore | None,
    registry: ToolRegistry | None,
    provider: Provider,
    options: dict[str, Any],
) -> ExecutionResult:
    """See `resume_after_approval`."""
    wanted = parse_decision(decision)
    stored = await find_open(approvals, wanted)
    seen = await waiting_session(stored, checkpoints)
    state = seen.state
    wait = float(options.pop("wait", 0.0))
    agent = options.pop("agent", None)
    if agent is None:
        agent = Agent(state.agent, state.system, registry or ())
    async with _entry(agent, registry, provider, approvals, options) as entry:
        await decide(wanted, state, approvals, entry)
        session: OpenSession
        if checkpoints is None:
            session = UnstoredSession(state)
        else:
            session = await open_session(checkpoints, stored.pending.session_id, wait=wait)
        try:
            if (session.state.approval or {}).get("id") != wanted.id:
                # Another runner was faster to use the decision.
                raise settled(await approvals.get(wanted.id) or stored)
            return await entry.enter(session, None)
        finally:
            await session.close()


async def record_decision(
    decision: ApprovalDecision | Mapping[str, Any],
    approvals: ApprovalStore,
    checkpoints: CheckpointStore | None,
    *,
    agent: Agent | None = None,
    provider: Provider | None = None,
    on_agent_drift: str = "warn",
) -> StoredApproval:
    """Record a decision and start nothing: the next resume uses it.

    Args:
        agent, provider: the agent as it is today, to check that an approval can be carried out. A rejection
            needs neither.

    Raises: as `resume_after_approval`.
    """
    wanted = parse_decision(decision)
    stored = await find_open(approvals, wanted)
    seen = await waiting_session(stored, checkpoints)
    state = seen.state
    if agent is None or provider is None:
        return await decide(wanted, state, approvals, None)
    async with _entry(agent, None, provider, approvals, {"on_agent_drift": on_agent_drift}) as entry:
        return await decide(wanted, state, approvals, entry)


def parse_decision(decision: ApprovalDecision | Mapping[str, Any]) -> ApprovalDecision:
    """A strictly typed decision, with who decides filled in.

    Raises:
        ConfigurationError: it is none. Nothing is guessed: `"approved": "yes"` is refused.
    """
    try:
        parsed = ApprovalDecision.of(decision)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"]) or "decision"
        raise ConfigurationError(
            f"not a decision: {place}: {problem['msg']}", hint='give {"id": ..., "approved": true or false}'
        ) from error
    if not parsed.approved and (parsed.arguments is not None or parsed.result is not UNSET):
        raise ConfigurationError("a rejection takes neither arguments nor a result")
    if parsed.arguments is not None and parsed.result is not UNSET:
        raise ConfigurationError("give other arguments or a result, not both")
    changes: dict[str, Any] = {"by": parsed.by if parsed.by is not None else os_user()}
    if parsed.arguments is not None:
        changes["arguments"] = to_json_value(parsed.arguments)
    if parsed.result is not UNSET:
        changes["result"] = to_json_value(parsed.result)
    return parsed.model_copy(update=changes)


async def find_open(approvals: ApprovalStore, wanted: ApprovalDecision) -> StoredApproval:
    """The request a decision is for, not yet consumed and not decided otherwise.

    Raises:
        NotFoundError: there is none; says who decided what, and when.
    """
    stored = await approvals.get(wanted.id)
    if stored is None:
        raise NotFoundError(
            f"there is no approval {wanted.id!r}",
            code="LOUSHO_APPROVAL_NOT_FOUND",
            hint="lousho approvals lists what waits",
        )
    if stored.status == "consumed" or (
        stored.decision is not None and not same_decision(stored.decision, wanted)
    ):
        raise settled(stored)
    return stored


def same_decision(one: ApprovalDecision, other: ApprovalDecision) -> bool:
    """Whether two decisions make the same of the call; who and why may differ."""
    return one.approved == other.approved and all(
        to_json_text([given]) == to_json_text([wanted])
        for given, wanted in ((one.arguments, other.arguments), (one.result, other.result))
    )


def settled(stored: StoredApproval) -> NotFoundError:
    """Says that an approval was decided already: by whom, how and when."""
    approval_id, decision = stored.pending.id, stored.decision
    if decision is None:
        text = f"approval {approval_id!r} is settled"
    else:
        text = f"approval {approval_id!r} was already {how(decision)} by {decision.by} at {stored.decided_at}"
    return NotFoundError(text, code="LOUSHO_APPROVAL_NOT_FOUND", hint="lousho approvals lists what waits")


async def waiting_session(stored: StoredApproval, checkpoints: CheckpointStore | None) -> Seen:
    """The session that waits for this very approval.

    Raises:
        NotFoundError: the session does not wait for it (any more).
    """
    pending = stored.pending
    if checkpoints is None or pending.session_id is None:
        snapshot = stored.checkpoint()
        if snapshot is None:
            raise ConfigurationError(
                f"approval {pending.id!r} keeps no snapshot of its run",
                code="LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE",
                hint="pass checkpoint_store=",
            )
        return Seen(stored_state(snapshot, pending.session_id or ""))
    seen = await look_at(checkpoints, pending.session_id)
    if (seen.state.approval or {}).get("id") != pending.id:
        raise (
            settled(stored)
            if stored.decision
            else NotFoundError(
                f"session {pending.session_id!r} no longer waits for approval {pending.id!r}",
                code="LOUSHO_APPROVAL_NOT_FOUND",
                hint="lousho approvals lists what waits",
            )
        )
    return seen


async def decide(
    wanted: ApprovalDecision, state: State, approvals: ApprovalStore, entry: Entry | None
) -> StoredApproval:
    """Make a decision durable, if it can be carried out.

    Args:
        wanted: the decision.
        state: the session that waits for it.
        entry: how the run would go on; a rejection needs none.

    Raises:
        AgentChangedError, ConfigurationError: it cannot be carried out; the request stays undecided.
        NotFoundError: somebody decided otherwise, and was faster.
    """
    pending = PendingApproval.model_validate(state.approval)
    if has_expired(pending):
        wanted = expired_decision(pending)
    elif wanted.approved and entry is not None:
        await entry.check_approvable(state, wanted)
    reached("decision.recording")
    held = await approvals.decide(wanted.id, wanted)
    reached("decision.recorded")
    if held.status == "expired":
        raise settled(held)
    if held.decision is None or not same_decision(held.decision, wanted):
        raise settled(held)
    return held


def _entry(
    agent: Agent,
    registry: ToolRegistry | None,
    provider: Provider,
    approvals: ApprovalStore,
    options: dict[str, Any],
) -> Entry:
    """An entry from the keywords of `execute`."""
    given = {_FIELDS.get(name, name): value for name, value in options.items()}
    known = {field.name for field in fields(Options)} - {"provider", "registry", "approvals"}
    unknown = sorted(given.keys() - known)
    if unknown:
        raise ConfigurationError(f"unknown option {unknown[0]!r}", hint="options are the keywords of execute")
    if given.get("concurrency", 1) is None:
        del given["concurrency"]
    return Entry(agent, Options(provider, registry, approvals, **given))


_FIELDS = {"tool_concurrency": "concurrency", "on_event": "observer"}
