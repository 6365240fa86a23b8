"""Whether a case is stable, flaky or drifted, from several recorded runs and several new ones. Pure.

- *stable*: all runs, recorded and new, are alike.
- *flaky*: not all are, but some new run is like some recorded run. Or none is, yet that says nothing: on both
  sides no two runs are alike either, and recorded and new runs are as similar as the runs of one side.
- *drifted*: no new run is like any recorded run.

Exchanging the two sides changes nothing. A way that only one side took is no alarm as long as they share one,
so the noise of an unchanged agent raises none once its usual ways are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Literal

from ..execution.messages import JsonObject
from ..execution.steps import Trajectory
from .likeness import Likeness

Verdict = Literal["stable", "flaky", "drifted"]
Compare = Callable[[Trajectory, Trajectory], Likeness]


@dataclass(frozen=True, slots=True)
class Stability:
    """The new runs of a case held against the recorded ones.

    Attributes:
        verdict: `stable`, `flaky` or `drifted`.
        recorded, new: how many runs there are.
        as_recorded: how many new runs are like a recorded one.
        seen_again: how many recorded runs are like a new one.
        score: how similar a new run is to the recorded run that comes closest, 0 to 1, on average.
        furthest: the number (from 0) of the new run that is least like any recorded one, and
        closest: that of the recorded run that comes closest to it.
        likeness: these two compared.
    """

    verdict: Verdict
    recorded: int
    new: int
    as_recorded: int
    seen_again: int
    score: float
    furthest: int
    closest: int
    likeness: Likeness

    def to_json(self) -> JsonObject:
        return {
            "verdict": self.verdict,
            "recorded": self.recorded,
            "new": self.new,
            "asRecorded": self.as_recorded,
            "seenAgain": self.seen_again,
            "similarity": self.score,
        }


def stability(recorded: Sequence[Trajectory], new: Sequence[Trajectory], compare: Compare) -> Stability:
    """Hold new runs, at least one, against recorded ones, at least one."""
    table = [[compare(old, now) for old in recorded] for now in new]
    best = [_closest(row) for row in table]
    furthest = max(range(len(new)), key=lambda now: _distance(table[now][best[now]]))
    as_recorded = sum(any(each.alike for each in row) for row in table)
    return Stability(
        _verdict(recorded, new, table, compare),
        len(recorded),
        len(new),
        as_recorded,
        sum(any(row[old].alike for row in table) for old in range(len(recorded))),
        round(fmean(max(each.score for each in row) for row in table), 9),
        furthest,
        best[furthest],
        table[furthest][best[furthest]],
    )


def _verdict(
    recorded: Sequence[Trajectory],
    new: Sequence[Trajectory],
    table: Sequence[Sequence[Likeness]],
    compare: Compare,
) -> Verdict:
    across = [each for row in table for each in row]
    within = [[compare(*pair) for pair in combinations(side, 2)] for side in (recorded, new)]
    if all(each.alike for each in (*across, *within[0], *within[1])):
        return "stable"
    if any(each.alike for each in across):
        return "flaky"
    repeats = any(each.alike for side in within for each in side)
    if repeats or not all(within):
        return "drifted"
    usual = min(fmean(each.score for each in side) for side in within)
    return "flaky" if fmean(each.score for each in across) >= usual else "drifted"


def _closest(row: Sequence[Likeness]) -> int:
    """The number of the recorded run that comes closest."""
    return min(range(len(row)), key=lambda old: _distance(row[old]))


def _distance(likeness: Likeness) -> tuple[bool, float, int]:
    return not likeness.alike, -likeness.score, len(likeness.drift)
