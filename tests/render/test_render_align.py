from __future__ import annotations

import random
import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lousho_cli.render.align import align, common_subsequence

ITEMS = st.lists(st.integers(0, 3), max_size=14)


def longest(a: list[int], b: list[int]) -> int:
    """The length of a longest common subsequence, by the textbook table."""
    row = [0] * (len(b) + 1)
    for x in a:
        last = row[:]
        for j, y in enumerate(b, 1):
            row[j] = last[j - 1] + 1 if x == y else max(last[j], row[j - 1])
    return row[-1]


@given(ITEMS, ITEMS)
def test_the_subsequence_is_common_growing_and_longest(a: list[int], b: list[int]) -> None:
    pairs = common_subsequence(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))
    assert len(pairs) == longest(a, b)


@given(ITEMS, ITEMS)
def test_every_element_appears_once_and_in_order(a: list[int], b: list[int]) -> None:
    rows = align(a, b, [x % 2 for x in a], [x % 2 for x in b])
    assert [row.a for row in rows if row.a is not None] == list(range(len(a)))
    assert [row.b for row in rows if row.b is not None] == list(range(len(b)))
    for row in rows:
        assert not row.same or (row.a is not None and row.b is not None and a[row.a] == b[row.b])
    assert sum(row.same for row in rows) == longest(a, b)


@given(ITEMS)
def test_a_sequence_against_itself_is_the_same(a: list[int]) -> None:
    assert all(row.same and row.a == row.b for row in align(a, a, a, a))


@given(ITEMS, st.integers(0, 14))
def test_one_insertion_changes_one_row(a: list[int], at: int) -> None:
    at = min(at, len(a))
    b = [*a[:at], 9, *a[at:]]
    rows = align(a, b, a, b)
    assert [row for row in rows if not row.same] == [(None, at, False)]


def test_what_is_alike_is_paired_before_what_is_not() -> None:
    rows = align(["x1", "y1"], ["z", "x2", "y2"], ["x", "y"], ["z", "x", "y"])
    assert rows == [(None, 0, False), (0, 1, False), (1, 2, False)]


def test_two_thousand_steps_against_two_thousand_take_a_moment() -> None:
    chance = random.Random(1)
    shapes: list[tuple[list[int], list[int]]] = [
        ([1] * 2000, [1] * 1000 + [2] * 1000),
        ([1, 2] * 1000, [1, 3] * 1000),
        ([1] * 1000 + [2] * 1000, [2] * 1000 + [1] * 1000),
        ([chance.randrange(5) for _ in range(2000)], [chance.randrange(5) for _ in range(2000)]),
        (list(range(2000)), list(range(5000, 7000))),
    ]
    start = time.perf_counter()
    for a, b in shapes:
        align(a, b, a, b)
    assert time.perf_counter() - start < 5
