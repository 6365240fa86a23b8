"""R5.4: each file call of each command made to fail, through the real command line.

A command that cannot do its work ends there, with exit code 7 and the name of the file, and what was saved is
as it was. Once what failed is mended, the user goes on, and nothing is done twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_commands import changing, commands, problems
from kill_play import WARM_UP
from kill_world import make_workspace
from life_calls import ERRORS, Fault
from life_client import Lives

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork processes")
NUMBERS = list(ERRORS.values())


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    with Lives(make_workspace(tmp_path / "warm"), WARM_UP) as made:
        yield made


def test_a_file_call_that_fails_ends_a_command_and_loses_nothing(lives: Lives, tmp_path: Path) -> None:
    """A share of the calls, with each error in turn; half of the writes leave a half behind."""
    found, home = [], tmp_path / "home"
    for command in commands(lives, tmp_path / "base"):
        calls = lives.run(command.copy(home), *command.words, count=True).calls
        for turn, number in enumerate(changing(calls)[::7]):
            fault = Fault(number, NUMBERS[turn % len(NUMBERS)], torn=turn % 2 == 0)
            what = f"{command.name}, {calls[number]}, {os.strerror(fault.error)}"
            said = problems(command, lives, home, fault)
            found += [f"{what}: {problem}" for problem in said]
    assert not found


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("error", ERRORS)
def test_whichever_file_call_fails_a_command_ends_and_loses_nothing(
    lives: Lives, tmp_path: Path, error: str
) -> None:
    found, counts, home = [], {}, tmp_path / "home"
    for command in commands(lives, tmp_path / "base"):
        calls = lives.run(command.copy(home), *command.words, count=True).calls
        counts[command.name] = len(calls)
        for number, call in enumerate(calls):
            fault = Fault(number, ERRORS[error], torn=number % 2 == 0)
            said = problems(command, lives, home, fault)
            found += [f"{command.name}, {call}: {one}" for one in said]
    print(f"\n{sum(counts.values())} file calls failed with {error}: {counts}")
    assert not sorted(set(found))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_disk_that_stays_broken_stops_every_command(lives: Lives, tmp_path: Path) -> None:
    found, count, home = [], 0, tmp_path / "home"
    for command in commands(lives, tmp_path / "base"):
        calls = lives.run(command.copy(home), *command.words, count=True).calls
        for number in changing(calls):
            count += 1
            fault = Fault(number, ERRORS["ENOSPC"], stays=True, torn=number % 2 == 0)
            said = problems(command, lives, home, fault)
            found += [f"{command.name}, {calls[number]}: {one}" for one in said]
    print(f"\n{count} times the disk was full from then on")
    assert not sorted(set(found))
