"""Comparing two runs as checkpoints or transcripts: the public records over `steps` (R3.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from .conversation import Message, Messages
from .record import Record
from .records import Checkpoint
from .steps import Step, StepCall, Trajectory, diverged_at, drift, ending, steps_of
from .unset import UNSET


class ToolUse(Record):
    """One tool call of a step: its name, its arguments, and its result once it has one.

    Arguments and result are JSON values; arguments that are no JSON stay the text the model sent. `result`
    is set only if the call has one.
    """

    name: str
    args: Any = None
    result: Any = None


class TrajectoryStep(Record):
    """One model turn: what it said and the tools it used."""

    text: str = ""
    tools: list[ToolUse] = Field(default_factory=list)


class Drift(Record):
    """One difference: which field, how it was, how it is."""

    field: str
    committed: str
    current: str


class Comparison(Record):
    """Two trajectories side by side.

    Attributes:
        a, b: their steps.
        diverged_at: the number (from 1) of the first step that differs; None if none does.
        drift: what differs, in words.
    """

    a: list[TrajectoryStep]
    b: list[TrajectoryStep]
    diverged_at: int | None
    drift: list[Drift]


Run = Checkpoint | Messages | Sequence[Message | Mapping[str, Any]] | Mapping[str, Any]


def compare_trajectories(a: Run, b: Run, *, usage: bool = False) -> Comparison:
    """Compare two checkpoints or two transcripts, `a` being the one committed to.

    Tool-call ids do not count, nor do key order and spacing of JSON.

    Args:
        usage: compare total tokens too (checkpoints only).
    """
    one, other = _trajectory(a, usage), _trajectory(b, usage)
    return Comparison(
        a=[_public(step) for step in one.steps],
        b=[_public(step) for step in other.steps],
        diverged_at=diverged_at(one.steps, other.steps),
        drift=[Drift(**found._asdict()) for found in drift(one, other)],
    )


def _trajectory(run: Run, usage: bool) -> Trajectory:
    if isinstance(run, (Checkpoint, Mapping)):
        checkpoint = Checkpoint.of(run)
        tokens = checkpoint.usage.total_tokens if usage else None
        steps = list(steps_of(checkpoint.messages.data()))
        return Trajectory(steps, ending(checkpoint.status, checkpoint.finish_reason), tokens)
    return Trajectory(list(steps_of(Messages.of(run).data())))


def _public(step: Step) -> TrajectoryStep:
    return TrajectoryStep(text=step.text, tools=[_public_call(call) for call in step.tools])


def _public_call(call: StepCall) -> ToolUse:
    if call.result is UNSET:
        return ToolUse(name=call.name, args=call.args)
    return ToolUse(name=call.name, args=call.args, result=call.result)
