"""What a session does next: a pure function of its state (no other code decides it).

Run, resume, approve, retry after a crash and fork are the same loop entered with another state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .preparation import PreparedCall
from .state import State


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask for the next model turn."""


@dataclass(frozen=True, slots=True)
class RunCalls:
    """Run these calls of the last turn, all of which may start."""

    calls: Sequence[PreparedCall]


@dataclass(frozen=True, slots=True)
class AwaitDecision:
    """Wait for a human's word on this call."""

    call: PreparedCall


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run for this reason."""

    reason: str


Action = AskModel | RunCalls | AwaitDecision | Finish


def next_action(state: State, prepared: Sequence[PreparedCall], max_steps: int) -> Action:
    """Decide.

    Args:
        state: the session now.
        prepared: its pending calls in call order, at least up to the first one that may not start freely.
        max_steps: the run's limit of model turns.
    """
    free: list[PreparedCall] = []
    for call in prepared:
        if call.gate == "free":
            free.append(call)
        elif free:
            break
        elif call.gate == "alone":
            return RunCalls([call])
        else:
            return AwaitDecision(call)
    if free:
        return RunCalls(free)
    if state.ends_with_answer():
        return Finish(_answer_reason(state))
    if state.step >= max_steps:
        return Finish("max-steps")
    return AskModel()


def _answer_reason(state: State) -> str:
    reason = state.log[-1].get("finishReason", "stop")
    return str(reason)
