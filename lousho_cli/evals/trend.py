"""How the similarity of a case goes over its last drift runs, and whether it declines. Pure.

A decline is a trend by the test of Mann and Kendall: of all pairs of runs, far more have the later one lower
than chance would make so (once in a thousand). It sees small steps that all go down, not ups and downs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import erfc, sqrt

from ..execution.messages import JsonObject

WINDOW = 20
"""Runs that are looked at."""
_CHANCE = 0.001


@dataclass(frozen=True, slots=True)
class Trend:
    """The last drift runs of a case, the newest last.

    Attributes:
        values: the similarity of each to the first recording that is remembered, 0 to 1: where the case was
            recorded anew in between, what was lost then counts on.
        declines: whether they go down.
    """

    values: tuple[float, ...]
    declines: bool

    def to_json(self) -> JsonObject:
        return {"similarity": [*self.values], "declines": self.declines}


def trend_of(values: Sequence[float]) -> Trend:
    """The trend of the newest of these values."""
    last = tuple(values[-WINDOW:])
    return Trend(last, declines(last))


def declines(values: Sequence[float]) -> bool:
    """Whether values go down by more than chance."""
    n = len(values)
    score = sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2))
    ties = Counter(values).values()
    variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    if score >= 0 or variance <= 0:
        return False
    z = (-score - 1) / sqrt(variance)
    return erfc(z / sqrt(2)) / 2 < _CHANCE
