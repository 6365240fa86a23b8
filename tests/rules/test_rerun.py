"""Running again with the same session id (R3.2)."""

from __future__ import annotations

from typing import Any

import pytest
import rules_kit
from rules_kit import World, asks, call, check_sent, check_transcript, dump, queued, roles, said, turn, user

from lousho_cli import (
    Agent,
    AgentExecutor,
    ConfigurationError,
    SDKError,
    SessionAwaitingApprovalError,
)
from lousho_cli.testing import ScriptedModel

world = rules_kit.world

DEAD: dict[str, Any] = {"error": "the model died"}


def test_pending_calls_run_first_without_asking_the_model_again(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("b", dies=1), world.ledger.tool("c")]
    world.crash([asks("a", "b", "c")], tool_concurrency=1)
    done = world.resume(["done"], tool_concurrency=1)
    assert done.text == "done"
    assert world.ledger.counts() == {"a": 1, "b": 2, "c": 1}
    assert len(world.model.calls) == 1
    check_transcript(done.messages)


def test_pending_calls_go_through_validation_again(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1), world.ledger.tool("b")]
    world.crash([turn(call("a"), call("b", n="no number"))], tool_concurrency=1)
    done = world.resume(["done"])
    assert rules_kit.kinds(done.messages) == [None, "invalid-arguments"]
    assert world.ledger.runs("b") == 0


def test_new_input_waits_through_crashes_and_a_pause(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=3), world.ledger.tool("g", needs_approval=True)]
    world.crash([asks("a", "g")])
    world.crash(input="first")
    world.crash(input="second")
    assert queued(world.load()) == ["first", "second"]
    paused = world.resume()
    assert paused.finish_reason == "awaiting-approval"
    done = world.decide(paused.approval_id, ["done"])
    order = ["system", "user", "assistant", "tool", "tool", "user", "user", "assistant"]
    assert roles(done.messages) == order
    assert said(done.messages) == ["go", "first", "second"]
    check_sent(world.model)


@pytest.mark.parametrize("again", ["go", user("go"), [user("go")], [], "", None], ids=str)
def test_repeating_the_opening_message_is_a_retry(world: World, again: Any) -> None:
    world.tools = [world.ledger.tool("a", dies=1)]
    world.crash([asks("a")])
    done = world.execute(["done"], again)
    assert said(done.messages) == ["go"]


def test_repeating_the_opening_of_a_later_run_is_a_retry(world: World) -> None:
    world.execute(["hello"], "hi")
    world.crash([DEAD], "book it")
    done = world.execute(["booked"], "book it")
    assert said(done.messages) == ["hi", "book it"]


def test_repeating_an_earlier_runs_message_in_an_unfinished_run_is_new(world: World) -> None:
    world.execute(["hello"], "hi")
    world.crash([DEAD], "book it")
    done = world.execute(["booked"], "hi")
    assert said(done.messages) == ["hi", "book it", "hi"]


def test_repeating_queued_input_is_a_retry(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=3)]
    world.crash([asks("a")])
    world.crash(input="and also")
    world.crash(input="and also")
    done = world.execute(["done"], "and also")
    assert said(done.messages) == ["go", "and also"]


def test_the_opening_message_with_a_new_one_adds_only_the_new_one(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1)]
    world.crash([asks("a")])
    done = world.execute(["done"], [user("go"), user("more")])
    assert said(done.messages) == ["go", "more"]


def test_the_opening_message_of_a_later_run_with_a_new_one_adds_only_the_new_one(world: World) -> None:
    world.execute(["hello"], "hi")
    world.crash([DEAD], "book it")
    done = world.execute(["booked"], [user("book it"), user("for two")])
    assert said(done.messages) == ["hi", "book it", "for two"]


def test_resending_the_unfinished_conversation_adds_only_what_is_new(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("b", dies=1)]
    world.execute(["hello"], "hi")
    world.crash([asks("a", "b")], tool_concurrency=1)
    stored = dump(world.load().messages)
    done = world.execute(["done"], [*stored, user("next")])
    assert said(done.messages) == ["hi", "go", "next"]
    check_transcript(done.messages)


def test_resending_the_unfinished_conversation_with_its_queued_input_adds_only_what_is_new(
    world: World,
) -> None:
    world.tools = [world.ledger.tool("a", dies=2)]
    world.crash([asks("a")])
    world.crash(input="first")
    stored = dump(world.load().messages)
    done = world.execute(["done"], [*stored, user("first"), user("second")])
    assert said(done.messages) == ["go", "first", "second"]


def test_input_with_an_open_turn_never_reaches_the_provider_without_its_results(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1)]
    world.crash([asks("a")])
    function = {"name": "a", "arguments": "{}"}
    open_turn = {
        "role": "assistant",
        "content": "",
        "toolCalls": [{"id": "x", "type": "function", "function": function}],
    }
    try:
        world.execute(["done"], [user("and"), open_turn])
    except ConfigurationError:
        assert said(world.load().messages) == ["go"], "refused input left a trace"
    check_sent(world.model)


def test_a_finished_session_continues_and_counts_anew(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    cost = {"usage": {"input_tokens": 10, "output_tokens": 1}}
    world.execute([{**asks("a"), **cost}, {"text": "one", **cost}], "hi")
    second = world.execute([{"text": "two", **cost}], "next")
    assert (second.steps, second.usage.input_tokens, len(second.tool_calls)) == (1, 10, 0)
    assert said(second.messages) == ["hi", "next"]
    assert len(second.messages) == 7


def test_resending_a_whole_finished_conversation_does_not_repeat_it(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([turn(call("a", ""), call("g"), call("gone"), reasoning="hm")], "hi")
    one = world.decide(paused.approval_id, ["one"], note="fine")
    two = world.execute(["two"], [*dump(one.messages), user("next")])
    assert said(two.messages) == ["hi", "next"]
    assert len(two.messages) == len(one.messages) + 2


def test_repeating_a_message_in_a_finished_conversation_is_a_new_turn(world: World) -> None:
    world.execute(["one"], "hi")
    assert said(world.execute(["two"], "hi").messages) == ["hi", "hi"]


def test_a_finished_session_has_nothing_to_send_without_input(world: World) -> None:
    world.execute(["one"], "hi")
    before = world.load()
    with pytest.raises(ConfigurationError, match="nothing to send"):
        world.resume(["never"])
    assert world.load() == before


@pytest.mark.parametrize("given", ["are you there?", "", "go", None])
def test_f20_input_does_not_slip_past_a_pending_decision(world: World, given: str | None) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("a", "g")])
    before = world.load()
    with pytest.raises(SessionAwaitingApprovalError) as refused:
        world.execute(["never"], given)
    assert (refused.value.session_id, refused.value.approval_id) == ("s1", paused.approval_id)
    assert world.load() == before
    assert world.model.calls == []
    assert world.ledger.counts() == {"a": 1}
    assert world.decide(paused.approval_id, ["done"]).text == "done"


def test_f20_input_with_a_recorded_decision_comes_after_the_results(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])
    world.record_only(paused.approval_id)
    done = world.execute(["done"], "more")
    assert roles(done.messages) == ["system", "user", "assistant", "tool", "user", "assistant"]
    assert world.ledger.runs("g") == 1


def test_system_messages_of_a_stored_session_are_ignored(world: World) -> None:
    world.execute(["one"], "hi")
    done = world.execute(["two"], [{"role": "system", "content": "be rude"}, user("next")])
    assert [m["content"] for m in dump(done.messages) if m["role"] == "system"] == ["be brief"]


def test_a_new_run_uses_the_instructions_of_today_and_a_resume_those_it_began_with(world: World) -> None:
    world.execute(["one"], "hi")
    world.crash([DEAD], "next", agent=Agent("bot", "be kind"))
    assert dump(world.load().messages)[0]["content"] == "be kind"
    world.execute(["two"], [], agent=Agent("bot", "be slow"))
    assert world.sent()[0]["content"] == "be kind"


def test_an_agent_without_instructions_keeps_the_system_message_of_the_conversation(world: World) -> None:
    nobody = Agent("bot")
    world.execute(["one"], [{"role": "system", "content": "speak French"}, user("hi")], agent=nobody)
    world.execute(["two"], "next", agent=nobody)
    assert world.sent()[0] == {"role": "system", "content": "speak French"}


def test_the_rest_of_the_budget_and_the_totals_go_on_after_a_crash(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("b", dies=1)]
    cost = {"usage": {"input_tokens": 100, "output_tokens": 10}}
    world.crash([{**asks("b"), **cost}], max_steps=2)
    done = world.resume([{**asks("a"), **cost}])
    assert (done.finish_reason, done.steps) == ("max-steps", 2)
    assert (done.usage.input_tokens, done.usage.total_tokens, done.usage.model_calls) == (200, 220, 2)
    assert len(done.step_usage) == 1


def test_f29_one_message_however_often_the_model_fails(world: World) -> None:
    inputs: list[Any] = ["book it", [], "book it"]
    for given in inputs:
        world.crash([DEAD], given)
    done = world.execute(["booked"], "book it")
    assert said(done.messages) == ["book it"]
    assert said(world.execute(["again"], "book it").messages) == ["book it", "book it"]


def test_f29_the_message_is_saved_before_the_model_is_asked(world: World) -> None:
    def look(request: Any) -> str:
        seen.append(said(request.messages))
        return "ok"

    seen: list[Any] = []
    world.crash([DEAD], "book it")
    assert said(world.load().messages) == ["book it"]
    world.execute([look], [])
    assert seen == [["book it"]]


def test_without_a_session_nothing_is_kept(world: World) -> None:
    result = AgentExecutor.execute_sync(agent=Agent("bot"), input="hi", provider=ScriptedModel(["yo"]))
    assert (result.text, result.session_id) == ("yo", None)


def test_f01_a_crash_anywhere_in_a_batch_leaves_a_session_that_goes_on(world: World) -> None:
    names = ("read", "shell", "write")
    for dying in names:
        world.tools = [world.ledger.tool(name, dies=3 if name == dying else 0) for name in names]
        world.ledger.lines.clear()
        session = f"dies-in-{dying}"
        world.crash([asks(*names)], session=session, tool_concurrency=1)
        for _ in range(2):
            world.crash(input="do it another way", session=session, tool_concurrency=1)
        done = world.resume(["ok"], session=session, tool_concurrency=1)
        assert said(done.messages) == ["go", "do it another way"]
        assert world.ledger.counts() == {name: 4 if name == dying else 1 for name in names}
        check_sent(world.model)


def test_an_empty_input_for_a_new_session_is_refused_and_leaves_nothing(world: World) -> None:
    with pytest.raises(SDKError, match="nothing to send"):
        world.execute(["never"], "")
    assert world.history() == []
