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
from .timing import best, beyond_help, report

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
    files = {path: path.read_bytes() for path in (home / ".lousho").rglob("open.json*")}

    def restored() -> None:
        for path, data in files.items():
            path.write_bytes(data)

    took = beyond_help("resume open --max-steps 1000000", home, before=restored)
    report(f"lousho resume of {TURNS} turns beyond lousho --help", took, 300, " ms")


if __name__ == "__main__":
    main()
