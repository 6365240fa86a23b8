"""Calls that were running when the process died (R3.6)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import rules_kit
from rules_kit import (
    Killed,
    Killer,
    KillingCheckpoints,
    World,
    asks,
    call,
    check_sent,
    check_transcript,
    dump,
    engine,
    kinds,
    results,
    turn,
)

from lousho_cli import PropagatingToolError, SDKError, ToolContext, tool
from lousho_cli.execution.tools import OnInterrupt

world = rules_kit.world


def test_a_call_runs_again_with_the_same_id(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=2)]
    world.crash([turn(call("a", ""))])
    world.crash(input=[])
    done = world.resume(["done"])
    first = world.ledger.ids("a")[0]
    assert world.ledger.ids("a") == [first] * 3
    assert list(results(done.messages)) == [first]


@pytest.mark.parametrize("policy", ["ask", "fail"])
def test_the_start_is_durable_before_the_tool_runs(world: World, policy: OnInterrupt) -> None:
    seen: list[Any] = []

    @tool(on_interrupt=policy)
    async def charge() -> str:
        "charge"
        checkpoint = await world.store.checkpoints.load("s1")
        assert checkpoint is not None
        seen.append(engine(checkpoint).get("marks", {}))
        return "ok"

    world.tools = [charge]
    world.execute([asks("charge"), "done"])
    assert seen[0]["call_charge"]["started"] > 0


def test_fail_gives_the_model_an_interrupted_result_and_never_repeats(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("f", dies=1, on_interrupt="fail")]
    world.crash([asks("a", "f")], tool_concurrency=1)
    done = world.resume(["done"])
    assert kinds(done.messages) == [None, "interrupted"]
    assert "unknown" in results(done.messages)["call_f"]["error"]
    assert world.ledger.counts() == {"a": 1, "f": 1}


def test_ask_pauses_and_says_that_it_may_have_happened(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1, on_interrupt="ask"), world.ledger.tool("b")]
    world.crash([asks("a", "b")], tool_concurrency=1)
    paused = world.resume()
    assert paused.approval is not None
    assert (paused.approval.kind, paused.approval.tool_call_id) == ("interrupted", "call_a")
    assert world.ledger.counts() == {"a": 1}
    done = world.decide(paused.approval_id, ["done"])
    assert world.ledger.lines == [("a", "call_a"), ("a", "call_a"), ("b", "call_b")]
    assert kinds(done.messages) == [None, None]


def test_every_further_run_needs_a_word_of_its_own(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=3, on_interrupt="ask")]
    world.crash([asks("a")])
    seen = set()
    for repeated in (1, 2):
        paused = world.resume()
        seen.add(paused.approval_id)
        with pytest.raises(Exception, match="died"):
            world.decide(paused.approval_id)
        assert world.ledger.runs("a") == 1 + repeated
    assert world.resume().approval_id not in seen
    assert world.ledger.runs("a") == 3


def test_one_approval_never_covers_two_runs(world: World) -> None:
    world.tools = [world.ledger.tool("g", dies=1, needs_approval=True)]
    paused = world.execute([asks("g")])
    with pytest.raises(Exception, match="died"):
        world.decide(paused.approval_id)
    again = world.resume()
    assert again.approval is not None
    assert again.approval.kind == "interrupted"
    assert world.ledger.runs("g") == 1
    with pytest.raises(SDKError) as spent:
        world.decide(paused.approval_id)
    assert spent.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    assert world.decide(again.approval_id, ["done"]).text == "done"
    assert world.ledger.runs("g") == 2


def test_an_approved_call_may_be_declared_safe_to_repeat(world: World) -> None:
    world.tools = [world.ledger.tool("g", dies=1, needs_approval=True, on_interrupt="rerun")]
    paused = world.execute([asks("g")])
    with pytest.raises(Exception, match="died"):
        world.decide(paused.approval_id)
    assert world.resume(["done"]).text == "done"
    assert world.ledger.runs("g") == 2


def test_an_approved_call_may_be_declared_to_fail(world: World) -> None:
    world.tools = [world.ledger.tool("g", dies=1, needs_approval=True, on_interrupt="fail")]
    paused = world.execute([asks("g")])
    with pytest.raises(Exception, match="died"):
        world.decide(paused.approval_id)
    assert kinds(world.resume(["done"]).messages) == ["interrupted"]
    assert world.ledger.runs("g") == 1


def test_rejecting_a_repetition_says_that_the_outcome_is_unknown(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1, on_interrupt="ask")]
    world.crash([asks("a")])
    paused = world.resume()
    done = world.decide(paused.approval_id, ["done"], approved=False, note="I will look")
    result = results(done.messages)["call_a"]
    assert (result["kind"], result["note"]) == ("interrupted", "I will look")
    assert "outcome unknown, not repeated" in result["error"]
    assert dump(done.messages)[3]["isError"] is True
    assert world.ledger.runs("a") == 1


def test_a_human_may_supply_the_outcome(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1, on_interrupt="ask")]
    world.crash([asks("a")])
    paused = world.resume()
    done = world.decide(paused.approval_id, ["done"], result={"sent": True})
    assert results(done.messages) == {"call_a": {"sent": True}}
    assert kinds(done.messages) == [None]
    assert world.ledger.runs("a") == 1


def test_a_repetition_runs_the_arguments_that_were_shown_for_it(world: World) -> None:
    ran: list[int] = []

    @tool(on_interrupt="ask")
    def pay(amount: int) -> str:
        "pay"
        ran.append(amount)
        if len(ran) < 3:
            raise PropagatingToolError("pay died")
        return "paid"

    world.tools = [pay]
    world.crash([turn(call("pay", amount=1))])
    paused = world.resume()
    with pytest.raises(Exception, match="died"):
        world.decide(paused.approval_id, arguments={"amount": 2})
    again = world.resume()
    assert again.approval is not None
    assert again.approval.args == {"amount": 2}
    done = world.decide(again.approval_id, ["done"])
    assert done.finish_reason == "stop"
    assert ran == [1, 2, 2]


def test_a_repetition_of_a_gated_call_runs_the_arguments_that_were_shown_for_it(world: World) -> None:
    ran: list[int] = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        "pay"
        ran.append(amount)
        if len(ran) < 2:
            raise PropagatingToolError("pay died")
        return "paid"

    world.tools = [pay]
    paused = world.execute([turn(call("pay", amount=1))])
    with pytest.raises(Exception, match="died"):
        world.decide(paused.approval_id, arguments={"amount": 2})
    again = world.resume()
    assert again.approval is not None
    assert again.approval.args == {"amount": 2}
    done = world.decide(again.approval_id, ["done"])
    assert done.finish_reason == "stop"
    assert ran == [2, 2]


def test_calls_that_finished_beside_the_interrupted_one_are_not_repeated(world: World) -> None:
    @tool(on_interrupt="ask")
    async def slow(ctx: ToolContext) -> str:
        "slow"
        world.ledger.lines.append(("slow", ctx.tool_call_id))
        await asyncio.sleep(0.02)
        raise PropagatingToolError("slow died")

    world.tools = [slow, world.ledger.tool("a"), world.ledger.tool("b")]
    world.crash([asks("slow", "a", "b")])
    paused = world.resume()
    done = world.decide(paused.approval_id, ["done"], result="looked up")
    assert list(results(done.messages)) == ["call_slow", "call_a", "call_b"]
    assert world.ledger.counts() == {"slow": 1, "a": 1, "b": 1}


@pytest.mark.parametrize("policy", ["rerun", "ask", "fail"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 6))
def test_a_kill_at_any_write_keeps_the_promise_of_the_policy(
    world: World, at: int, after: bool, policy: str
) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("p", on_interrupt=policy)]
    killer = Killer(at, after=after)
    world.checkpoints = KillingCheckpoints(world.store.checkpoints, killer)
    script = [rules_kit.scripted_by_position([asks("a"), asks("p"), "done"])] * 3
    approvals = 0
    result = None
    while result is None or result.approval_id:
        try:
            if result is not None:
                approvals += 1
                result = world.decide(result.approval_id, script)
            else:
                result = world.execute(script)
        except Killed:
            result = None
    check_sent(world.model)
    check_transcript(result.messages)
    runs = world.ledger.runs("p")
    if policy == "rerun":
        assert runs in (1, 2)
        assert approvals == 0
    else:
        assert runs <= 1 + approvals
    assert world.ledger.runs("a") in (1, 2)
