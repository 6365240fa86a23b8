"""Trajectories: what a run did, step by step, and where two runs part (R3.11)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from .messages import MessageData, calls_of, text_of
from .records import Checkpoint, Message, Messages, Record


class ToolUse(Record):
    """One tool call of a step: its name, its arguments, and its result once it has one.

    Arguments and result are JSON values; arguments that are no JSON stay the text the model sent.
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
    first, second = _checkpoint(a), _checkpoint(b)
    steps_a, steps_b = list(steps_of(_messages(a))), list(steps_of(_messages(b)))
    drift = [*_tools_drift(steps_a, steps_b), *_args_drift(steps_a, steps_b)]
    if len(steps_a) != len(steps_b):
        drift.append(_drift("steps", len(steps_a), len(steps_b)))
    if first is not None and second is not None:
        drift.extend(_checkpoint_drift(first, second, usage))
    return Comparison(a=steps_a, b=steps_b, diverged_at=_diverged_at(steps_a, steps_b), drift=drift)


def steps_of(messages: Sequence[MessageData] | Iterator[MessageData]) -> Iterator[TrajectoryStep]:
    """The steps of a transcript, one for each model turn."""
    turn: MessageData | None = None
    results: dict[str, MessageData] = {}
    for message in messages:
        if message["role"] == "assistant":
            if turn is not None:
                yield _step(turn, results)
            turn, results = message, {}
        elif message["role"] == "tool":
            results[str(message.get("toolCallId"))] = message
    if turn is not None:
        yield _step(turn, results)


def _step(turn: MessageData, results: Mapping[str, MessageData]) -> TrajectoryStep:
    tools = [
        ToolUse(
            name=call["function"]["name"],
            args=parsed(call["function"]["arguments"]),
            result=parsed(results[call["id"]]["content"]) if call["id"] in results else None,
        )
        for call in calls_of(turn)
    ]
    return TrajectoryStep(text=text_of(turn["content"]), tools=tools)


def parsed(text: Any) -> Any:
    """The JSON value that a text is, or the text itself."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _diverged_at(a: list[TrajectoryStep], b: list[TrajectoryStep]) -> int | None:
    for number, (one, other) in enumerate(zip(a, b, strict=False), 1):
        if _key(one) != _key(other):
            return number
    return None if len(a) == len(b) else min(len(a), len(b)) + 1


def _key(step: TrajectoryStep) -> str:
    """Equal for equal steps: JSON tells 1 from true and from 1.0, which Python does not."""
    return json.dumps(step.model_dump(mode="json"), sort_keys=True)


def _tools_drift(a: list[TrajectoryStep], b: list[TrajectoryStep]) -> Iterator[Drift]:
    names_a, names_b = ([tool.name for step in steps for tool in step.tools] for steps in (a, b))
    if names_a != names_b:
        yield _drift("tools", " > ".join(names_a), " > ".join(names_b))


def _args_drift(a: list[TrajectoryStep], b: list[TrajectoryStep]) -> Iterator[Drift]:
    calls_a, calls_b = ([tool for step in steps for tool in step.tools] for steps in (a, b))
    for one, other in zip(calls_a, calls_b, strict=False):
        if one.name != other.name:
            return
        before, now = _shown(one), _shown(other)
        if before != now:
            yield _drift("args", before, now)


def _shown(tool: ToolUse) -> str:
    args = json.dumps(tool.args, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{tool.name} {args}"


def _checkpoint_drift(a: Checkpoint, b: Checkpoint, usage: bool) -> Iterator[Drift]:
    if a.finish_reason != b.finish_reason:
        yield _drift("finishReason", a.finish_reason or a.status, b.finish_reason or b.status)
    if usage and a.usage.total_tokens != b.usage.total_tokens:
        yield _drift("usage", a.usage.total_tokens, b.usage.total_tokens)


def _drift(field: str, committed: object, current: object) -> Drift:
    return Drift(field=field, committed=str(committed), current=str(current))


def _checkpoint(run: Run) -> Checkpoint | None:
    if isinstance(run, Checkpoint):
        return run
    return Checkpoint.model_validate(run) if isinstance(run, Mapping) else None


def _messages(run: Run) -> Iterator[MessageData]:
    checkpoint = _checkpoint(run)
    messages = checkpoint.messages if checkpoint is not None else Messages.of(run)  # type: ignore[arg-type]
    return messages.data()
