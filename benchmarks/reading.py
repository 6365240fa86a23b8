"""What looking at, copying and comparing stored sessions costs, most of it as processes beyond `--help`.

python -m benchmarks.reading
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from pathlib import Path

from lousho_cli import FileStore

from .stored_sessions import AGENT, write_session
from .timing import best, beyond_help, report, seconds

LONG = 50_000
"""Turns; twice as many messages."""

SESSIONS = 10_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        workspace = home / ".lousho"
        write_session(workspace, "long", LONG)
        write_session(workspace, "short", 30)
        for name in ("a", "b"):
            write_session(workspace, name, 2000)
        _long(home)
        _fork(workspace)
        _beyond(home, "diff a b", "diff of 2,000 against 2,000 steps", 1000)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for n in range(SESSIONS):
            write_session(home / ".lousho", f"s-{n}", 1)
        listed = seconds(["-m", "lousho_cli", "sessions"], home, tries=3)
        report(f"sessions over {SESSIONS:,} sessions, whole process", listed * 1000, 1000, " ms")


def _long(home: Path) -> None:
    short, long = (seconds(["-m", "lousho_cli", "history", name], home) for name in ("short", "long"))
    report(f"history of {2 * LONG:,} messages / of 60", long / short, 1.2)
    _beyond(home, f"show long --at {2 * LONG - 8}", f"show --at near the end of {2 * LONG:,}", 60_000)


def _beyond(home: Path, line: str, name: str, limit: float) -> None:
    report(f"{name}, beyond lousho --help", beyond_help(line, home, tries=3), limit, " ms")


def _fork(workspace: Path) -> None:
    store = FileStore(workspace, agent=AGENT).checkpoints
    number = itertools.count()

    def fork() -> None:
        from lousho_cli import AgentExecutor

        asyncio.run(
            AgentExecutor.fork(
                session_id="long", at=2 * LONG - 8, checkpoint_store=store,
                patch={"append_input": "and then?"}, new_session_id=f"fork-{next(number)}",
            )
        )  # fmt: skip

    (took,) = best(fork, tries=5, clock=time.perf_counter)
    report(f"fork of {2 * LONG:,} messages, the copy itself", took * 1000, 200, " ms")
    _beyond(
        workspace.parent, f"fork long --at {2 * LONG - 8} --append-input more", "the same, as a process", 400
    )


if __name__ == "__main__":
    main()
