"""Processes killed with SIGKILL, at every trigger point, around every file call and at random moments.

What the next process finds, and what it makes of it, is checked after each kill (R3.4 to R3.6).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kill_play import WARM_UP, NextDeath, Play, Tally
from kill_world import make_workspace
from life_calls import Fault
from life_client import Death, FreshLives, Lives

from lousho_cli.execution.triggers import POINTS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork processes")
ELSEWHERE = ("queue.", "abort.", "save.")
"""Points that these conversations do not pass: no message comes while a turn is open, nobody aborts."""
PASSED = [point for point in POINTS if not point.startswith(ELSEWHERE)]


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    with Lives(make_workspace(tmp_path / "warm"), WARM_UP) as made:
        yield made


def around_file_calls(chance: random.Random) -> NextDeath:
    """Kills before a file call, or in half a write."""

    def next_death(words: tuple[str, ...]) -> Death | None:
        if chance.random() < 0.1:
            return None
        return Death(call=Fault(chance.randrange(280), torn=chance.random() < 0.5))

    return next_death


def anywhere(chance: random.Random) -> NextDeath:
    """Kills at random moments, at trigger points and around file calls."""
    file_calls = around_file_calls(chance)

    def next_death(words: tuple[str, ...]) -> Death | None:
        match chance.randrange(5):
            case 0 | 1:
                return Death(after=chance.uniform(0.002, 0.08))
            case 2:
                return Death(points=tuple(chance.sample(PASSED, 8)), nth=chance.choice([1, 1, 2]))
            case 3:
                return file_calls(words)
            case _:
                return None

    return next_death


def test_a_kill_at_each_trigger_point_loses_and_repeats_nothing(lives: Lives, tmp_path: Path) -> None:
    tally, chance = Tally(), random.Random(1)

    def left() -> tuple[str, ...]:
        return tuple(point for point in PASSED if not tally.places[point])

    for number in range(4):
        home = make_workspace(tmp_path / str(number))
        Play(lives, home, lambda words: Death(points=left()), tally, chance).everything()
    assert not left()


def test_a_kill_around_any_file_call_does_neither(lives: Lives, tmp_path: Path) -> None:
    tally, chance = Tally(), random.Random(3)
    home = make_workspace(tmp_path / "home")
    Play(lives, home, around_file_calls(chance), tally, chance).everything()
    assert tally.kills.total() > 10


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_ten_thousand_kills(tmp_path: Path) -> None:
    tally, started = Tally(), time.monotonic()

    def play(worker: int) -> None:
        chance = random.Random(worker)
        slow = {"LOUSHO_TOOL_SECONDS": "0.002"}
        with Lives(make_workspace(tmp_path / f"warm-{worker}"), WARM_UP, slow) as lives:
            while tally.kills.total() < 10_000:
                home = make_workspace(tmp_path / f"home-{worker}")
                Play(lives, home, anywhere(chance), tally, chance).everything()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(play, range(2)))
    print(f"\n{tally}\nin {time.monotonic() - started:.0f} s")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_hundred_kills_of_fresh_processes(tmp_path: Path) -> None:
    tally, chance, spans = Tally(), random.Random(5), [0.2]
    lives = FreshLives()

    def next_death(words: tuple[str, ...]) -> Death | None:
        return Death(after=chance.uniform(0.3, 1.1) * spans[-1])

    while tally.kills.total() < 200:
        home = make_workspace(tmp_path / "home")
        started = time.monotonic()
        assert lives.run(home, "run", "w", "go").code == 3
        spans.append(time.monotonic() - started)
        Play(lives, home, next_death, tally, chance).everything()
    print(f"\n{tally}")
