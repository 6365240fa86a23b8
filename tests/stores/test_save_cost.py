"""F25, R5.1: what a save costs, counted without clocks, and that it does not grow with the transcript."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from store_bench import Bench, calls

from lousho_cli import AgentExecutor
from lousho_cli.execution.messages import MessageData
from lousho_cli.execution.protocols import ModelRequest
from lousho_cli.execution.state import Record
from lousho_cli.stores import history_file
from lousho_cli.testing import ScriptedModel

STEADY = """
import asyncio, sys
from lousho_cli import FileStore
from lousho_cli.execution.state import Record
async def main():
    session = await FileStore(sys.argv[1]).checkpoints.open_session("s")
    await session.save(Record("save", "in-progress", 1))
    for n in range(50):
        await session.save(Record("save", "in-progress", 1))
    await session.close()
asyncio.run(main())
"""


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each call to the system was made, and the bytes written."""
    counts: Counter[str] = Counter()

    def count(name: str) -> None:
        real: Callable[..., Any] = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            result = real(*arguments, **options)
            if name in ("write", "pwrite"):
                counts["bytes"] += result
            return result

        monkeypatch.setattr(os, name, call)

    for name in ("write", "pwrite", "fdatasync", "fsync", "open", "replace", "lseek", "ftruncate"):
        if hasattr(os, name):
            count(name)
    return counts


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes for the history file: what is counted does not hang on the machine's speed."""
    monkeypatch.setattr(history_file, "time", SimpleNamespace(monotonic=lambda: 100.0))


@pytest.mark.skipif(sys.platform != "linux", reason="counts the calls of Linux")
@pytest.mark.usefixtures("frozen")
def test_a_save_is_one_write_and_one_data_sync(bench: Bench, counted: Counter[str]) -> None:
    async def scene() -> None:
        session = await bench.store.checkpoints.open_session("s")
        await session.save(Record("save", "in-progress", 1))
        counted.clear()
        message: MessageData = {"role": "user", "content": "x" * 9000}
        for _ in range(100):
            await session.save(Record("save", "in-progress", 1, add=[message]))
        assert counted.pop("bytes") > 100 * 9000
        assert counted == {"write": 100, "fdatasync": 100}
        await session.close()

    asyncio.run(scene())


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_save_is_one_write_and_one_data_sync_as_the_system_sees_it(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    traced = "trace=write,pwrite64,writev,fdatasync,fsync,sync_file_range,msync"
    command = ["strace", "-f", "-y", "-o", str(log), "-e", traced]
    ran = subprocess.run(
        [*command, sys.executable, "-c", STEADY, str(bench.home)], capture_output=True, text=True, check=False
    )
    if ran.returncode != 0 and "ptrace" in ran.stderr:
        pytest.skip("tracing is not allowed here")
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in log.read_text().splitlines() if f"<{bench.journal()}>" in line]
    names = Counter(re.findall(r"(\w+)\(\d+<", "\n".join(lines)))
    assert names == {"write": 51, "fdatasync": 50, "fsync": 1}


@pytest.mark.usefixtures("frozen")
def test_a_turn_with_a_tool_costs_two_syncs(bench: Bench, counted: Counter[str]) -> None:
    syncs: list[int] = []

    def play(request: ModelRequest) -> str | Mapping[str, Any]:
        syncs.append(counted["fdatasync"] + counted["fsync"])
        return calls("echo", step=len(syncs)) if len(syncs) < 6 else "done"

    ask(bench, ScriptedModel([play], on_exhausted="repeat-last"))
    assert [after - before for before, after in pairwise(syncs[1:])] == [2] * 4


def ask(bench: Bench, model: ScriptedModel) -> None:
    """Run the bench's agent with another model."""
    AgentExecutor.execute_sync(
        agent=bench.agent, input="go", provider=model, session_id="s",
        checkpoint_store=bench.store.checkpoints, max_steps=5000,
    )  # fmt: skip


class Cost:
    """What each turn of a long run costs.

    Attributes:
        work: calls and returns of Python and C functions, by turn.
        size: the journal's size when the turn was asked for.
    """

    def __init__(self, bench: Bench, turns: int, watched: list[int]) -> None:
        self.work: dict[int, int] = {}
        self.size: dict[int, int] = {}
        self._bench, self._turns, self._watched = bench, turns, watched
        self._turn = self._count = 0

    def model(self) -> ScriptedModel:
        return ScriptedModel([self._play], on_exhausted="repeat-last")

    def _play(self, request: ModelRequest) -> str | Mapping[str, Any]:
        if sys.getprofile() is not None:
            sys.setprofile(None)
            self.work[self._turn] = self._count
        self._turn += 1
        if self._bench.journal().exists():
            self.size[self._turn] = self._bench.journal().stat().st_size
        if self._turn == self._turns:
            return "done"
        if self._turn in self._watched:
            self._count = 0
            sys.setprofile(self._note)
        call = {"name": "echo", "id": f"call-{self._turn:06}", "args": {"n": 100_000 + self._turn}}
        return {"tool_calls": [call]}

    def _note(self, frame: Any, event: str, argument: Any) -> None:
        self._count += 1


@pytest.mark.usefixtures("frozen")
@pytest.mark.timeout(90)
def test_f25_turn_3000_costs_what_turn_100_costs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lousho_cli.stores.writer.data_sync", lambda fd: None)
    cost = Cost(bench, 3012, [*range(100, 110), *range(3000, 3010)])
    ask(bench, cost.model())
    early = [cost.work[turn] for turn in range(100, 110)]
    late = [cost.work[turn] for turn in range(3000, 3010)]
    assert min(early) > 100
    assert abs(sorted(late)[5] / sorted(early)[5] - 1) <= 0.05, (early, late)
    size_early, size_late = cost.size[110] - cost.size[100], cost.size[3010] - cost.size[3000]
    assert abs(size_late / size_early - 1) <= 0.05, (size_early, size_late)


def test_the_bytes_written_are_the_journal_and_the_shared_history_files(
    bench: Bench, counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced: list[int] = []
    replace = os.replace

    def noted(source: Any, target: Any) -> None:
        replaced.append(Path(source).stat().st_size)
        replace(source, target)

    monkeypatch.setattr(os, "replace", noted)
    bench.run(turns=[*(calls("echo", step=n) for n in range(1, 9)), "done"])
    assert counted["bytes"] == bench.journal().stat().st_size + sum(replaced)
    assert max(replaced) < 16_000


@pytest.mark.parametrize("messages", [10, 5000])
def test_a_history_file_is_as_small_for_a_long_transcript(bench: Bench, messages: int) -> None:
    async def scene() -> None:
        session = await bench.store.checkpoints.open_session("s")
        add: Any = [{"role": "user", "content": "x" * 500} for _ in range(messages)]
        await session.save(Record("save", "in-progress", 1, add=add))
        for _ in range(60):
            await session.save(Record("save", "in-progress", 1))
        await session.close()

    asyncio.run(scene())
    assert bench.history_file().stat().st_size < 12_000


def test_a_large_result_is_stored_once(bench: Bench) -> None:
    big = "y" * 3_000_000
    bench.run("s", big, ["done"])
    total = sum(len(data) for data in bench.files().values())
    assert total < 1.01 * len(big)
