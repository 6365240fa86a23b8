"""No power cut loses or repeats anything: every disk state it may leave, opened and run to the end."""

from __future__ import annotations

import sys
from pathlib import Path

import crash_checks
import pytest
from crash_checks import Scenario, explore, play
from crash_scenarios import SCENARIOS

scratch = crash_checks.scratch
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be synced there")
each = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)


@each
def test_a_power_cut_loses_and_repeats_nothing(scenario: Scenario, scratch: Path) -> None:
    count = explore(play(scenario, scratch / "first"), scratch, "sectors", every=97)
    assert count.different > 3


@pytest.mark.soak
@pytest.mark.timeout(3600)
@each
def test_no_power_cut_loses_or_repeats_anything(scenario: Scenario, scratch: Path) -> None:
    count = explore(play(scenario, scratch / "first"), scratch)
    print(f"\n{scenario.name}: {count}")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@each
def test_no_power_cut_during_the_recovery_does_either(scenario: Scenario, scratch: Path) -> None:
    count = explore(play(scenario, scratch / "first"), scratch, "sectors", every=5, again=1)
    print(f"\n{scenario.name}: {count}, some of them after a second power cut")
