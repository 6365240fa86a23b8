"""Replaying 1,000 recorded cases, each of three steps with two tool calls, as CI does.

python -m benchmarks.replaying_evals
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from .timing import beyond_help, report, seconds

CASES = 1000
_TOOLS = """
from lousho_cli import tool

@tool
def lookup(order: str, hint: str = "") -> dict:
    "Where an order is."
    return {"order": order, "status": "delivered", "history": ["packed", "sent", "on its way", "delivered"]}

@tool
def greet(name: str) -> str:
    "Say hello."
    return f"Hello {name}"
"""
_TURNS = [
    {"tool_calls": [{"name": "lookup", "args": {"order": "42"}}]},
    {"tool_calls": [{"name": "greet", "args": {"name": "Ann"}}]},
    "Hello Ann, it was delivered.",
]
_EVAL = """
[[cases]]
label = "order {number}"
dataset = "orders.jsonl"
input = ["Where is order {number}?"]

[cases.expect]
completed = true
order = ["lookup", "greet"]
reply = { includes = ["delivered"] }
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_evals(home / ".lousho" / "agents" / "bot", CASES)
        seconds(["-m", "lousho_cli", *"eval --record --trust --quiet".split()], home, tries=1)
        took = beyond_help("eval --replay --trust --quiet", home, tries=3)
        report(f"replay of {CASES} cases beyond lousho --help", took / 1000, 60, " s")


def write_evals(agent: Path, cases: int) -> None:
    """An agent with an eval of that many cases."""
    (agent / "tools").mkdir(parents=True)
    (agent / "evals").mkdir()
    (agent / "agent.toml").write_text('model = "script:script.json"\n', encoding="utf-8")
    (agent / "instructions.md").write_text("Find orders, and be kind.\n" * 20, encoding="utf-8")
    (agent / "script.json").write_text(json.dumps(_TURNS), encoding="utf-8")
    (agent / "tools" / "tools.py").write_text(_TOOLS, encoding="utf-8")
    (agent / "evals" / "orders.toml").write_text(_EVAL, encoding="utf-8")
    rows = "".join(json.dumps({"number": number}) + "\n" for number in range(cases))
    (agent / "evals" / "orders.jsonl").write_text(rows, encoding="utf-8")


if __name__ == "__main__":
    main()
