"""How alike two runs are: a score, the calls that are missing, extra and changed, and what drifted. Pure.

The score is twice what the best pairs of calls are worth, by the number of calls of both runs: a pair of
equal calls is worth 1, a pair of calls of one tool with other arguments 0.5 to 1. It is symmetric; 1 for
runs with the same calls, two without any included; 0 where no tool is called in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from ..execution.messages import JsonObject
from ..execution.steps import Difference, Step, StepCall, Trajectory, shown_call
from ..render.fields import MISSING, changes
from .alignment import best_pairs
from .same_calls import PlainCall, Sameness


@dataclass(frozen=True, slots=True)
class ChangedCall:
    """A call that both runs made, with other arguments."""

    committed: StepCall
    current: StepCall

    def to_json(self) -> JsonObject:
        return {
            "tool": self.committed.name,
            "committed": self.committed.args,
            "current": self.current.args,
            "fields": [_field(*change) for change in changes(self.committed.args, self.current.args)],
        }


@dataclass(frozen=True, slots=True)
class Likeness:
    """Two runs compared, a recorded one with one of now.

    Attributes:
        score: 0 to 1.
        missing: calls of the recorded run that the other did not make.
        extra: calls that only the other made.
        changed: calls of both with other arguments.
        drift: what differs, field by field; empty for runs that are alike.
        parted_at: the number of the first step that differs, from 1; None if none does.
    """

    score: float
    missing: tuple[StepCall, ...]
    extra: tuple[StepCall, ...]
    changed: tuple[ChangedCall, ...]
    drift: tuple[Difference, ...]
    parted_at: int | None

    @property
    def alike(self) -> bool:
        return not self.drift

    def to_json(self) -> JsonObject:
        return {
            "missing": [_call(call) for call in self.missing],
            "extra": [_call(call) for call in self.extra],
            "changed": [change.to_json() for change in self.changed],
            "partedAt": self.parted_at,
        }


def likeness(committed: Trajectory, current: Trajectory, same: Sameness) -> Likeness:
    """Compare two runs."""
    a, b = _calls(committed.steps, same), _calls(current.steps, same)
    pairs = best_pairs(a, b, same.rules.order, same.similarity)
    worth = [same.similarity(a[i], b[j]) for i, j in pairs]
    changed = [pair for pair, value in zip(pairs, worth, strict=True) if value < 1]
    left, right = {i for i, _ in pairs}, {j for _, j in pairs}
    missing = [call for i, call in enumerate(a) if i not in left]
    extra = [call for j, call in enumerate(b) if j not in right]
    calls = [ChangedCall(a[i].call, b[j].call) for i, j in changed]
    places = [call.step for call in (*missing, *extra)]
    places += [min(a[i].step, b[j].step) for i, j in changed]
    if len(committed.steps) != len(current.steps):
        places.append(min(len(committed.steps), len(current.steps)) + 1)
    return Likeness(
        round(2 * fsum(worth) / (len(a) + len(b)), 9) if a or b else 1.0,
        tuple(call.call for call in missing),
        tuple(call.call for call in extra),
        tuple(calls),
        (*_other_calls(a, b, bool(missing or extra), calls, same), *_as_wholes(committed, current)),
        min(places, default=None),
    )


def _calls(steps: Sequence[Step], same: Sameness) -> list[PlainCall]:
    return [
        same.plain(number, call)
        for number, step in enumerate(steps, 1)
        for call in step.tools
        if call.name not in same.rules.ignored
    ]


def _other_calls(
    a: Sequence[PlainCall],
    b: Sequence[PlainCall],
    unpaired: bool,
    changed: Sequence[ChangedCall],
    same: Sameness,
) -> Iterator[Difference]:
    """In the fields and words in which two runs are compared everywhere."""
    names_a, names_b = ([call.name for call in calls] for calls in (a, b))
    if unpaired and names_a != names_b:
        yield Difference("tools", " > ".join(names_a), " > ".join(names_b))
    elif unpaired:
        # The same tools in the same order, but equal calls are not in the same places.
        changed = [
            ChangedCall(x.call, y.call) for x, y in zip(a, b, strict=True) if same.similarity(x, y) < 1
        ]
    for change in changed:
        yield Difference("args", shown_call(change.committed), shown_call(change.current))


def _as_wholes(committed: Trajectory, current: Trajectory) -> Iterator[Difference]:
    if len(committed.steps) != len(current.steps):
        yield Difference("steps", str(len(committed.steps)), str(len(current.steps)))
    if None not in (committed.ended, current.ended) and committed.ended != current.ended:
        yield Difference("finishReason", str(committed.ended), str(current.ended))
    if None not in (committed.tokens, current.tokens) and committed.tokens != current.tokens:
        yield Difference("usage", str(committed.tokens), str(current.tokens))


def _call(call: StepCall) -> JsonObject:
    return {"tool": call.name, "args": call.args}


def _field(path: str, old: Any, new: Any) -> JsonObject:
    """A field that differs; a side that lacks it has no key."""
    sides = {"committed": old, "current": new}
    return {"path": path} | {side: value for side, value in sides.items() if value is not MISSING}
