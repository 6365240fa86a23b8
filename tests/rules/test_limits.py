"""The limit of steps (R3.16)."""

from __future__ import annotations

from typing import Any

import pytest
import rules_kit
from rules_kit import World, asks, call, check_transcript, kinds, turn

from lousho_cli import ConfigurationError

world = rules_kit.world


def endless(count: int) -> list[Any]:
    return [turn(call("a", str(n))) for n in range(count)]


@pytest.mark.parametrize(("limit", "steps"), [(None, 10), (1, 1), (3, 3)])
def test_running_out_finishes_with_no_call_open(world: World, limit: int | None, steps: int) -> None:
    world.tools = [world.ledger.tool("a")]
    done = world.execute(endless(20), max_steps=limit)
    assert (done.finish_reason, done.steps, world.ledger.runs("a")) == ("max-steps", steps, steps)
    check_transcript(done.messages)


def test_an_answer_in_the_last_step_is_a_proper_end(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    assert world.execute([*endless(1), "done"], max_steps=2).finish_reason == "stop"


def test_a_resume_keeps_the_limit_of_its_run(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1)]
    world.crash(endless(1), max_steps=2)
    done = world.resume([turn(call("a", "x")), "too late"])
    assert (done.finish_reason, done.steps) == ("max-steps", 2)


def test_a_resume_may_be_given_another_limit_which_then_holds(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=2)]
    world.crash(endless(1), max_steps=1)
    world.crash(input=[], max_steps=3)
    done = world.resume([turn(call("a", f"x{n}")) for n in range(9)])
    assert (done.finish_reason, done.steps) == ("max-steps", 3)


def test_the_limit_of_one_run_does_not_hold_for_the_next(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    world.execute(endless(1), max_steps=1)
    done = world.execute([turn(call("a", f"x{n}")) for n in range(9)] + ["done"], "next")
    assert (done.finish_reason, done.steps) == ("stop", 10)


def test_a_pause_in_the_last_step_is_settled_before_the_end(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True), world.ledger.tool("a")]
    paused = world.execute([asks("g", "a")], max_steps=1)
    done = world.decide(paused.approval_id, ["never"])
    assert (done.finish_reason, world.model.calls) == ("max-steps", [])
    assert kinds(done.messages) == [None, None]


def test_a_fork_carries_count_and_limit(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    world.execute(endless(3), max_steps=3)
    fork = world.fork(from_step=2)
    done = world.resume([turn(call("a", f"x{n}")) for n in range(9)], session=fork.session_id)
    assert (done.finish_reason, done.steps) == ("max-steps", 3)


@pytest.mark.parametrize("option", ["max_steps", "tool_concurrency"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_below_one_is_refused(world: World, option: str, value: int) -> None:
    with pytest.raises(ConfigurationError, match=option):
        world.execute(["never"], **{option: value})
    assert world.model.calls == []
    assert world.history() == []


def test_concurrency_bounds_what_runs_at_once(world: World) -> None:
    import asyncio

    from lousho_cli import tool

    now, most = 0, 0

    @tool
    async def a() -> None:
        "a"
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1

    world.tools = [a]
    world.execute([turn(*(call("a", str(n)) for n in range(6))), "done"], tool_concurrency=2)
    assert most == 2
