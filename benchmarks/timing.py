"""Times that can be compared: the best of several tries.

Processor time is steadier than the clock's on a machine that does other things too. It leaves out the waiting
for the disk, so that is timed by the clock.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def best(
    *actions: Callable[[], object], tries: int = 5, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """The shortest time of each action, in seconds. They take turns, so that a busy moment hits all."""
    shortest = [float("inf")] * len(actions)
    for _ in range(tries):
        for number, action in enumerate(actions):
            gc.collect()
            start = clock()
            kept = action()
            shortest[number] = min(shortest[number], clock() - start)
            del kept
    return shortest


def seconds(
    arguments: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str] | None = None,
    *,
    tries: int = 10,
    before: Callable[[], object] = lambda: None,
) -> float:
    """The least processor time that a Python process takes, user and system; it has to succeed. POSIX only.

    Args:
        before: done before each try, and not counted.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}
    least = float("inf")
    for _ in range(tries):
        before()
        child = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=cwd,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{arguments} ended with {child.returncode}")
        least = min(least, usage.ru_utime + usage.ru_stime)
    return least


def beyond_help(
    line: str, cwd: Path, *, tries: int = 5, before: Callable[[], object] = lambda: None
) -> float:
    """Milliseconds of processor time that a command line of lousho takes beyond `lousho --help`."""
    trusted = {"LOUSHO_TRUST_WORKSPACE": "1"}
    started = seconds(["-m", "lousho_cli", "--help"], cwd, tries=tries)
    took = seconds(["-m", "lousho_cli", *line.split()], cwd, trusted, tries=tries, before=before)
    return (took - started) * 1000


def report(name: str, measured: float, limit: float, unit: str = "x") -> None:
    """One line of the result: what was measured, and the most it should be."""
    mark = "ok  " if measured <= limit else "OVER"
    print(f"{mark} {name:<58} {measured:8.2f}{unit}  (at most {limit:g}{unit})", flush=True)
