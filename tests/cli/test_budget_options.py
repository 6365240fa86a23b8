"""Budgets from the outside."""

from __future__ import annotations

from pathlib import Path

from scripted_workspace import ScriptedWorkspace, calls

TEN = {"usage": {"input_tokens": 8, "output_tokens": 2, "cost_usd": 0.5}}
TURNS = [{**calls("work"), **TEN}, {**calls("work"), **TEN}, {"text": "done", **TEN}]
WORK = """
@tool
def work() -> str:
    "Work."
    note("worked")
    return "ok"
"""


def test_a_budget_of_the_agent_stops_the_run_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    place = ScriptedWorkspace(tmp_path).make(TURNS, WORK, "[budget]\nmax_tokens = 15\n")
    stopped = place.run("run", "s1", "go")
    assert (stopped.returncode, stopped.stdout) == (1, "")
    assert "the budget is used up: 20 of 15 tokens" in stopped.stderr
    assert "lousho resume s1 --max-tokens N" in stopped.stderr
    assert place.json("show", "s1")["status"] == "in-progress"
    again = place.json("resume", "s1", code=1)
    assert (again["finishReason"], again["status"], again["steps"]) == ("budget-exceeded", "in-progress", 2)
    done = place.run("resume", "s1", "--max-tokens", "100")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert place.noted() == ["worked", "worked"]


def test_costs_and_seconds_have_options_too(tmp_path: Path) -> None:
    place = ScriptedWorkspace(tmp_path).make(TURNS, WORK)
    stopped = place.run("run", "s1", "go", "--max-cost", "0.5", "--max-seconds", "3600")
    assert stopped.returncode == 1
    assert "the budget is used up: $0.5000 of $0.5000" in stopped.stderr
    assert place.run("resume", "s1", "--max-cost", "9").returncode == 0
    refused = place.run("run", "s2", "go", "--max-cost", "0")
    assert refused.returncode == 2
    assert "--max-cost is 0" in refused.stderr
