"""Stable, flaky or drifted: several recorded runs against several new ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ways import call, stable, way

from lousho_cli.evals.stability import Verdict
from lousho_cli.execution.steps import Trajectory

A, B, C = way(call("a")), way(call("b")), way(call("c"))


@pytest.mark.parametrize(
    ("recorded", "new", "verdict"),
    [
        ([A], [A], "stable"),
        ([A], [B], "drifted"),
        ([A, A], [A, A], "stable"),
        ([A, B], [A], "flaky"),
        ([A], [A, A, B], "flaky"),
        ([A, B, C], [B], "flaky"),
        ([A, A], [B, B], "drifted"),
        ([A, A, A], [B, C], "drifted"),
        ([A, B], [C, C], "drifted"),
    ],
)
def test_f52_flaky_is_told_apart_from_drifted(
    recorded: Sequence[Trajectory], new: Sequence[Trajectory], verdict: Verdict
) -> None:
    assert stable(recorded, new).verdict == verdict
    assert stable(new, recorded).verdict == verdict


def test_the_counts() -> None:
    found = stable([A, B, C], [B, B, way(call("d"))])
    assert (found.recorded, found.new, found.as_recorded, found.seen_again) == (3, 3, 2, 1)
    assert (found.furthest, found.likeness.alike) == (2, False)
    assert found.score == pytest.approx(2 / 3)


def free_text(tool: str, number: int) -> Trajectory:
    return way(call("search"), call(tool, text=f"in other words: {number}"))


def test_where_no_run_is_like_another_of_its_side_that_none_is_like_one_of_the_other_is_no_alarm() -> None:
    recorded = [free_text("write", number) for number in range(3)]
    assert stable(recorded, [free_text("write", number) for number in range(10, 13)]).verdict == "flaky"
    assert stable(recorded, [free_text("send", number) for number in range(10, 13)]).verdict == "drifted"


WAYS = st.lists(st.sampled_from([A, B, C, way(call("a"), call("b"))]), min_size=1, max_size=4)


@given(WAYS, WAYS)
def test_the_verdict_is_symmetric(recorded: list[Trajectory], new: list[Trajectory]) -> None:
    there, back = stable(recorded, new), stable(new, recorded)
    assert there.verdict == back.verdict
    assert (there.as_recorded, there.seen_again) == (back.seen_again, back.as_recorded)
    assert (there.verdict == "drifted") <= (there.as_recorded == 0)


def test_the_noise_of_an_unchanged_model_is_never_drift() -> None:
    noise = random.Random(7)

    def run() -> Trajectory:
        return way(call("look")) if noise.random() < 2 / 3 else way(call("look"), call("look"))

    recorded = [way(call("look")), way(call("look"), call("look")), way(call("look"))]
    assert {stable(recorded, [run()]).verdict for _ in range(10)} == {"flaky"}
    assert stable(recorded, [run() for _ in range(10)]).verdict == "flaky"
