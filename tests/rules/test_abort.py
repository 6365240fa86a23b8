"""Telling a run to stop (R3.8)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import rules_kit
from rules_kit import World, asks, call, check_sent, check_transcript, kinds, results, roles, said, turn

from lousho_cli import Cancel, Event, ExecutionResult, PropagatingToolError, ToolContext, tool
from lousho_cli.execution import attempt, batch
from lousho_cli.execution.cancel import wake

world = rules_kit.world


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(attempt, "STOP_SECONDS", 0.1)


def test_the_run_returns_and_the_session_goes_on(world: World) -> None:
    cancel = Cancel()
    world.tools = [world.ledger.tool("a"), world.ledger.tool("stop", cancel.cancel), world.ledger.tool("b")]
    result = world.execute([asks("a", "stop", "b")], cancel=cancel, tool_concurrency=1)
    assert result.finish_reason == "aborted"
    assert kinds(result.messages) == [None, None, "cancelled"]
    stored = world.load()
    assert (stored.status, stored.finish_reason) == ("in-progress", "aborted")
    done = world.execute(["done"], "go on")
    assert said(done.messages) == ["go", "go on"]
    assert world.ledger.counts() == {"a": 1, "stop": 1}
    check_sent(world.model)


@pytest.mark.parametrize("tail", [(), ("g",), ("unknown", "g", "a")], ids=str)
def test_every_other_call_of_the_turn_gets_a_cancelled_result(world: World, tail: tuple[str, ...]) -> None:
    cancel = Cancel()
    world.tools = [
        world.ledger.tool("a"), world.ledger.tool("stop", cancel.cancel),
        world.ledger.tool("g", needs_approval=True),
    ]  # fmt: skip
    calls = [call("stop", "0"), *(call(name, str(n)) for n, name in enumerate(tail, 1))]
    result = world.execute([turn(*calls)], cancel=cancel, tool_concurrency=1)
    assert kinds(result.messages) == [None] + ["cancelled"] * len(tail)
    check_transcript(result.messages)
    assert world.ledger.counts() == {"stop": 1}


def test_running_calls_are_told_and_finished_ones_keep_their_results(world: World) -> None:
    cancel = Cancel()
    told: list[str] = []

    @tool
    async def obeys() -> str:
        "obeys"
        try:
            await asyncio.sleep(30)
        finally:
            told.append("task")
        return "never"

    @tool
    def looks(ctx: ToolContext) -> str:
        "looks"
        while not ctx.cancel.is_set():
            time.sleep(0.002)
        told.append(ctx.cancel.reason)
        return "stopped half-way"

    @tool
    async def waits(ctx: ToolContext) -> str:
        "waits"
        await ctx.cancel.wait()
        return "never"

    @tool
    async def stops() -> str:
        "stops"
        await asyncio.sleep(0.02)
        cancel.cancel("enough")
        return "stopped"

    world.tools = [obeys, looks, waits, stops]
    result = world.execute([asks("obeys", "looks", "waits", "stops")], cancel=cancel)
    assert sorted(told) == ["enough", "task"]
    assert kinds(result.messages)[:2] == ["cancelled", None]
    assert results(result.messages)["call_looks"] == "stopped half-way"
    check_transcript(result.messages)


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_ignores_the_stop_is_left_and_its_result_says_so(world: World, is_async: bool) -> None:
    cancel = Cancel()
    release = threading.Event()

    @tool(name="stubborn")
    def blocks() -> str:
        "stubborn"
        cancel.cancel()
        release.wait(20)
        return "too late"

    @tool(name="stubborn")
    async def swallows() -> str:
        "stubborn"
        cancel.cancel()
        while not release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return "too late"

    async def go() -> ExecutionResult:
        result = await world.aexecute([asks("stubborn")], cancel=cancel)
        release.set()
        await asyncio.sleep(0.03)
        return result

    world.tools = [swallows if is_async else blocks]
    began = time.monotonic()
    result = asyncio.run(go())
    assert time.monotonic() - began < 5
    assert kinds(result.messages) == ["cancelled"]
    assert "may have acted" in results(result.messages)["call_stubborn"]["error"]
    assert results(world.load().messages) == results(result.messages)


def test_an_abort_before_anything_keeps_the_input(world: World) -> None:
    cancel = Cancel()
    cancel.cancel()
    result = world.execute(["never"], cancel=cancel)
    assert result.finish_reason == "aborted"
    assert world.model.calls == []
    assert said(world.resume(["done"]).messages) == ["go"]


def test_an_abort_while_the_model_thinks_leaves_no_turn(world: World) -> None:
    cancel = Cancel()

    async def thinks(request: Any) -> str:
        cancel.cancel()
        await asyncio.sleep(30)
        return "never"

    result = world.execute([thinks], cancel=cancel)
    assert (result.finish_reason, result.steps) == ("aborted", 0)
    assert roles(result.messages) == ["system", "user"]
    assert world.execute(["done"], "go").text == "done"


def test_a_turn_that_ended_before_the_stop_counts(world: World) -> None:
    cancel = Cancel()

    def answers(request: Any) -> str:
        cancel.cancel()
        return "the answer"

    result = world.execute([answers], cancel=cancel)
    assert (result.finish_reason, result.text) == ("stop", "the answer")
    assert world.load().status == "finished"


def test_an_abort_between_a_turn_and_its_calls_closes_them(world: World) -> None:
    cancel = Cancel()

    def observe(event: Event) -> None:
        if event.type == "checkpoint.saved" and event.data["step"] == 1:
            cancel.cancel()

    world.tools = [world.ledger.tool("a")]
    result = world.execute([asks("a", "a2")], cancel=cancel, on_event=observe)
    assert kinds(result.messages) == ["cancelled", "cancelled"]
    assert world.ledger.counts() == {}


def test_queued_input_follows_the_cancelled_results(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1)]
    world.crash([asks("a")])
    cancel = Cancel()
    cancel.cancel()
    world.execute(input="more", cancel=cancel)
    assert roles(world.load().messages) == ["system", "user", "assistant", "tool", "user"]
    assert world.resume(["done"]).text == "done"
    check_sent(world.model)


def test_results_out_of_order_are_kept_over_an_abort(world: World) -> None:
    cancel = Cancel()

    @tool
    async def slow() -> str:
        "slow"
        await asyncio.sleep(30)
        return "never"

    def observe(event: Event) -> None:
        if event.type == "tool.done":
            cancel.cancel()

    world.tools = [slow, world.ledger.tool("fast")]
    result = world.execute([asks("slow", "fast")], cancel=cancel, on_event=observe)
    assert list(results(result.messages)) == ["call_slow", "call_fast"]
    assert kinds(result.messages) == ["cancelled", None]


def test_a_cancelled_task_saves_like_an_abort(world: World) -> None:
    async def go() -> None:
        running = asyncio.Event()

        @tool
        async def slow() -> str:
            "slow"
            running.set()
            await asyncio.sleep(30)
            return "never"

        world.tools = [slow]
        task = asyncio.ensure_future(world.aexecute([asks("slow")]))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    stored = world.load()
    assert (stored.status, stored.finish_reason) == ("in-progress", "aborted")
    assert kinds(stored.messages) == ["cancelled"]
    assert world.resume(["done"]).text == "done"


class SlowStore:
    """A store of the three methods, whose saves take a while, as over a network."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.saving_result = asyncio.Event()

    async def save(self, session_id: str, checkpoint: Any) -> None:
        if checkpoint.messages[-1].role == "tool":
            self.saving_result.set()
        await asyncio.sleep(0.01)
        self.kept[session_id] = checkpoint

    async def load(self, session_id: str) -> Any:
        return self.kept.get(session_id)

    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        self.kept.pop(session_id, None)


def test_a_result_keeps_when_the_task_is_cancelled_while_it_is_saved(world: World) -> None:
    store = SlowStore()
    world.checkpoints = store
    world.tools = [world.ledger.tool("a")]

    async def go() -> None:
        task = asyncio.ensure_future(world.aexecute([asks("a"), "never"]))
        await store.saving_result.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert results(store.kept["s1"].messages) == {"call_a": "a done"}


def _raises_early() -> Any:
    raise PropagatingToolError("the tool ends the run")


def test_no_result_says_that_a_call_did_not_run_when_it_ended_the_run_itself(world: World) -> None:
    cancel = Cancel()

    @tool
    async def slow() -> str:
        "slow"
        await asyncio.sleep(0.02)
        cancel.cancel()
        await asyncio.sleep(30)
        return "never"

    world.tools = [world.ledger.tool("ends", _raises_early), slow]
    try:
        result = world.execute([asks("ends", "slow")], cancel=cancel)
    except PropagatingToolError:
        return
    assert "before it ran" not in results(result.messages)["call_ends"]["error"]


@pytest.mark.parametrize("policy", ["approved", "ask", "fail"])
def test_no_result_says_that_an_interrupted_call_did_not_run(world: World, policy: str) -> None:
    options: dict[str, Any] = {"needs_approval": True} if policy == "approved" else {"on_interrupt": policy}
    world.tools = [world.ledger.tool("p", dies=1, **options)]

    def begin() -> None:
        paused = world.execute([asks("p")])
        world.decide(paused.approval_id)

    with pytest.raises(PropagatingToolError):
        begin()
    cancel = Cancel()
    cancel.cancel()
    result = world.resume(cancel=cancel)
    assert world.ledger.runs("p") == 1
    assert "before it ran" not in results(result.messages)["call_p"]["error"]


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_f01_an_abort_anywhere_in_a_batch_leaves_a_session_that_goes_on(world: World, when: str) -> None:
    cancel = Cancel()
    stopping: dict[str, Callable[[], Any]] = {
        {"before": "c1", "during": "c2", "after": "c3"}[when]: cancel.cancel
    }
    world.tools = [world.ledger.tool(name, stopping.get(name)) for name in ("c1", "c2", "c3")]
    world.execute([asks("c1", "c2", "c3")], cancel=cancel, tool_concurrency=1)
    for _ in range(3):
        again = Cancel()
        again.cancel()
        world.execute(input="do it another way", cancel=again)
    done = world.resume(["ok"])
    assert said(done.messages) == ["go", "do it another way"]
    assert max(world.ledger.counts().values()) == 1
    check_sent(world.model)


def test_a_signal_after_the_loop_was_closed_wakes_nobody() -> None:
    cancel = Cancel()

    async def leave_a_listener() -> None:
        loop = asyncio.get_running_loop()
        cancel.on_cancel(lambda: wake(loop, lambda: None))

    asyncio.run(leave_a_listener())
    cancel.cancel("late")
    assert cancel.is_set()
