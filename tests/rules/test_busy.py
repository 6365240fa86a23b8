"""One runner at a time (R3.9)."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import pytest
import rules_kit
from rules_kit import World, asks, said

from lousho_cli import SDKError, tool

world = rules_kit.world


def waiting_tool(world: World) -> tuple[asyncio.Event, asyncio.Event]:
    started, release = asyncio.Event(), asyncio.Event()

    @tool
    async def waits() -> str:
        "waits"
        world.ledger.lines.append(("waits", ""))
        started.set()
        await release.wait()
        return "ok"

    world.tools = [waits]
    return started, release


def test_a_second_runner_is_told_who_holds_the_session(world: World) -> None:
    async def go() -> None:
        started, release = waiting_tool(world)
        first = asyncio.ensure_future(world.aexecute([asks("waits"), "done"]))
        await started.wait()
        with pytest.raises(SDKError, match=rf"process {os.getpid()} on .+ since 2\d") as busy:
            await world.aexecute(["never"], "me too")
        assert busy.value.code == "LOUSHO_SESSION_BUSY"
        assert world.model.calls == []
        release.set()
        assert said((await first).messages) == ["go"]

    asyncio.run(go())
    assert world.ledger.runs("waits") == 1


def test_a_second_runner_may_wait_and_reads_the_state_after_it_holds_the_session(world: World) -> None:
    async def go() -> None:
        started, release = waiting_tool(world)
        first = asyncio.ensure_future(world.aexecute([asks("waits"), "one"]))
        await started.wait()
        second = asyncio.ensure_future(world.aexecute(["two"], "me too", wait=5))
        await asyncio.sleep(0.02)
        release.set()
        assert (await first).text == "one"
        result = await second
        assert said(result.messages) == ["go", "me too"]
        assert len(result.messages) == 7

    asyncio.run(go())


def test_waiting_ends(world: World) -> None:
    async def go() -> None:
        holder = await world.store.checkpoints.open_session("s1")
        with pytest.raises(SDKError) as busy:
            await world.aexecute(["never"], wait=0.1)
        assert busy.value.code == "LOUSHO_SESSION_BUSY"
        await holder.close()
        assert (await world.aexecute(["done"])).text == "done"

    asyncio.run(go())


def test_different_sessions_run_beside_each_other(world: World) -> None:
    async def go() -> None:
        started, release = waiting_tool(world)
        first = asyncio.ensure_future(world.aexecute([asks("waits"), "one"], session="s1"))
        await started.wait()
        assert (await world.aexecute(["two"], session="s2")).text == "two"
        release.set()
        await first

    asyncio.run(go())


def test_threads_exclude_each_other(world: World) -> None:
    outcomes: list[Any] = []
    barrier = threading.Barrier(4)

    def contend() -> None:
        barrier.wait(10)
        try:
            outcomes.append(world.execute(["done"]).text)
        except SDKError as error:
            outcomes.append(error.code)

    for _ in range(5):
        threads = [threading.Thread(target=contend) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert set(outcomes) <= {"done", "LOUSHO_SESSION_BUSY"}
    assert said(world.load().messages) == ["go"] * outcomes.count("done")


@pytest.mark.parametrize("end", ["answer", "crash", "pause"])
def test_the_session_is_free_after_a_run_however_it_ended(world: World, end: str) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    if end == "crash":
        world.crash([{"error": "the model died"}])
    else:
        world.execute([asks("g") if end == "pause" else "done"])

    async def take() -> None:
        await (await world.store.checkpoints.open_session("s1")).close()

    asyncio.run(take())


def test_a_held_session_can_be_read_and_not_deleted_or_overwritten(world: World) -> None:
    world.execute(["done"])

    async def go() -> None:
        checkpoints = world.store.checkpoints
        holder = await checkpoints.open_session("s1")
        stored = await checkpoints.load("s1")
        assert stored is not None
        assert len(await checkpoints.history("s1")) == 2
        for change in (checkpoints.delete("s1"), checkpoints.save("s1", stored)):
            with pytest.raises(SDKError) as busy:
                await change
            assert busy.value.code == "LOUSHO_SESSION_BUSY"
        await holder.close()

    asyncio.run(go())
    assert world.load().status == "finished"


def test_a_tool_that_runs_its_own_session_is_told_that_it_is_busy(world: World) -> None:
    @tool
    async def again() -> str:
        "again"
        return (await world.aexecute(["inner"], "inner")).text

    world.tools = [again]
    done = world.execute([asks("again"), "done"])
    assert rules_kit.kinds(done.messages) == ["tool-error"]
    assert "is being run by" in rules_kit.results(done.messages)["call_again"]["error"]
