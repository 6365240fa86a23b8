"""Times that can be compared: the best of several tries, taken in turns, in one process's life."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def best(*actions: Callable[[], object], tries: int = 5) -> list[float]:
    """The shortest time of each action, in seconds. They take turns, so that a busy moment hits all."""
    shortest = [float("inf")] * len(actions)
    for _ in range(tries):
        for number, action in enumerate(actions):
            gc.collect()
            start = time.perf_counter()
            kept = action()
            shortest[number] = min(shortest[number], time.perf_counter() - start)
            del kept
    return shortest


def process(
    arguments: Sequence[str], cwd: Path, environ: Mapping[str, str] | None = None
) -> Callable[[], None]:
    """Running a Python process from its start to its end, as an action; it has to succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}

    def run() -> None:
        command = [sys.executable, *arguments]
        ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, check=False)
        if ran.returncode:
            raise SystemExit(f"{command} ended with {ran.returncode}: {ran.stderr.decode()}")

    return run


def lousho(line: str, cwd: Path) -> Callable[[], None]:
    return process(["-m", "lousho_cli", *line.split()], cwd)


def report(name: str, measured: float, limit: float, unit: str = "x") -> None:
    """One line of the result: what was measured, and the most it should be."""
    mark = "ok  " if measured <= limit else "OVER"
    print(f"{mark} {name:<58} {measured:8.2f}{unit}  (at most {limit:g}{unit})", flush=True)
