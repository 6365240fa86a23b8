"""F12: turns and results without a text are kept as they came, end a run cleanly, and can be gone on from."""

from __future__ import annotations

from typing import Any

import pytest
import rules_kit
from rules_kit import World, check_sent, check_transcript, dump, said

world = rules_kit.world

EMPTY: list[tuple[Any, Any]] = [
    ({"text": ""}, ""),
    ({"content": []}, []),
    ({"content": [{"type": "text", "text": ""}]}, [{"type": "text", "text": ""}]),
    ({"text": "", "reasoning": "hm"}, ""),
]


@pytest.mark.parametrize(
    ("answer", "content"), EMPTY, ids=["text", "no parts", "an empty part", "reasoning only"]
)
def test_f12_an_empty_answer_ends_the_run_and_the_session_goes_on(
    world: World, answer: Any, content: Any
) -> None:
    done = world.execute([answer])
    assert (done.finish_reason, done.text) == ("stop", "")
    assert dump(world.load().messages)[-1]["content"] == content
    again = world.execute(["here I am"], "hello?")
    assert again.text == "here I am"
    assert said(again.messages) == ["go", "hello?"]
    check_sent(world.model)


@pytest.mark.parametrize("content", ["", [{"type": "text", "text": ""}]], ids=["text", "an empty part"])
def test_f12_a_turn_with_calls_and_no_text_is_resumed(world: World, content: Any) -> None:
    world.tools = [world.ledger.tool("a", dies=1)]
    asking = {"content": content, "tool_calls": [{"name": "a", "id": "1"}]}
    world.crash([asking])
    done = world.resume(["done"])
    assert done.text == "done"
    check_transcript(done.messages)
    assert [m["content"] for m in dump(done.messages) if m["role"] == "assistant"] == [content, "done"]


def test_f12_an_empty_result_is_a_result(world: World) -> None:
    world.tools = [world.ledger.tool("a", lambda: "")]
    done = world.execute([{"tool_calls": [{"name": "a", "id": "1"}]}, "done"])
    result = next(m for m in dump(done.messages) if m["role"] == "tool")
    assert (result["content"], result.get("isError")) == ('""', None)


def test_f12_input_of_blanks_is_kept_as_it_came(world: World) -> None:
    assert said(world.execute(["done"], " \n").messages) == [" \n"]
