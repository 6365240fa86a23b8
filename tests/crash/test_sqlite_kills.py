"""SQLite: a process killed with SIGKILL at every trigger point; the next one reopens the file and goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from crash_checks import check_pairs
from crash_facts import results_in, started_in, turns_in

Data = dict[str, Any]
PROGRAM = Path(__file__).with_name("crash_child.py")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork processes")


def kills(scratch: Path, times: int) -> list[Data]:
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), str(scratch), str(times)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    report: list[Data] = json.loads(ran.stdout)
    return report


def check_kill(told: Data) -> None:
    """Nothing that was saved is done again, and the run ends as if nothing had been."""
    found, end, point = told["found"], told["end"], told["point"]
    assert [message["role"] for message in end["messages"]] == [
        "system", "user", "assistant", "tool", "tool", "tool", "tool", "assistant", "tool", "assistant"
    ], point  # fmt: skip
    assert not [message for message in end["messages"] if message.get("isError")], point
    for request in [*told["requests"], end["messages"]]:
        check_pairs(request)
    assert (found is None) == (point == "input.saving 1"), point

    ran = [line.split()[1] for line in told["after"] if line.startswith("ran ")]
    asked = [line.split()[1:] for line in told["after"] if line.startswith("asked ")]
    for name in ran:
        assert f"c_{name}" not in results_in(found), f"{point}: {name} ran again"
    for agent, index in asked:
        assert int(index) >= turns_in(found, agent, "bot"), f"{point}: {agent} was asked again"
    everything = told["before"] + told["after"]
    for name in ("risky", "gated"):
        if f"ran {name}" in told["before"]:
            assert f"c_{name}" in started_in(found) | results_in(found), f"{point}: {name} left no trace"
    runs = everything.count("ran risky") + everything.count("ran gated")
    # `risky` runs once without a word, `gated` with one; each further run needs one more.
    assert runs <= 1 + everything.count("approved"), point


def test_a_kill_at_any_trigger_point_loses_and_repeats_nothing(tmp_path: Path) -> None:
    report = kills(tmp_path, 1)
    assert len(report) >= 25
    for told in report:
        check_kill(told)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_kill_whenever_a_trigger_point_is_passed_does_neither(tmp_path: Path) -> None:
    report = kills(tmp_path, 50)
    for told in report:
        check_kill(told)
    print(f"\n{len(report)} kills of a process with an SQLite file")
