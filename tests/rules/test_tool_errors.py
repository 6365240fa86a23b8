"""Tool errors do not end a run (R3.7)."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import rules_kit
from rules_kit import Killer, World, asks, call, check_sent, check_transcript, dump, kinds, results, turn

from lousho_cli import Event, PropagatingToolError, ToolContext, tool
from lousho_cli.errors import StorageError
from lousho_cli.execution.session import OpenSession
from lousho_cli.execution.state import Record, State

world = rules_kit.world


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


RAISED: list[BaseException] = [
    ValueError("no luck"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit(),
    StopIteration(1), StopAsyncIteration(), MemoryError(), RecursionError(), Unspeakable(), TimeoutError(),
    asyncio.InvalidStateError(), BaseExceptionGroup("many", [KeyboardInterrupt()]), OSError("\ud83d"),
]  # fmt: skip


def raising(error: BaseException, *, is_async: bool) -> Any:
    def body() -> str:
        raise error

    async def later() -> str:
        await asyncio.sleep(0)
        raise error

    return tool(name="bad", description="bad")(later if is_async else body)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_f33_whatever_a_tool_raises_is_its_own_result(
    world: World, error: BaseException, is_async: bool
) -> None:
    world.tools = [raising(error, is_async=is_async), world.ledger.tool("a")]
    for position in range(3):
        names = ["a", "a"]
        names.insert(position, "bad")
        session = f"s{position}"
        calls = [call(name, str(n)) for n, name in enumerate(names)]
        done = world.execute([turn(*calls), "done"], session=session)
        expected: list[str | None] = [None, None]
        expected.insert(position, "tool-error")
        assert kinds(done.messages) == expected
        assert done.text == "done"
        check_sent(world.model)
    assert world.ledger.runs("a") == 6


def test_f33_a_tool_that_closes_standard_output_or_moves_away_harms_only_itself(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    world.tools = [
        world.ledger.tool("moves", lambda: os.chdir("/")),
        world.ledger.tool("nothing", lambda: None),
    ]
    done = world.execute([asks("moves", "nothing"), "done"])
    assert results(done.messages) == {"call_moves": None, "call_nothing": None}
    assert world.load().status == "finished"


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_f33_a_time_limit_gives_an_error_and_the_rest_goes_on(world: World, is_async: bool) -> None:
    release = threading.Event()

    @tool(name="hangs", timeout=0.05)
    def blocks() -> None:
        "hangs"
        release.wait(20)

    @tool(name="hangs", timeout=0.05)
    async def sleeps() -> None:
        "hangs"
        await asyncio.sleep(20)

    world.tools = [sleeps if is_async else blocks, world.ledger.tool("a")]
    began = time.monotonic()
    done = world.execute([asks("hangs", "a"), "done"])
    release.set()
    assert time.monotonic() - began < 5
    assert kinds(done.messages) == ["timeout", None]
    assert "may have acted" in results(done.messages)["call_hangs"]["error"]


BAD_CALLS: dict[str, tuple[str, str]] = {
    "invented": ("serch", "{}"),
    "comma": ("write", '{"n":1,}'),
    "list": ("write", "[1]"),
    "null": ("write", "null"),
    "empty": ("write", ""),
    "number": ("write", "7"),
    "text": ("write", '"n"'),
    "twice": ("write", '{"n":1,"n":2}'),
    "missing": ("needs", "{}"),
    "wrong": ("needs", '{"n":"x"}'),
    "unknown": ("needs", '{"n":1,"m":2}'),
    "deep": ("write", "[" * 100_000),
    "large": ("write", '{"n":' + "9" * 200_000),
}


def test_f17_each_bad_call_gets_its_own_error_and_the_good_one_runs(world: World) -> None:
    @tool
    def needs(n: int) -> int:
        "needs"
        return n

    world.tools = [world.ledger.tool("write"), needs]
    calls = [{"name": name, "args": text, "id": key} for key, (name, text) in BAD_CALLS.items()]
    done = world.execute([turn(*calls, call("write", "good", n=1)), "done"])
    expected = ["unknown-tool"] + ["invalid-arguments"] * (len(BAD_CALLS) - 1) + [None]
    assert kinds(done.messages) == expected
    assert world.ledger.lines == [("write", "good")]
    told = results(done.messages)
    assert "write, needs" in told["invented"]["error"]
    assert all(len(told[key]["error"]) < 500 for key in BAD_CALLS)
    asked = dump(done.messages)[2]["toolCalls"]
    assert [one["function"]["arguments"] for one in asked[:-1]] == [text for _, text in BAD_CALLS.values()]
    assert dump(world.load().messages) == dump(done.messages)


def test_f17_bad_turns_end_at_the_step_limit(world: World) -> None:
    done = world.execute([turn({"name": "x", "args": "{", "id": str(n)}) for n in range(10)])
    assert (done.finish_reason, done.steps) == ("max-steps", 10)
    check_transcript(done.messages)


def test_f17_a_turn_of_very_many_bad_calls_is_answered(world: World) -> None:
    calls = [call("nope", str(n)) for n in range(1200)]
    done = world.execute([turn(*calls), "done"], tool_concurrency=1)
    assert done.text == "done"
    assert set(kinds(done.messages)) == {"unknown-tool"}


def test_a_validator_that_breaks_is_an_invalid_argument(world: World) -> None:
    from typing import Annotated

    from pydantic import AfterValidator

    def breaks(value: int) -> int:
        raise RuntimeError("bug in the validator")

    @tool
    def strict(n: Annotated[int, AfterValidator(breaks)]) -> int:
        "strict"
        return n

    world.tools = [strict]
    done = world.execute([turn(call("strict", n=1)), "done"])
    assert kinds(done.messages) == ["invalid-arguments"]


def test_a_result_that_cannot_be_stored_is_an_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from lousho_cli.execution import batch

    monkeypatch.setattr(batch, "MAX_RESULT_CHARS", 100)
    world.tools = [world.ledger.tool("big", lambda: "x" * 1000), world.ledger.tool("a")]
    done = world.execute([asks("big", "a"), "done"])
    assert kinds(done.messages) == ["tool-error", None]


def test_a_tool_may_end_the_run_and_running_siblings_settle_first(world: World) -> None:
    @tool
    async def ends() -> str:
        "ends"
        raise PropagatingToolError("enough died")

    @tool
    async def slow(ctx: ToolContext) -> str:
        "slow"
        await asyncio.sleep(0.03)
        world.ledger.lines.append(("slow", ctx.tool_call_id))
        return "slow done"

    world.tools = [ends, slow, world.ledger.tool("late")]
    world.crash([asks("ends", "slow", "late")], tool_concurrency=2)
    assert world.load().status == "in-progress"
    assert world.ledger.counts() == {"slow": 1}
    world.tools = [world.ledger.tool("ends"), slow, world.ledger.tool("late")]
    done = world.resume(["done"])
    assert world.ledger.counts() == {"ends": 1, "slow": 1, "late": 1}
    check_transcript(done.messages)


def _raise_on(kind: str) -> Callable[[Event], None]:
    def observe(event: Event) -> None:
        if event.type == kind:
            raise RuntimeError("the hook died")

    return observe


def test_nothing_of_a_run_goes_on_after_a_hook_ended_it(world: World) -> None:
    alive: list[str] = []

    @tool
    async def slow(ctx: ToolContext) -> str:
        "slow"
        alive.append(ctx.tool_call_id)
        try:
            await asyncio.sleep(0.05)
        finally:
            alive.remove(ctx.tool_call_id)
        return "slow done"

    world.tools = [world.ledger.tool("fast"), slow]

    async def go() -> None:
        with pytest.raises(RuntimeError, match="hook died"):
            await world.aexecute([asks("fast", "slow")], on_event=_raise_on("tool.done"))
        assert alive == [], "a tool still runs, and the session is free for another runner"

    asyncio.run(go())
    assert world.load().status == "in-progress"
    done = world.resume(["done"])
    assert world.ledger.runs("fast") == 1
    check_transcript(done.messages)


def test_nothing_of_a_run_goes_on_after_a_save_failed(world: World) -> None:
    """The disk is full when the fast call's result is saved, and the slow call still runs."""
    alive: list[str] = []

    @tool
    async def slow(ctx: ToolContext) -> str:
        "slow"
        alive.append(ctx.tool_call_id)
        try:
            await asyncio.sleep(0.05)
        finally:
            alive.remove(ctx.tool_call_id)
        return "slow done"

    world.tools = [world.ledger.tool("fast"), slow, world.ledger.tool("late")]
    world.checkpoints = FullDisk(world.store.checkpoints)

    async def go() -> None:
        with pytest.raises(StorageError, match="the disk is full"):
            await world.aexecute([asks("fast", "slow", "late"), "never"], tool_concurrency=2)
        assert alive == [], "a tool still runs, and the session is free for another runner"

    asyncio.run(go())
    assert len(world.model.calls) == 1
    assert world.ledger.runs("late") == 0
    world.checkpoints = world.store.checkpoints
    done = world.resume(["done"])
    assert kinds(done.messages) == [None, None, None]


class FullDisk(rules_kit.KillingCheckpoints):
    """A store that fails from the first tool result on."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, Killer(0, after=False))

    async def open_session(self, session_id: str) -> OpenSession:
        session = await super().open_session(session_id)
        save = session.save

        async def failing(record: Record) -> State:
            if record.kind == "result":
                raise StorageError("the disk is full")
            return await save(record)

        session.save = failing  # type: ignore[method-assign]
        return session


@pytest.mark.parametrize("kind", ["run.start", "step.start", "checkpoint.saved", "tool.start", "tool.done"])
def test_a_raising_hook_keeps_the_last_checkpoint(world: World, kind: str) -> None:
    world.tools = [world.ledger.tool("a")]
    script = [rules_kit.scripted_by_position([asks("a"), "done"])] * 2
    world.crash(script, on_event=_raise_on(kind))
    assert world.load().status == "in-progress"
    done = world.execute(script)
    assert (done.text, rules_kit.said(done.messages)) == ("done", ["go"])
    assert world.ledger.runs("a") == 1


def test_f05_recorded_results_never_run_again(world: World) -> None:
    world.tools = [*map(world.ledger.tool, ("send", "update")), world.ledger.tool("notify", dies=1)]
    world.crash([asks("send", "update", "notify")])
    assert world.resume(["done"]).text == "done"
    assert world.ledger.counts() == {"send": 1, "update": 1, "notify": 2}


def test_f05_a_crash_in_the_model_call_repeats_no_tool(world: World) -> None:
    world.tools = [world.ledger.tool("send")]
    world.crash([asks("send"), {"error": "the model died"}])
    assert world.resume(["done"]).text == "done"
    assert world.ledger.counts() == {"send": 1}
