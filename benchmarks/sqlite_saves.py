"""What a save costs a SQLite store, against the least that SQLite can do: one row a transaction.

    python -m benchmarks.sqlite_saves

Bytes are those handed to the system, counted from `/proc` (Linux).
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from lousho_cli.execution.state import Record
from lousho_cli.stores.journal import record_line
from lousho_cli.stores.sqlite import SqliteStore

from .stored_sessions import records
from .timing import report

TURNS = (10, 1000, 3000)
"""One record for each turn, one for each result."""


def main() -> None:
    for turns in TURNS:
        with tempfile.TemporaryDirectory() as folder:
            saves = list(records(turns))
            bound, bound_bytes = _one_row_each(Path(folder) / "bound.db", saves)
            ours, our_bytes = asyncio.run(_saves(Path(folder) / "ours.db", saves))
            report(f"a save at {turns} turns / one row a transaction", ours / bound, 2)
            report("  bytes written by it, checkpoints included", our_bytes / len(saves) / 1024, 8, " KB")
            report("  bytes written by the bound", bound_bytes / len(saves) / 1024, 8, " KB")


def _one_row_each(path: Path, saves: list[Record]) -> tuple[float, int]:
    lines = [record_line(record).decode() for record in saves]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE saves (id INTEGER PRIMARY KEY, data TEXT)")
        before, start = _written(), time.perf_counter()
        for line in lines:
            connection.execute("INSERT INTO saves (data) VALUES (?)", (line,))
        return time.perf_counter() - start, _written() - before


async def _saves(path: Path, saves: list[Record]) -> tuple[float, int]:
    session = await SqliteStore(path).checkpoints.open_session("s")
    before, start = _written(), time.perf_counter()
    for record in saves:
        await session.save(record)
    took = time.perf_counter() - start, _written() - before
    await session.close()
    return took


def _written() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar:"))


if __name__ == "__main__":
    main()
