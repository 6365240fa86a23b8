"""F25, R5.1: what a save costs, counted without clocks, and that it does not grow with the transcript."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from store_bench import Bench, calls

from lousho_cli import AgentExecutor
from lousho_cli.execution.events import Event, Observer
from lousho_cli.execution.messages import CallData, MessageData
from lousho_cli.execution.protocols import ModelRequest
from lousho_cli.execution.session import now
from lousho_cli.execution.state import Record, RunStart
from lousho_cli.stores import history_file
from lousho_cli.stores.journal import Header, record_line
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

    names = "write pwrite posix_fallocate fdatasync fsync open replace lseek ftruncate"
    for name in names.split():
        if hasattr(os, name):
            count(name)
    return counts


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The history file is not replaced in between: what is counted does not hang on the machine's speed."""
    monkeypatch.setattr(history_file, "SHARED_SECONDS", 3600.0)


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
        assert counted.pop("posix_fallocate") < 20
        assert counted == {"pwrite": 100, "fdatasync": 100}
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
    assert names == {"write": 1, "pwrite64": 50, "fdatasync": 50, "fsync": 1}


@pytest.mark.usefixtures("frozen")
def test_a_turn_with_a_tool_costs_two_syncs(bench: Bench, counted: Counter[str]) -> None:
    syncs: list[int] = []

    def play(request: ModelRequest) -> str | Mapping[str, Any]:
        syncs.append(counted["fdatasync"] + counted["fsync"])
        return calls("echo", step=len(syncs)) if len(syncs) < 6 else "done"

    ask(bench, ScriptedModel([play], on_exhausted="repeat-last"))
    assert [after - before for before, after in pairwise(syncs[1:])] == [2] * 4


def ask(bench: Bench, model: ScriptedModel, on_event: Observer | None = None) -> None:
    """Run the bench's agent with another model."""
    AgentExecutor.execute_sync(
        agent=bench.agent, input="go", provider=model, session_id="s",
        checkpoint_store=bench.store.checkpoints, max_steps=10_000, on_event=on_event,
    )  # fmt: skip


class Meter:
    """What steps of a session cost, counted without clocks.

    Attributes:
        steps: for each step the calls and returns of Python and C functions, the most memory it used in
            passing, in bytes, and what it asked of the system.
    """

    def __init__(self, bench: Bench, counted: Counter[str], steps: int) -> None:
        self.steps: list[Counter[str]] = []
        self._bench, self._counted, self._left = bench, counted, steps
        self._calls = self._memory = 0

    def run(self) -> None:
        ask(self._bench, ScriptedModel([self._play], on_exhausted="repeat-last"), self._hear)

    def _play(self, request: ModelRequest) -> str | Mapping[str, Any]:
        profiled = sys.getprofile() is not None
        sys.setprofile(None)
        if profiled:
            counts = Counter(self._counted)
            counts["calls"] = self._calls
            counts["memory"] = tracemalloc.get_traced_memory()[1] - self._memory
            self.steps.append(counts)
        if self._left == 0:
            tracemalloc.stop()
            return "done"
        self._left -= 1
        number = 10_000_000 + len(request.messages)
        self._counted.clear()
        self._calls = 0
        tracemalloc.start()
        tracemalloc.reset_peak()
        self._memory = tracemalloc.get_traced_memory()[0]
        sys.setprofile(self._note)
        return {"text": "x" * 500, "tool_calls": [{"name": "echo", "id": str(number), "args": {"n": number}}]}

    def _note(self, frame: Any, event: str, argument: Any) -> None:
        self._calls += 1

    def _hear(self, event: Event) -> None:
        pass


def open_run(bench: Bench, steps: int) -> None:
    """The journal of a run that was killed after so many steps, without running them."""
    message: MessageData = {"role": "user", "content": "go"}
    lines = [Header("s", "default", now()).line()]
    first = Record("input", "in-progress", 0, add=[message], run=RunStart(0, 1, 10_000), system="Be brief.")
    records = [first]
    for step in range(1, steps + 1):
        call: CallData = {
            "id": f"call-{step}", "type": "function", "function": {"name": "echo", "arguments": '{"n":1}'},
        }  # fmt: skip
        turn: MessageData = {"role": "assistant", "content": "x" * 500, "toolCalls": [call]}
        result: MessageData = {
            "role": "tool", "content": "1", "toolCallId": f"call-{step}", "toolName": "echo",
        }  # fmt: skip
        records.append(Record("turn", "in-progress", step, add=[turn], finish_reason="tool_calls"))
        records.append(Record("result", "in-progress", step, results={f"call-{step}": result}))
    for seq, record in enumerate(records, 1):
        record.seq, record.at, record.fence = seq, now(), 1
        lines.append(record_line(record))
    bench.journal().parent.mkdir(parents=True)
    bench.journal().write_bytes(b"".join(lines))


@pytest.mark.usefixtures("frozen")
def test_f25_step_5000_costs_what_step_100_costs(tmp_path: Path, counted: Counter[str]) -> None:
    middle: dict[int, Counter[str]] = {}
    for steps in (100, 5000):
        bench = Bench(tmp_path / str(steps))
        open_run(bench, steps)
        meter = Meter(bench, counted, 81)
        meter.run()
        assert bench.state().step == steps + 82
        names = {name for step in meter.steps for name in step}
        middle[steps] = Counter({name: sorted(step[name] for step in meter.steps)[40] for name in names})
    assert middle[100]["fdatasync"] == 2
    assert middle[100]["calls"] > 100
    for name, count in middle[100].items():
        # How much memory a step needs in passing depends a little on what was freed before.
        share = 0.15 if name == "memory" else 0.05
        assert abs(middle[5000][name] - count) <= share * count, (name, middle)


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
