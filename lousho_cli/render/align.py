"""Aligning two sequences so that one insertion does not make everything after it different. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One row of an alignment: an index into each side, or None where that side has nothing."""

    a: int | None
    b: int | None
    same: bool


def common_subsequence(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence, both growing.

    The table of dynamic programming is kept as one big integer for each element of `a`, a bit for each of
    `b`, so 2,000 against 2,000 takes milliseconds and half a megabyte whatever they hold.
    """
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    head = [(i, i) for i in range(start)]
    tail = [(len(a) - k, len(b) - k) for k in range(end, 0, -1)]
    middle = _bitwise(a[start : len(a) - end], b[start : len(b) - end])
    return head + [(start + i, start + j) for i, j in middle] + tail


def _bitwise(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """In a row, a zero bit at j says that the subsequence grows there: b[:j + 1] has one more than b[:j]."""
    places: dict[Hashable, int] = {}
    for j, item in enumerate(b):
        places[item] = places.get(item, 0) | 1 << j
    full = (1 << len(b)) - 1
    rows = [full]
    for item in a:
        row = rows[-1]
        matches = row & places.get(item, 0)
        rows.append(((row + matches) | (row - matches)) & full)
    pairs: list[tuple[int, int]] = []
    i, j = len(a), len(b) - 1
    while i > 0 and j >= 0:
        if rows[i] >> j & 1:
            j -= 1
        elif not rows[i - 1] >> j & 1:
            i -= 1
        else:
            i -= 1
            pairs.append((i, j))
            j -= 1
    return pairs[::-1]


def align(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    kin_a: Sequence[Hashable],
    kin_b: Sequence[Hashable],
) -> list[Row]:
    """Every element of both sides, in order, exactly once.

    Equal elements are paired first; between them those that are alike by their `kin` key, then what is left
    over by position.
    """
    rows: list[Row] = []
    last_a = last_b = 0
    for i, j in [*common_subsequence(a, b), (len(a), len(b))]:
        rows += _between(kin_a, kin_b, range(last_a, i), range(last_b, j))
        if i < len(a):
            rows.append(Row(i, j, True))
        last_a, last_b = i + 1, j + 1
    return rows


def _between(kin_a: Sequence[Hashable], kin_b: Sequence[Hashable], left: range, right: range) -> list[Row]:
    rows: list[Row] = []
    last_a, last_b = left.start, right.start
    alike = common_subsequence(kin_a[left.start : left.stop], kin_b[right.start : right.stop])
    pairs = [(left.start + i, right.start + j) for i, j in alike]
    for i, j in [*pairs, (left.stop, right.stop)]:
        rows += _by_position(range(last_a, i), range(last_b, j))
        if i < left.stop:
            rows.append(Row(i, j, False))
        last_a, last_b = i + 1, j + 1
    return rows


def _by_position(left: range, right: range) -> list[Row]:
    both = min(len(left), len(right))
    rows = [Row(i, j, False) for i, j in zip(left, right, strict=False)]
    rows += [Row(i, None, False) for i in left[both:]]
    rows += [Row(None, j, False) for j in right[both:]]
    return rows
