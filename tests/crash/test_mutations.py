"""The power-cut tests can fail: whichever guarantee is taken away, they see it."""

from __future__ import annotations

import sys
from pathlib import Path

import crash_checks
import pytest
from crash_checks import Lost, explore, play
from crash_mutations import MUTATIONS, Mutation
from crash_scenarios import SCENARIOS

scratch = crash_checks.scratch
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be synced there")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "mutation",
    [pytest.param(each, id=each.name, marks=[pytest.mark.soak] if each.slow else []) for each in MUTATIONS],
)
def test_a_guarantee_less_is_seen(mutation: Mutation, scratch: Path) -> None:
    scenario = next(each for each in SCENARIOS if each.name == mutation.scenario)
    with mutation.made(), pytest.raises(Lost) as caught:
        explore(play(scenario, scratch / "first"), scratch, "sectors")
    assert caught.value.check in mutation.seen_by.split(" or ")


def test_the_documents_say_which_check_sees_what() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = [f"| {each.name} | {each.scenario} | {each.seen_by} |" for each in MUTATIONS]
    assert "\n".join(rows) in text
