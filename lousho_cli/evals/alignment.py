"""The best way to pair the calls of two runs: the one whose pairs are most alike in all. Pure.

What may be paired depends on the order that counts. `strict`: pairs do not cross. `step`: steps are paired
in order, calls of two paired steps in any order; or as in `strict`, if that is better. `any`: every call
with any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import fsum
from typing import TypeVar

from .drift_rules import CallOrder
from .same_calls import PlainCall

Pairs = list[tuple[int, int]]
T = TypeVar("T")
Similarity = Callable[[PlainCall, PlainCall], float]
_LARGE = 10_000


def best_pairs(
    a: Sequence[PlainCall], b: Sequence[PlainCall], order: CallOrder, similarity: Similarity
) -> Pairs:
    """Index pairs of calls of the same tool, by the first index; no call is in two of them."""
    if order == "any":
        return sorted(_assigned(a, b, similarity))
    pairs = _in_order(a, b, similarity, lambda call: call.key)
    if order == "step":
        by_step = _step_by_step(a, b, similarity)
        if _worth(a, b, by_step, similarity) > _worth(a, b, pairs, similarity):
            return sorted(by_step)
    return pairs


def _worth(a: Sequence[PlainCall], b: Sequence[PlainCall], pairs: Pairs, similarity: Similarity) -> float:
    return fsum(similarity(a[i], b[j]) for i, j in pairs)


def _in_order(
    a: Sequence[T], b: Sequence[T], weight: Callable[[T, T], float], key: Callable[[T], object]
) -> Pairs:
    """Pairs that do not cross, of the largest weight in all. Equal keys weigh the most there is.

    Equal ends are paired at once: some best pairing pairs them.
    """
    keys_a, keys_b = [key(each) for each in a], [key(each) for each in b]
    start, shortest = 0, min(len(a), len(b))
    while start < shortest and keys_a[start] == keys_b[start]:
        start += 1
    end = 0
    while end < shortest - start and keys_a[-1 - end] == keys_b[-1 - end]:
        end += 1
    middle = _table_pairs(a[start : len(a) - end], b[start : len(b) - end], weight)
    head = [(index, index) for index in range(start)]
    tail = [(len(a) - back, len(b) - back) for back in range(end, 0, -1)]
    return head + [(start + i, start + j) for i, j in middle] + tail


def _table_pairs(a: Sequence[T], b: Sequence[T], weight: Callable[[T, T], float]) -> Pairs:
    """By dynamic programming: `best[i][j]` is what `a[i:]` and `b[j:]` are worth."""
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    weights = [[weight(one, other) for other in b] for one in a]
    for i in range(len(a) - 1, -1, -1):
        row, below = best[i], best[i + 1]
        for j in range(len(b) - 1, -1, -1):
            paired = weights[i][j] + below[j + 1]
            row[j] = max(paired, below[j], row[j + 1])
    pairs: Pairs = []
    i = j = 0
    while i < len(a) and j < len(b):
        if weights[i][j] > 0 and best[i][j] == weights[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _step_by_step(a: Sequence[PlainCall], b: Sequence[PlainCall], similarity: Similarity) -> Pairs:
    steps_a, steps_b = _steps(a), _steps(b)

    def weight(one: Sequence[int], other: Sequence[int]) -> float:
        left, right = [a[i] for i in one], [b[j] for j in other]
        return _worth(left, right, _assigned(left, right, similarity), similarity)

    # Steps have no largest weight, so their ends are not paired at once: each is its own key.
    paired = _in_order(steps_a, steps_b, weight, id)
    found: Pairs = []
    for p, q in paired:
        inner = _assigned([a[i] for i in steps_a[p]], [b[j] for j in steps_b[q]], similarity)
        found += [(steps_a[p][i], steps_b[q][j]) for i, j in inner]
    return found


def _steps(calls: Sequence[PlainCall]) -> list[list[int]]:
    return [list(group) for _, group in groupby(range(len(calls)), lambda index: calls[index].step)]


def _assigned(a: Sequence[PlainCall], b: Sequence[PlainCall], similarity: Similarity) -> Pairs:
    """Pairs in any order, of the largest weight in all: calls of different tools are never paired."""
    found: Pairs = []
    for name in dict.fromkeys(call.name for call in a):
        left = [index for index, call in enumerate(a) if call.name == name]
        right = [index for index, call in enumerate(b) if call.name == name]
        if len(left) * len(right) > _LARGE:
            found += _take_equal(a, b, left, right)
        costs = [[1.0 - similarity(a[i], b[j]) for j in right] for i in left]
        found += [(left[i], right[j]) for i, j in _cheapest(costs)]
    return found


def _take_equal(a: Sequence[PlainCall], b: Sequence[PlainCall], left: list[int], right: list[int]) -> Pairs:
    """Pair equal calls and take them out: what is left is small enough to be tried in every way."""
    places: dict[str, list[int]] = {}
    for j in reversed(right):
        places.setdefault(b[j].key, []).append(j)
    pairs = [(i, places[a[i].key].pop()) for i in left if places.get(a[i].key)]
    left[:] = [i for i in left if i not in dict(pairs)]
    right[:] = [j for j in right if j not in {other for _, other in pairs}]
    return pairs


def _cheapest(costs: list[list[float]]) -> Pairs:
    """The assignment of rows to columns that costs least, by shortest augmenting paths."""
    if not costs or not costs[0]:
        return []
    if len(costs) > len(costs[0]):
        return [(i, j) for j, i in _cheapest([list(column) for column in zip(*costs, strict=True)])]
    rows, columns = len(costs), len(costs[0])
    row_price, column_price = [0.0] * (rows + 1), [0.0] * (columns + 1)
    # Row and column 0 stand for "none": owner[j] is the row that column j is assigned to.
    owner = [0] * (columns + 1)
    for row in range(1, rows + 1):
        owner[0] = row
        column = 0
        shortest, came_from, done = (
            [float("inf")] * (columns + 1),
            [0] * (columns + 1),
            [False] * (columns + 1),
        )
        while owner[column]:
            done[column] = True
            here, step, following = owner[column], float("inf"), 0
            for j in range(1, columns + 1):
                if done[j]:
                    continue
                reduced = costs[here - 1][j - 1] - row_price[here] - column_price[j]
                if reduced < shortest[j]:
                    shortest[j], came_from[j] = reduced, column
                if shortest[j] < step:
                    step, following = shortest[j], j
            for j in range(columns + 1):
                if done[j]:
                    row_price[owner[j]] += step
                    column_price[j] -= step
                else:
                    shortest[j] -= step
            column = following
        while column:
            owner[column] = owner[came_from[column]]
            column = came_from[column]
    return [(owner[j] - 1, j - 1) for j in range(1, columns + 1) if owner[j]]
