"""R5.1, R3.1, R3.21: the history file is whole at every instant, current when it matters, never needed."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from store_bench import TWO_STEPS, Bench, calls, python

from lousho_cli import Agent, ApprovalDecision, tool
from lousho_cli.errors import NotFoundError, ProviderError
from lousho_cli.execution.cancel import Cancel
from lousho_cli.execution.state import Record
from lousho_cli.stores import history_file

WRITE = """
import asyncio, sys
from lousho_cli import FileStore
from lousho_cli.execution.state import Record
async def main():
    session = await FileStore(sys.argv[1], history_limit=7).checkpoints.open_session("s")
    for n in range(400):
        await session.save(Record("save" if n % 3 else "finish", "finished", 1))
    await session.close()
asyncio.run(main())
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def entries(bench: Bench) -> list[dict[str, Any]]:
    content = json.loads(bench.history_file().read_bytes())
    assert content["sessionId"] == "s"
    assert isinstance(content["version"], int)
    found: list[dict[str, Any]] = content["entries"]
    return found


def test_it_is_valid_json_at_every_instant(tmp_path: Path) -> None:
    bench = Bench(tmp_path, limit=7)
    writer = python(WRITE, bench.home)
    read = newest = 0
    while writer.poll() is None:
        if not bench.history_file().exists():
            continue
        seqs = [entry["seq"] for entry in entries(bench)]
        assert len(seqs) <= 7
        assert seqs == list(range(seqs[0], seqs[-1] + 1))
        assert seqs[-1] >= newest
        newest = seqs[-1]
        assert (bench.seqs() or [0])[0] >= newest
        read += 1
    assert writer.wait() == 0
    with writer:
        pass
    assert read > 10
    assert [entry["seq"] for entry in entries(bench)] == list(range(394, 401))


def test_an_entry_says_which_save_it_is(bench: Bench) -> None:
    bench.run(turns=[calls("pay", step=1)])
    found = entries(bench)
    assert [(e["seq"], e["step"], e["status"]) for e in found] == [
        (1, 0, "in-progress"), (2, 1, "in-progress"), (3, 1, "awaiting-approval"),
    ]  # fmt: skip
    for entry in found:
        assert datetime.fromisoformat(entry["savedAt"]).utcoffset() == timedelta(0)


def test_the_results_of_a_turn_share_one_entry_and_the_absorbed_are_named(bench: Bench) -> None:
    bench.run(turns=[calls("echo", "echo", "echo", step=1), "done"], tool_concurrency=1)
    kept = bench.seqs()[::-1]
    assert kept == bench.kept_in_file() == [1, 2, 5, 6]
    for absorbed in (3, 4):
        with pytest.raises(NotFoundError, match=f"save {absorbed} was absorbed by save 5"):
            bench.fork(at=absorbed)
    assert bench.fork(at=5).step == 1


def test_saves_that_queue_input_or_abort_are_not_absorbed(bench: Bench) -> None:
    cancel = Cancel()

    @tool
    def stop(n: int) -> str:
        """Stop the run."""
        cancel.cancel()
        return "stopped"

    agent = Agent("default", None, [stop])
    bench.run(turns=[calls("stop", "stop", step=1)], agent=agent, cancel=cancel, tool_concurrency=1)
    bench.run("s", "and then", ["x", "done"], agent=agent)
    kinds = [save.kind for save in bench.history()][::-1]
    assert kinds.count("abort") == 1
    assert kinds.count("queue") == 1
    assert bench.kept_in_file() == bench.seqs()[::-1]


DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda whole: None,
    "empty": lambda whole: b"",
    "zeros": lambda whole: bytes(len(whole)),
    "cut": lambda whole: whole[: len(whole) // 2],
    "no utf-8": lambda whole: b"\xff\xfe",
    "a list": lambda whole: b"[]",
    "deep": lambda whole: b"[" * 100_000,
    "another session's": lambda whole: whole.replace(b'"s"', b'"t"'),
    "another limit's": lambda whole: whole.replace(b'"limit": 50', b'"limit": 2'),
    "newer": lambda whole: whole.replace(b'"version": 1', b'"version": 9'),
    "entries no list": lambda whole: b'{"version": 1, "sessionId": "s", "limit": 50, "entries": 3}',
    "entries no objects": lambda whole: b'{"version": 1, "sessionId": "s", "limit": 50, "entries": [[1]]}',
    "no numbers": lambda whole: whole.replace(b'"step": 1', b'"step": 1e999'),
    "ahead": lambda whole: whole.replace(b'"seq": 6', b'"seq": 60'),
    "behind": lambda whole: whole.replace(whole[whole.index(b',\n  {"seq": 6') : whole.rindex(b"\n ]")], b""),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_whatever_is_wrong_with_it_nothing_is_lost_and_the_next_run_mends_it(bench: Bench, kind: str) -> None:
    bench.run()
    whole = bench.history_file().read_bytes()
    before = bench.history()
    damaged = DAMAGE[kind](whole)
    assert damaged != whole
    if damaged is None:
        bench.history_file().unlink()
    else:
        bench.history_file().write_bytes(damaged)
    assert bench.history() == before
    assert bench.fork(at=2, new_session_id="f").step == 1
    bench.run("s", "more", [*TWO_STEPS, "again"])
    assert bench.kept_in_file() == bench.seqs()[::-1] == [*[s.seq for s in before][::-1], 7, 8]


class Clock:
    """A clock that moves when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(history_file, "time", SimpleNamespace(monotonic=lambda: self.now))


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders of the files that were replaced."""
    names: list[str] = []
    replace = os.replace

    def noted(source: Any, target: Any) -> None:
        names.append(Path(target).parent.name)
        replace(source, target)

    monkeypatch.setattr(os, "replace", noted)
    return names


def test_a_burst_shares_one_replacement_each_50_ms(
    bench: Bench, replaced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def burst() -> None:
        session = await bench.store.checkpoints.open_session("s")
        clock = Clock(monkeypatch)
        for _ in range(200):
            clock.now += 0.01
            await session.save(Record("save", "in-progress", 1))
        monkeypatch.undo()
        await session.close()

    asyncio.run(burst())
    assert 30 <= replaced.count("checkpoint-history") <= 41
    assert bench.kept_in_file()[-1] == 200


@pytest.mark.parametrize("kind", ["pause", "finish", "abort"])
def test_a_save_that_pauses_or_ends_does_not_wait_for_the_burst(bench: Bench, kind: Any) -> None:
    async def scene() -> None:
        session = await bench.store.checkpoints.open_session("s")
        await session.save(Record("save", "in-progress", 1))
        await session.save(Record(kind, "in-progress", 1))
        assert bench.kept_in_file() == [1, 2]
        await session.close()

    asyncio.run(scene())


@pytest.mark.parametrize("is_async", [True, False])
def test_the_last_save_of_a_burst_is_written_while_a_tool_runs_long(bench: Bench, is_async: bool) -> None:
    seen: list[float] = []

    def is_there() -> bool:
        return bench.history_file().exists() and bench.kept_in_file()[-1] == bench.state().seq == 2

    def wait() -> str:
        began = time.monotonic()
        while not is_there() and time.monotonic() - began < 5:
            time.sleep(0.005)
        seen.append(time.monotonic() - began)
        return "seen"

    @tool
    async def watch(n: int) -> str:
        """Wait for the file."""
        return await asyncio.to_thread(wait)

    @tool(name="watch")
    def watch_in_thread(n: int) -> str:
        """Wait for the file."""
        return wait()

    agent = Agent("default", None, [watch if is_async else watch_in_thread])
    bench.run(turns=[calls("watch", step=1), "done"], agent=agent)
    assert seen[0] < 2


def test_it_is_current_when_a_run_returns_however_it_ends(bench: Bench) -> None:
    bench.run(turns=[calls("pay", step=1)])
    assert bench.kept_in_file()[-1] == bench.state().seq
    with pytest.raises(ProviderError):
        bench.run("t", turns=[calls("echo", step=1)])
    assert bench.kept_in_file("t")[-1] == bench.state("t").seq
    bench.run("u", turns=TWO_STEPS, max_steps=1)
    assert bench.kept_in_file("u")[-1] == bench.state("u").seq


@pytest.mark.parametrize("limit", [0, 1, 3, 50])
def test_at_most_the_limit_is_kept_and_the_run_does_not_need_it(tmp_path: Path, limit: int) -> None:
    bench = Bench(tmp_path, limit=limit)
    bench.run(turns=[*(calls("echo", step=n) for n in range(1, 10)), "done"])
    all_kept = list(range(1, 21))
    expected = all_kept[-limit:] if limit else []
    assert bench.seqs()[::-1] == bench.kept_in_file() == expected
    assert bench.loaded().step_index == 10
    if limit < 50:
        with pytest.raises(NotFoundError, match=r"step 0 was dropped by the history limit \(steps kept: "):
            bench.fork(from_step=0)


def test_f04_a_paused_run_outlives_the_limit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, limit=1)
    approval_id = bench.run(turns=[calls("echo", "pay", step=1), "done"]).approval_id
    assert bench.seqs() == [4]
    assert approval_id is not None
    decision = ApprovalDecision(id=approval_id, approved=True, by="me")
    asyncio.run(bench.store.approvals.decide(approval_id, decision))
    assert bench.run("s", "", [calls("echo", "pay", step=1), "done"]).text == "done"
    assert bench.did == ["model", "echo-1", "pay-1", "model"]


def test_f04_dropped_is_told_from_unknown_over_several_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, limit=2)
    bench.run(turns=[*TWO_STEPS])
    for n in range(3):
        bench.run("s", f"more {n}", [*TWO_STEPS, *["again"] * 3])
    with pytest.raises(NotFoundError, match="step 3 was dropped by the history limit"):
        bench.fork(from_step=3)
    with pytest.raises(NotFoundError, match="there is no step 77"):
        bench.fork(from_step=77)
    with pytest.raises(NotFoundError, match="save 2 was dropped by the history limit"):
        bench.fork(at=2)
    with pytest.raises(NotFoundError, match="there is no save 999"):
        bench.fork(at=999)


def test_a_timer_that_fires_after_the_run_writes_nothing(bench: Bench, replaced: list[str]) -> None:
    async def scene() -> int:
        session = await bench.store.checkpoints.open_session("s")
        await session.save(Record("save", "in-progress", 1))
        await session.save(Record("save", "in-progress", 1))
        await session.close()
        count = len(replaced)
        await asyncio.sleep(0.12)
        return count

    assert asyncio.run(scene()) == len(replaced)
