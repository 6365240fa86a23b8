"""Calls have ids of their own, whatever the provider sends (R3.17)."""

from __future__ import annotations

from typing import Any

import rules_kit
from rules_kit import World, asks, call, check_sent, check_transcript, dump, results, turn, user

from lousho_cli import tool

world = rules_kit.world


def test_f16_the_same_id_again_and_again(world: World) -> None:
    ran: list[str] = []

    @tool
    def write(f: str) -> str:
        "write"
        ran.append(f)
        return f"wrote {f}"

    world.tools = [write]
    script = [
        turn(call("write", "call_0", f="a")),
        turn(call("write", "call_0", f="b")),
        turn(call("write", "call_0", f="c"), call("write", "call_0", f="d")),
        turn(call("write", "", f="e"), {"name": "write", "args": {"f": "f"}, "id": None}),
        turn(call("write", "x", f="g"), call("write", "x", f="g")),
        "done",
    ]
    done = world.execute(script)
    assert sorted(ran) == [*"abcdefgg"]
    check_sent(world.model)
    check_transcript(done.messages)
    assert [*results(done.messages).values()] == [f"wrote {name}" for name in "abcdefgg"]


def test_f16_a_crash_between_two_calls_of_one_id(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("b", dies=1)]
    world.crash([turn(call("a", "call_0"), call("b", "call_0"))], tool_concurrency=1)
    first, second = world.ledger.ids("a")[0], world.ledger.ids("b")[0]
    assert first != second
    done = world.resume(["done"])
    assert world.ledger.lines == [("a", first), ("b", second), ("b", second)]
    assert list(results(done.messages)) == [first, second]


def test_f16_an_approval_names_one_of_two_calls_without_ids(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([turn(call("g", "", n=1), call("g", "", n=2), call("a", ""))])
    assert paused.approval is not None
    first = paused.approval.tool_call_id
    paused = world.decide(paused.approval_id)
    assert paused.approval is not None
    assert paused.approval.tool_call_id != first
    done = world.decide(paused.approval_id, ["done"], approved=False)
    assert world.ledger.ids("g") == [first]
    check_transcript(done.messages)


def test_an_id_of_an_earlier_run_is_replaced(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    world.execute([asks("a"), "one"])
    done = world.execute([asks("a"), "two"], "next")
    check_transcript(done.messages)
    assert len(set(world.ledger.ids("a"))) == 2


def test_an_id_before_the_fork_is_replaced_and_one_behind_it_is_free(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    world.execute([turn(call("a", "1")), turn(call("a", "2")), "end"])
    fork = world.fork(from_step=1)
    done = world.resume([turn(call("a", "2")), turn(call("a", "1")), "end"], session=fork.session_id)
    check_transcript(done.messages)
    assert list(results(done.messages))[:2] == ["1", "2"]


def test_replaced_ids_stay_the_same_in_every_later_request(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    world.execute([turn(call("a", "")), turn(call("a", "")), "done"])
    first, second, third = (dump(request.messages) for request in world.model.calls)
    assert second[: len(first)] == first
    assert third[: len(second)] == second


def test_a_conversation_with_replaced_ids_is_recognised_when_it_is_sent_again(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    one = world.execute([turn(call("a", ""), call("a", "x"), call("a", "x")), "one"])
    history: list[Any] = dump(one.messages)
    two = world.execute(["two"], [*history, user("next")])
    assert len(two.messages) == len(one.messages) + 2
