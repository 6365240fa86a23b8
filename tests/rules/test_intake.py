"""What counts as input (R3.2), through the engine."""

from __future__ import annotations

from typing import Any

import pytest
import rules_kit
from rules_kit import World, asks, check_sent, dump, said, user

from lousho_cli import ConfigurationError, Message

world = rules_kit.world


@pytest.mark.parametrize(
    "given", ["hi", user("hi"), [user("hi")], Message(role="user", content="hi")], ids=str
)
def test_a_message_may_be_given_in_any_form(world: World, given: Any) -> None:
    assert said(world.execute(["done"], given).messages) == ["hi"]


@pytest.mark.parametrize(
    "given",
    [
        7, [7], [{"role": "robot", "content": "x"}], [{"content": "x"}],
        {"role": "user", "content": "x", "toolCalls": 3},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_message_is_refused_and_leaves_nothing(world: World, given: Any) -> None:
    with pytest.raises(ConfigurationError, match="not a message"):
        world.execute(["never"], given)
    assert world.history() == []
    assert world.model.calls == []


def assistant(*ids: str) -> dict[str, Any]:
    calls = [{"id": one, "type": "function", "function": {"name": "a", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": "", "toolCalls": calls}


def answer(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "content": "1", "toolCallId": call_id, "toolName": "a"}


UNPAIRED = {
    "stray result": [user("x"), answer("c")],
    "call without result": [assistant("c"), user("x")],
    "wrong order": [assistant("c", "d"), answer("d"), answer("c"), user("x")],
    "one id twice": [assistant("c", "c")],
    "too many": [assistant("c"), answer("c"), answer("c")],
}


@pytest.mark.parametrize("given", UNPAIRED.values(), ids=UNPAIRED.keys())
def test_unpaired_input_is_refused_and_leaves_nothing(world: World, given: Any) -> None:
    with pytest.raises(ConfigurationError, match="pairing"):
        world.execute(["never"], given)
    world.tools = [world.ledger.tool("a", dies=1)]
    world.crash([asks("a")])
    before = world.load()
    with pytest.raises(ConfigurationError, match="pairing"):
        world.execute(["never"], given)
    assert world.load() == before


def test_a_conversation_from_elsewhere_can_be_gone_on_with(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    elsewhere = [
        {"role": "system", "content": "be slow"},
        user("one"),
        assistant("c"),
        answer("c"),
        {"role": "assistant", "content": "two"},
        user("three"),
    ]
    done = world.execute(["four"], elsewhere)
    assert [m["role"] for m in dump(done.messages)[1:-1]] == [m["role"] for m in elsewhere[1:]]
    assert world.ledger.counts() == {}
    check_sent(world.model)


def test_an_open_turn_from_elsewhere_is_run_first(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    world.execute(["done"], [user("one"), assistant("c", "d"), answer("c")])
    assert world.ledger.lines == [("a", "d")]
    check_sent(world.model)


def test_structured_content_and_unknown_fields_are_kept(world: World) -> None:
    image = {"type": "image", "data": "QUJD", "detail": None}
    given = {"role": "user", "content": [{"type": "text", "text": "look"}, image], "name": "ann"}
    world.execute(["done"], given)
    sent = world.sent()[1]
    assert (sent["content"], sent["name"]) == (given["content"], "ann")
    assert dump(world.load().messages)[1] == sent


def test_f34_broken_characters_are_replaced_at_the_door(world: World) -> None:
    done = world.execute(["a\ud83d"], "half \ud83d and \x00")
    assert said(done.messages) == ["half \ufffd and \x00"]
    assert done.text == "a\ufffd"
    assert dump(world.load().messages) == dump(done.messages)
