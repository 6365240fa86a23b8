"""Playing a case: its turns are said to the agent in a session of its own, kept in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import CassetteError, ConfigurationError, SDKError
from ..execution.agent import Agent
from ..execution.events import Observer
from ..execution.executor import AgentExecutor, resume_after_approval
from ..execution.intake import Input
from ..execution.protocols import Provider
from ..execution.records import ApprovalDecision, ExecutionResult, PendingApproval
from ..execution.steps import steps_of
from ..execution.unset import UNSET
from ..stores.memory import MemoryStore
from .cases import Decision
from .checks import shown
from .outcome import Failure, Outcome

_DECIDER = "eval"


@dataclass(frozen=True)
class Script:
    """What happens in a case.

    Attributes:
        turns: what is said, turn by turn.
        decisions: what is decided about calls that wait for a human, by tool: about all, or about each.
        business_state: the value the tools share; UNSET for none.
        limits: model turns that each may take; None, and where it ends, for the agent's own limit.
        otherwise: what is decided where `decisions` does not say.
    """

    turns: Sequence[Input]
    decisions: Mapping[str, Decision | Sequence[Decision]] = field(default_factory=dict)
    business_state: Any = UNSET
    limits: Sequence[int | None] = ()
    otherwise: Decision | None = None


@dataclass(frozen=True)
class Player:
    """An agent that is to play a case.

    Attributes:
        agent: who plays.
        provider: its model.
        session_id: names the conversation, for its tools.
        tool_concurrency: how many calls of a turn run at once; None for the engine's default.
    """

    agent: Agent
    provider: Provider
    session_id: str
    tool_concurrency: int | None = None

    async def play(self, script: Script, *, observer: Observer | None = None) -> Outcome:
        """Play a case to its end, or to where it cannot go on, and tell `observer` what happens.

        Raises:
            SDKError: the agent or its model is not set up to run at all, or its recording is damaged.
        """
        play = _Play(self, script, observer)
        problem = None
        try:
            problem = await play.all_turns()
        except ConfigurationError:
            raise
        except SDKError as error:
            if error.code == CassetteError.default_code:
                raise
            problem = Failure("run", f"{error.message} [{error.code}]")
        return await play.outcome(problem)


class _Play:
    def __init__(self, player: Player, script: Script, observer: Observer | None) -> None:
        self._player = player
        self._script = script
        self._options: dict[str, Any] = {
            "agent": player.agent,
            "tool_concurrency": player.tool_concurrency,
            "on_event": observer,
        }
        self._store = MemoryStore(history_limit=0)
        self._results: list[ExecutionResult] = []
        self._decided: Counter[str] = Counter()

    async def all_turns(self) -> Failure | None:
        """Say every turn; what keeps the case from going on."""
        for number, turn in enumerate(self._script.turns):
            state = self._script.business_state if number == 0 else UNSET
            limit = self._script.limits[number] if number < len(self._script.limits) else None
            result = await self._say(turn, state, limit)
            while result.approval is not None:
                decision = self._decision(result.approval.tool_name)
                if decision is None:
                    return _waits(result.approval)
                result = await self._decide(result.approval, decision)
            self._results.append(result)
        return None

    async def outcome(self, problem: Failure | None) -> Outcome:
        checkpoint = await self._store.checkpoints.load(self._player.session_id)
        costs = [result.usage.cost_usd for result in self._results]
        known = [cost for cost in costs if cost is not None]
        return Outcome(
            steps=tuple(steps_of(checkpoint.messages.data())) if checkpoint else (),
            endings=tuple(result.finish_reason for result in self._results),
            reply=self._results[-1].text if self._results else "",
            tokens=sum(result.usage.total_tokens for result in self._results),
            cost_usd=sum(known) if len(known) == len(costs) else None,
            problem=problem,
            fingerprint=checkpoint.agent_fingerprint if checkpoint else None,
        )

    def _decision(self, tool: str) -> Decision | None:
        decided = self._script.decisions.get(tool, ())
        if isinstance(decided, Decision):
            return decided
        number = self._decided[tool]
        self._decided[tool] += 1
        return decided[number] if number < len(decided) else self._script.otherwise

    async def _say(self, turn: Input, business_state: Any, limit: int | None) -> ExecutionResult:
        return await AgentExecutor.execute(
            input=turn,
            provider=self._player.provider,
            session_id=self._player.session_id,
            checkpoint_store=self._store.checkpoints,
            approval_store=self._store.approvals,
            business_state=business_state,
            max_steps=limit,
            **self._options,
        )

    async def _decide(self, approval: PendingApproval, decision: Decision) -> ExecutionResult:
        return await resume_after_approval(
            ApprovalDecision(
                id=approval.id,
                approved=decision.approve,
                arguments=decision.arguments,
                note=decision.note,
                by=_DECIDER,
            ),
            self._store.approvals,
            None,
            self._player.provider,
            self._options,
            self._store.checkpoints,
        )


def _waits(approval: PendingApproval) -> Failure:
    path = f"the sub-agent {' > '.join(approval.subagent)} " if approval.subagent else ""
    return Failure(
        "decisions",
        f"{path}paused on {approval.tool_name} {shown(approval.args)}, and the case does not decide it: "
        f'add {approval.tool_name} = "approve" or "reject" to its decisions',
    )
