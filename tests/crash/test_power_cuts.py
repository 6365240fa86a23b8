"""No power cut loses or repeats anything: every disk state it may leave, opened and run to the end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from crash_checks import Scenario, explore, play
from crash_scenarios import SCENARIOS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be synced there")
each = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)


@each
def test_a_power_cut_loses_and_repeats_nothing(scenario: Scenario, tmp_path: Path) -> None:
    count = explore(play(scenario, tmp_path / "first"), tmp_path, "sectors", every=97)
    assert count.resumed > 5


@pytest.mark.soak
@pytest.mark.timeout(3600)
@each
def test_no_power_cut_loses_or_repeats_anything(scenario: Scenario, tmp_path: Path) -> None:
    count = explore(play(scenario, tmp_path / "first"), tmp_path)
    print(f"\n{scenario.name}: {count}")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@each
def test_no_power_cut_during_the_recovery_does_either(scenario: Scenario, tmp_path: Path) -> None:
    count = explore(play(scenario, tmp_path / "first"), tmp_path, "sectors", every=5, again=1)
    print(f"\n{scenario.name}: {count}, some of them after a second power cut")
