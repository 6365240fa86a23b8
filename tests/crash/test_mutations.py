"""The power-cut tests can fail: whichever guarantee is taken away, they see it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from crash_checks import Lost, explore, play
from crash_mutations import MUTATIONS, Mutation
from crash_scenarios import SCENARIOS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be synced there")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "mutation",
    [pytest.param(each, id=each.name, marks=[pytest.mark.soak] if each.slow else []) for each in MUTATIONS],
)
def test_a_guarantee_less_is_seen(mutation: Mutation, tmp_path: Path) -> None:
    scenario = next(each for each in SCENARIOS if each.name == mutation.scenario)
    with mutation.made(), pytest.raises(Lost) as caught:
        explore(play(scenario, tmp_path / "first"), tmp_path, "sectors")
    assert caught.value.check == mutation.seen_by
