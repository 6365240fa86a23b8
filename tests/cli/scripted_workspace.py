"""A workspace with the scripted agent `bot`, and real `lousho` processes in it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LOUSHO = (sys.executable, "-m", "lousho_cli")
SECONDS = 30

_TOOLS = """\
import asyncio, os, pathlib, signal, sys, time
from lousho_cli import tool, ToolContext, PropagatingToolError
LEDGER = pathlib.Path({ledger!r})
def note(line):
    with LEDGER.open("a") as file:
        file.write(line + "\\n")
        file.flush()
        os.fsync(file.fileno())
"""


def calls(*names: str, **args: Mapping[str, Any]) -> dict[str, Any]:
    """A turn that calls these tools, with ids `c_<name>`."""
    return {"tool_calls": [{"name": n, "id": f"c_{n}", "args": args.get(n, {})} for n in names]}


class ScriptedWorkspace:
    """`.lousho` in `root`, whose agent plays a script.

    Attributes:
        ledger: a file that tools write to with `note(line)`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.agent = root / ".lousho" / "agents" / "bot"
        self.ledger = root / "ledger.txt"

    def make(self, turns: Sequence[Any], tools: str = "", settings: str = "") -> ScriptedWorkspace:
        (self.agent / "tools").mkdir(parents=True, exist_ok=True)
        (self.root / ".lousho" / "config.toml").write_text('default_agent = "bot"\n')
        (self.agent / "agent.toml").write_text('model = "script:script.json"\n' + settings)
        (self.agent / "instructions.md").write_text("Do the work.\n")
        self.script(turns)
        code = _TOOLS.format(ledger=str(self.ledger)) + textwrap.dedent(tools)
        (self.agent / "tools" / "tools.py").write_text(code)
        return self

    def script(self, turns: Sequence[Any]) -> None:
        (self.agent / "script.json").write_text(json.dumps(turns))

    def run(
        self, *words: str, input: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A finished `lousho` process."""
        done = subprocess.run(
            [*LOUSHO, *words],
            cwd=self.root,
            env=self._environment(env),
            capture_output=True,
            input=b"" if input is None else input,
            timeout=SECONDS,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def shell(self, line: str) -> subprocess.CompletedProcess[str]:
        """A finished `lousho` process, its streams as a shell line gives them."""
        return subprocess.run(
            f"{shlex.join(LOUSHO)} {line}",
            shell=True,
            cwd=self.root,
            env=self._environment(None),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def json(self, *words: str, code: int = 0) -> Any:
        """What a command prints with `--json`."""
        done = self.run(*words, "--json")
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """A running `lousho` process."""
        return subprocess.Popen(
            [*LOUSHO, *words],
            cwd=self.root,
            env=self._environment(None),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def noted(self) -> list[str]:
        return self.ledger.read_text().split() if self.ledger.exists() else []

    def wait_for_note(self, line: str) -> None:
        deadline = time.monotonic() + SECONDS
        while line not in self.noted():
            assert time.monotonic() < deadline, f"no tool noted {line!r}"
            time.sleep(0.02)

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        return {**os.environ, "NO_COLOR": "1", "LOUSHO_TRUST_WORKSPACE": "1", **(more or {})}
