"""The pytest fixture `agent_eval`, in real pytest processes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

PLUGIN = "lousho_cli.evals.pytest_plugin"

MADE_IN_CODE = """
from pathlib import Path

from lousho_cli import create_agent, tool
from lousho_cli.testing import ScriptedModel

LEDGER = Path(__file__).with_name("ledger")

@tool
def lookup(order: str) -> dict:
    "Look an order up."
    with LEDGER.open("a") as file:
        file.write(order + "\\n")
    return {"order": order, "status": "delivered"}

@tool(needs_approval=True)
def refund(order: str) -> str:
    "Refund an order."
    return "refunded"

def agent():
    call = {"tool_calls": [{"name": "lookup", "args": {"order": "42"}}]}
    pay = {"tool_calls": [{"name": "refund", "args": {"order": "42"}}]}
    model = ScriptedModel([call, pay, "Order 42 was delivered."])
    return create_agent(provider=model, tools=[lookup, refund])

def test_it_looks_the_order_up(agent_eval):
    run = agent_eval(agent(), "Where is order 42?", decisions={"refund": "reject"})
    assert run.completed
    assert run.called("lookup", order="42")[0].result["status"] == "delivered"
    assert run.tools == ["lookup", "refund"]
    assert "delivered" in run.reply

def test_a_call_that_nobody_decides_fails(agent_eval):
    agent_eval(agent(), "Where is order 42?")
"""

MANY = """
import pytest

@pytest.mark.parametrize("guests", range(2, 8))
def test_a_table_is_booked(agent_eval, guests):
    run = agent_eval("concierge", f"Book a table for {guests} tonight", decisions={"book_table": "approve"})
    assert run.called("book_table", party_size=guests)
"""


def run_pytest(folder: Path, *options: str, ci: str = "") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CI": ci}
    command = [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", *options]
    return subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=50, check=False
    )


def test_conversations_are_played_recorded_and_replayed(tmp_path: Path) -> None:
    test = tmp_path / "test_orders.py"
    test.write_text(MADE_IN_CODE)
    ledger, cassettes = tmp_path / "ledger", tmp_path / "__cassettes__" / "test_orders"
    live = run_pytest(tmp_path)
    assert "1 failed, 1 passed" in live.stdout, live.stdout
    assert "the case does not decide it" in live.stdout
    assert not cassettes.exists()
    assert run_pytest(tmp_path, "--agent-evals", "record", "-k", "looks").returncode == 0
    (cassette,) = cassettes.iterdir()
    assert json.loads(cassette.read_text())["version"] == 1
    ledger.unlink()
    test.write_text(MADE_IN_CODE.replace('ScriptedModel([call, pay, "Order', 'ScriptedModel(["Asked. Order'))
    replayed = run_pytest(tmp_path, "-k", "looks", ci="true")
    assert replayed.returncode == 0, replayed.stdout
    assert not ledger.exists()
    missing = run_pytest(tmp_path, "--agent-evals", "replay", "-k", "nobody")
    assert "nothing is recorded" in missing.stdout


def test_agents_of_a_workspace_are_played_by_name_also_in_parallel(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / ".lousho.example"
    (tmp_path / ".lousho").symlink_to(example, target_is_directory=True)
    (tmp_path / "test_tables.py").write_text(MANY)
    ran = run_pytest(tmp_path, "-p", "xdist", "-n", "2")
    assert "6 passed" in ran.stdout, ran.stdout + ran.stderr


def test_pytest_finds_the_fixture_by_itself() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"lousho": PLUGIN}
    assert callable(importlib.import_module(PLUGIN).pytest_addoption)


def test_the_plugin_loads_nothing_until_it_is_used() -> None:
    code = (
        f"import pytest, sys; before = set(sys.modules); import {PLUGIN}; print(*set(sys.modules) - before)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = [name for name in loaded.split() if name.startswith(("pydantic", "rich", "lousho_cli.execution"))]
    assert heavy == []


def test_the_option_is_in_the_help(tmp_path: Path) -> None:
    assert "--agent-evals" in run_pytest(tmp_path, "--help").stdout
