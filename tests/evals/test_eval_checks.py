"""What is expected held against what was seen, and how a miss is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho_cli.evals.cases import Expectations
from lousho_cli.evals.checks import judge
from lousho_cli.evals.matching import closest, holds, lacking
from lousho_cli.evals.outcome import Failure, Outcome
from lousho_cli.execution.steps import Step, StepCall

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def outcome(*calls: tuple[str, Any], reply: str = "Done.", ended: str = "stop", **more: Any) -> Outcome:
    """A run of one step a call and an answer."""
    steps = [Step("", (StepCall(name, args),)) for name, args in calls]
    return Outcome((*steps, Step(reply, ())), (ended,), reply, **more)


def failures(outcome: Outcome, **expected: Any) -> list[str]:
    found = judge(Expectations.model_validate(expected), outcome).failures
    return [f"{each.check}: {each.message}" for each in found]


@given(json_values)
def test_every_value_holds_itself(value: Any) -> None:
    assert holds(value, value)


@given(st.dictionaries(st.text(max_size=2), json_values), st.dictionaries(st.text(max_size=2), json_values))
def test_an_object_with_more_in_it_still_holds_what_is_expected(expected: Any, more: Any) -> None:
    assert holds({**more, **expected}, expected)


@given(json_values, json_values)
def test_what_does_not_hold_says_where(seen: Any, expected: Any) -> None:
    assert holds(seen, expected) == (list(lacking(seen, expected)) == [])


@pytest.mark.parametrize(
    ("seen", "expected", "matches"),
    [
        ({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1}}, True),
        ({"a": {"c": 2}}, {"a": {"b": 1}}, False),
        ([1, {"a": 1, "b": 2}], [1, {"a": 1}], True),
        ([1, 2], [1], False),
        (1.0, 1, True),
        (True, 1, False),
        ("1", 1, False),
        (None, {}, False),
        ({}, {"a": None}, False),
    ],
)
def test_partial_deep_match(seen: Any, expected: Any, matches: bool) -> None:
    assert holds(seen, expected) is matches


def test_the_closest_call_lacks_least() -> None:
    calls = [StepCall("a", {"x": 2}), StepCall("a", {"x": 1, "y": 2}), StepCall("b", {"x": 1, "y": 1})]
    assert closest(calls, "a", {"x": 1, "y": 1}) is calls[1]
    assert closest(calls, "c", {}) is None


def test_f44_a_missing_call_names_the_closest_and_its_first_difference() -> None:
    seen = outcome(("pay", {"to": "Ann", "amount": 3}), ("pay", {"to": "Bob", "amount": 4}))
    assert failures(seen, called=[{"tool": "pay", "args": {"to": "Ann", "amount": 5}}]) == [
        'called: pay {"to": "Ann", "amount": 5} was not called; the closest call is '
        'pay {"to": "Ann", "amount": 3}: amount is 3, wanted 5'
    ]
    assert failures(seen, called=[{"tool": "look"}]) == [
        "called: look was not called; called were: pay > pay"
    ]
    assert failures(outcome(), called=[{"tool": "look"}]) == [
        "called: look was not called; called were: no tools"
    ]


def test_a_call_may_be_wanted_some_number_of_times() -> None:
    seen = outcome(("a", {"x": 1}), ("a", {"x": 2}))
    assert (
        failures(seen, called=[{"tool": "a", "times": 2}, {"tool": "a", "args": {"x": 1}, "times": 1}]) == []
    )
    assert failures(seen, called=[{"tool": "b", "times": 0}]) == []
    assert failures(seen, called=[{"tool": "a", "times": 1}]) == ["called: a was called 2 times, wanted 1"]


def test_order_lets_other_calls_lie_between() -> None:
    seen = outcome(("a", {}), ("b", {}), ("c", {}))
    assert failures(seen, order=["a", "c"]) == []
    assert failures(seen, order=["c", "a"]) == ["order: wanted c > a; a is missing in its place: a > b > c"]
    assert failures(seen, order=["a", "a"]) != []


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ({"not_called": "a"}, 'not_called: a must not be called, but was: a {"x": 1}'),
        ({"completed": False}, "completed: wanted not completed, but the run ended with 'stop'"),
        ({"max_steps": 1}, "max_steps: wanted at most 1 steps, but 2 were used"),
        ({"max_tokens": 6}, "max_tokens: wanted at most 6 tokens, but 7 were used"),
        (
            {"max_cost_usd": 1},
            "max_cost_usd: wanted at most 1 US dollars, but how many were used is not known",
        ),
        ({"reply": {"includes": ["Done", "done"]}}, 'reply: the reply does not include "done": "Done."'),
        ({"reply": {"matches": "^done"}}, 'reply: the reply does not match ^done: "Done."'),
        ({"reply": {"equals": "Done"}}, 'reply: the reply is "Done.", wanted "Done"'),
        ({"output": {"a.b": 1}}, 'output: the output has no a.b: "Done."'),
    ],
)
def test_what_does_not_hold_is_told(expected: dict[str, Any], told: str) -> None:
    assert failures(outcome(("a", {"x": 1}), tokens=7), **expected) == [told]


def test_what_holds_is_not_told() -> None:
    seen = outcome(("a", {"x": 1}), reply='{"a": {"b": [1, 2]}}', tokens=7, cost_usd=0.5)
    assert failures(
        seen,
        completed=True,
        not_called=["b"],
        max_steps=2,
        max_tokens=7,
        max_cost_usd=0.5,
        reply={"includes": '"b"', "matches": r"\[1"},
        output={"a.b": [1, 2], "a.b.1": 2},
    ) == []  # fmt: skip


def test_a_run_that_did_not_complete() -> None:
    assert failures(outcome(ended="max-steps"), completed=True) == [
        "completed: wanted completed, but the run ended with 'max-steps'"
    ]
    assert failures(outcome(ended="max-steps"), completed=False) == []


def test_what_could_not_be_played_is_not_held_against_anything_else() -> None:
    problem = Failure("run", "the model failed")
    assert failures(Outcome(problem=problem), completed=True, max_steps=0) == ["run: the model failed"]


def test_soft_checks_fail_only_below_their_threshold() -> None:
    def verdict(threshold: float) -> tuple[int, int, float | None]:
        soft = {"threshold": threshold, "max_steps": 0, "not_called": ["b"], "reply": {"includes": "?"}}
        found = judge(Expectations.model_validate({"soft": soft}), outcome())
        return len(found.failures), len(found.warnings), found.score

    assert verdict(0) == (0, 2, 1 / 3)
    assert verdict(0.3)[0] == 0
    assert verdict(0.4)[0] == 1
    assert judge(Expectations(), outcome()).score is None
