"""Loading a session of 3,000 turns, against `json.loads` over its lines and in memory; and resuming it.

python -m benchmarks.loading
"""

from __future__ import annotations

import json
import tempfile
import tracemalloc
from pathlib import Path

from lousho_cli.stores.folder import AgentFolder
from lousho_cli.stores.reader import load_journal

from .stored_sessions import write_session
from .timing import best, lousho, report

TURNS = 3000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        agent = write_session(home / ".lousho", "long", TURNS)
        write_session(home / ".lousho", "open", TURNS, finished=False)
        _time(agent)
        _memory(agent)
        _process(home)


def _time(agent: AgentFolder) -> None:
    lines = agent.journal("long").read_bytes().splitlines()
    parse, load = best(
        lambda: [json.loads(line) for line in lines], lambda: load_journal(agent, "long", 50), tries=9
    )
    report(f"load {TURNS} turns / json.loads of each line", load / parse, 2)


def _memory(agent: AgentFolder) -> None:
    tracemalloc.start()
    state = load_journal(agent, "long", 50).state
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    report("peak memory of a load / the transcript's JSON", peak / len(json.dumps(list(state.log))), 3)


def _process(home: Path) -> None:
    # Each resume meets the session as it was.
    journal = next((home / ".lousho").rglob("open.jsonl"))
    before = journal.read_bytes()

    def restored() -> None:
        journal.write_bytes(before)
        resume()

    resume = lousho("resume open --trust --max-steps 1000000", home)
    started, resumed = best(lousho("--help", home), restored)
    report(f"lousho resume of {TURNS} turns beyond lousho --help", (resumed - started) * 1000, 300, " ms")


if __name__ == "__main__":
    main()
