"""A workspace with the scripted agent `bot` and its evals; commands run in this process."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lousho_cli.cli import app

TOOLS = """
from pathlib import Path
from lousho_cli import tool

LEDGER = Path({ledger!r})
COUNT = []

@tool
def lookup(order: str, hint: str = "") -> dict:
    "Where an order is."
    with LEDGER.open("a") as file:
        file.write("lookup\\n")
    if order == "lost":
        raise ValueError("no such order")
    return {{"order": order, "status": "delivered"}}

@tool(needs_approval=True)
def refund(order: str, amount: int = 10) -> str:
    "Refund an order."
    return f"refunded {{amount}}"

@tool
def count() -> int:
    "How often this module has counted."
    COUNT.append(1)
    return len(COUNT)
"""


def call(tool: str, **args: Any) -> dict[str, Any]:
    """A turn that calls a tool."""
    return {"tool_calls": [{"name": tool, "args": args}]}


LOOKED_UP = [call("lookup", order="42"), "It was delivered."]

LOOKUPS = """
name = "lookups"
tags = ["smoke"]

[[cases]]
label = "forty-two"
input = ["Where is order 42?"]

[cases.expect]
completed = true
called = [{ tool = "lookup", args = { order = "42" } }]
reply = { includes = ["delivered"] }
"""


@dataclass(frozen=True)
class Ran:
    """What a command line did."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class EvalWorkspace:
    """`.lousho` in `root`, trusted, with the agent `bot`."""

    def __init__(self, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.home = root / ".lousho"
        self.agent = self.home / "agents" / "bot"
        self.evals = self.agent / "evals"
        self.ledger = root / "ledger.txt"
        self._capfd = capfd
        (self.agent / "tools").mkdir(parents=True)
        self.evals.mkdir()
        (self.agent / "agent.toml").write_text('model = "script:script.json"\n')
        (self.agent / "tools" / "tools.py").write_text(TOOLS.format(ledger=str(self.ledger)))

    def script(self, turns: Sequence[Any]) -> None:
        (self.agent / "script.json").write_text(json.dumps(turns))

    def eval(self, text: str, name: str = "lookups") -> Path:
        file = self.evals / f"{name}.toml"
        file.write_text(textwrap.dedent(text))
        return file

    def cassette(self, eval: str = "lookups", case: str = "forty-two") -> Path:
        return self.evals / "__cassettes__" / eval / f"{case}.json"

    def run(self, *words: str) -> Ran:
        self._capfd.readouterr()
        code = app.run(["eval", *words])
        captured = self._capfd.readouterr()
        return Ran(code, captured.out, captured.err)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A running process."""
        return subprocess.Popen(
            [sys.executable, "-m", "lousho_cli", "eval", *words],
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def noted(self) -> int:
        """How often the tool `lookup` ran."""
        return len(self.ledger.read_text().splitlines()) if self.ledger.exists() else 0
