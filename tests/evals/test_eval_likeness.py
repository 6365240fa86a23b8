"""How alike two runs are: the score, what is missing, extra and changed, and the user's own strictness."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ways import alike, batches, call, way

from lousho_cli.evals.alignment import best_pairs
from lousho_cli.evals.drift_rules import CallOrder, Strictness
from lousho_cli.evals.same_calls import PlainCall, Sameness
from lousho_cli.execution.steps import StepCall, Trajectory
from lousho_cli.providers.cassette_volatile import Volatile

A, B, C = call("A", x=1), call("B", q="foo"), call("C")
BASE = way(A, B, C)
NAMES_ONLY = {"*": "ignore"}


@pytest.mark.parametrize(
    ("run", "exact", "names_only", "any_order"),
    [
        (BASE, 1, 1, 1),
        (way(A, C, B), 2 / 3, 2 / 3, 1),
        (way(A, B, B, C), 6 / 7, 6 / 7, 6 / 7),
        (way(call("A", x="1"), call("B", q="Foo "), C), 2 / 3, 1, 2 / 3),
        (way(A, C), 4 / 5, 4 / 5, 4 / 5),
        (way(), 0, 0, 0),
    ],
)
def test_f44_a_score_gives_part_credit(
    run: Trajectory, exact: float, names_only: float, any_order: float
) -> None:
    for one, other in ((BASE, run), (run, BASE)):
        assert alike(one, other).score == pytest.approx(exact)
        assert alike(one, other, args=NAMES_ONLY).score == pytest.approx(names_only)
        assert alike(one, other, order="any").score == pytest.approx(any_order)


def test_f44_nothing_against_nothing_is_equal() -> None:
    assert alike(way(), way()).score == 1
    assert alike(way(), way()).alike


def test_f44_a_repeated_tool_is_not_paired_greedily() -> None:
    first, second = call("A", x=1, y=1), call("A", x=2, y=2)
    # Pairing the recorded call with the first of its tool would leave the equal one over.
    found = alike(way(second), way(first, second))
    assert found.score == pytest.approx(2 / 3)
    assert (found.extra, found.changed) == ((first,), ())


def test_f44_missing_extra_and_changed_calls_are_named() -> None:
    found = alike(BASE, way(call("A", x=2), C, call("D")))
    assert [each.name for each in found.missing] == ["B"]
    assert [each.name for each in found.extra] == ["D"]
    assert [change.to_json() for change in found.changed] == [
        {
            "tool": "A",
            "committed": {"x": 1},
            "current": {"x": 2},
            "fields": [{"path": "x", "committed": 1, "current": 2}],
        }
    ]
    assert [tuple(each) for each in found.drift] == [
        ("tools", "A > B > C", "A > C > D"),
        ("args", 'A {"x":1}', 'A {"x":2}'),
    ]
    assert found.parted_at == 1


def test_f51_one_call_more_does_not_make_all_after_it_different() -> None:
    found = alike(BASE, way(A, call("X"), B, C))
    assert [each.field for each in found.drift] == ["tools", "steps"]
    assert (found.parted_at, found.changed) == (2, ())


def test_calls_of_a_step_may_come_in_any_order() -> None:
    one, other = batches([A, B], [C]), batches([B, A], [C])
    assert not alike(one, other).alike
    assert alike(one, other, order="step").alike
    across = batches([A], [B, C])
    assert alike(one, across, order="step").score == 1
    assert not alike(batches([A], [B]), batches([B], [A]), order="step").alike
    assert alike(batches([A], [B]), batches([B], [A]), order="any").alike


def test_the_same_calls_in_other_places_are_other_arguments() -> None:
    one, two, three = (call("A", x=number) for number in (1, 2, 3))
    found = alike(way(one, two, three), way(two, three, one))
    assert [each.field for each in found.drift] == ["args"] * 3


@pytest.mark.parametrize(
    ("rule", "old", "new", "same"),
    [
        ("equal", "a", "A", False),
        ("equal", {"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ("ignore", "a", {"b": 1}, True),
        ("text", "Foo bar ", "foo BAR", True),
        ("text", 1, "1", True),
        ("text", ["A"], ["a"], True),
        ("text", "foo", "food", False),
        ("set", [1, 2, 2], [2, 1, 2], True),
        ("set", [1, 2, 2], [1, 1, 2], False),
        ({"within": 0.5}, 1, 1.5, True),
        ({"within": 0.5}, 1, 1.6, False),
        ({"within": 1}, True, 2, False),
        ({"id": "ignore", "n": {"within": 1}}, {"id": 1, "n": 1, "k": 2}, {"id": 2, "n": 2, "k": 2}, True),
        ({"id": "ignore"}, {"id": 1, "k": 2}, {"id": 1, "k": 3}, False),
        ("judged", "a", "b", False),
    ],
)
def test_arguments_have_their_own_strictness(rule: Any, old: Any, new: Any, same: bool) -> None:
    one, other = way(call("A", x=old)), way(call("A", x=new))
    assert alike(one, other, args={"A": {"x": rule}}).alike is same
    assert alike(other, one, args={"A": {"x": rule}}).alike is same


def test_an_ignored_argument_may_be_missing() -> None:
    assert alike(way(call("A")), way(call("A", hint="late")), args={"A": {"hint": "ignore"}}).alike
    assert not alike(way(call("A")), way(call("A", hint="late")), args={"B": {"hint": "ignore"}}).alike


def test_calls_of_an_ignored_tool_do_not_count() -> None:
    now = call("now")
    assert [each.field for each in alike(BASE, way(A, now, B, C), ignore=["now"]).drift] == ["steps"]
    assert alike(BASE, batches([A, now], [B], [C]), ignore=["now"]).alike


def test_f52_what_changes_every_time_is_no_drift() -> None:
    def run(uuid: str, at: str, took: str, file: str) -> Trajectory:
        return way(call("log", id=uuid, at=at, text=f"took {took}", file=file))

    one = run("0b0e7a52-8f4b-4f6e-9a8e-1c2d3e4f5a6b", "2026-01-31T09:30:00Z", "12 ms", "/tmp/tmpab12cd34/x")
    other = run("ffffffff-8f4b-4f6e-9a8e-1c2d3e4f5a6b", "2027-02-01T10:00:01Z", "0.5 s", "/tmp/tmpzz99/x")
    assert alike(one, other).alike
    assert alike(one, other).score == 1


@st.composite
def calls(draw: st.DrawFn) -> list[PlainCall]:
    same = Sameness(Strictness(), Volatile())
    found, step = [], 1
    for _ in range(draw(st.integers(0, 4))):
        step += draw(st.integers(0, 1))
        args = draw(st.dictionaries(st.sampled_from("xy"), st.integers(0, 1)))
        found.append(same.plain(step, StepCall(draw(st.sampled_from("AB")), args)))
    return found


def worth(a: list[PlainCall], b: list[PlainCall], order: CallOrder) -> float:
    similarity = Sameness(Strictness(), Volatile()).similarity
    pairs = best_pairs(a, b, order, similarity)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert all(a[i].name == b[j].name for i, j in pairs)
    return sum(similarity(a[i], b[j]) for i, j in pairs)


@given(calls(), calls())
def test_no_pairing_is_better_and_a_laxer_order_is_never_worse(
    a: list[PlainCall], b: list[PlainCall]
) -> None:
    similarity = Sameness(Strictness(), Volatile()).similarity
    short, long = sorted((a, b), key=len)
    tries = permutations(range(len(long)), len(short))
    best_any = max(sum(similarity(short[i], long[j]) for i, j in enumerate(each)) for each in tries)

    def best_strict(i: int, j: int) -> float:
        if i == len(a) or j == len(b):
            return 0.0
        paired = similarity(a[i], b[j]) + best_strict(i + 1, j + 1)
        return max(paired, best_strict(i + 1, j), best_strict(i, j + 1))

    strict, step, free = (worth(a, b, order) for order in ("strict", "step", "any"))
    assert free == pytest.approx(best_any)
    assert strict == pytest.approx(best_strict(0, 0))
    assert strict <= step + 1e-9 <= free + 2e-9
    assert worth(b, a, "strict") == pytest.approx(strict)
    assert worth(b, a, "step") == pytest.approx(step)
    assert worth(b, a, "any") == pytest.approx(free)


def test_many_calls_of_one_tool_are_compared_in_reasonable_time() -> None:
    many = way(*(call("A", x=number) for number in range(300)))
    turned = way(*(call("A", x=number) for number in reversed(range(300))))
    assert alike(many, turned, order="any").score == 1
    assert alike(many, turned).score < 1
