"""A final answer of a given shape: read, asked for once more, and the same after a crash at any point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field
from rules_kit import Data, Killed, World, asks, call, check_transcript, said, turn

from lousho_cli import Agent, ConfigurationError, Event
from lousho_cli.execution.output import OutputFormat
from lousho_cli.execution.triggers import watching
from lousho_cli.testing import ScriptedModel


class Order(BaseModel):
    item: str
    count: int = Field(ge=1)


SCHEMA: Data = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
    "required": ["item", "count"],
}
GOOD = '{"item": "tea", "count": 2}'
BAD = '{"item": "tea", "count": 0}'
VALUE = {"item": "tea", "count": 2}


@pytest.fixture(params=("memory", "file"))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param, tmp_path)


def test_a_pydantic_model_comes_back_as_one(world: World) -> None:
    done = world.execute([GOOD], output=Order)
    assert (done.output, done.text, done.finish_reason) == (Order(item="tea", count=2), GOOD, "stop")
    assert world.model.calls[0].output == Order.model_json_schema()
    assert done.model_dump(mode="json", by_alias=True)["output"] == VALUE


def test_a_json_schema_gives_a_plain_value(world: World) -> None:
    done = world.execute([f"```json\n{GOOD}\n```"], output=SCHEMA)
    assert done.output == VALUE
    assert world.model.calls[0].output == SCHEMA


@pytest.mark.parametrize("output", [Order, SCHEMA])
@pytest.mark.parametrize("first", [BAD, "two teas", "", "[" * 100_000])
def test_a_wrong_answer_is_asked_for_once_more(world: World, output: Any, first: str) -> None:
    events: list[Event] = []
    done = world.execute([first, GOOD], output=output, on_event=events.append)
    assert (done.finish_reason, done.steps) == ("stop", 2)
    repair = done.messages[-2]
    assert (repair.role, repair["repair"]) == ("user", True)
    assert "does not have the shape" in repair.content
    assert [event.data["again"] for event in events if event.type == "output.invalid"] == [True]
    assert (json.loads(done.text), done.output is None) == (VALUE, False)


def test_a_second_wrong_answer_ends_the_run(world: World) -> None:
    done = world.execute([BAD, BAD, "never"], output=Order)
    assert (done.finish_reason, done.output, done.steps) == ("output-invalid", None, 2)
    assert world.load().status == "finished"
    done = world.execute([BAD, GOOD], "again", output=Order)
    assert (done.finish_reason, done.output) == ("stop", Order(item="tea", count=2))


def test_in_the_last_step_there_is_no_second_answer(world: World) -> None:
    done = world.execute([BAD, "never"], output=Order, max_steps=1)
    assert (done.finish_reason, done.messages[-1].role) == ("output-invalid", "assistant")


def test_an_answer_that_was_cut_by_its_limit_keeps_its_own_reason(world: World) -> None:
    done = world.execute([{"text": GOOD[:9], "finish_reason": "length"}], output=Order)
    assert (done.finish_reason, done.output) == ("length", None)


POINTS = ["model.asking", "model.answered", "turn.saving", "turn.saved", "finish.saving", "finish.saved"]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_crash_at_any_point_changes_nothing(world: World, point: str, nth: int) -> None:
    world.tools = [world.ledger.tool("a")]
    script: list[Any] = [asks("a"), BAD, GOOD]
    model = ScriptedModel([lambda request: script[sum(m.role == "assistant" for m in request.messages)]] * 9)
    passed = 0

    def die(reached: str) -> None:
        nonlocal passed
        passed += reached == point
        if reached == point and passed == nth:
            raise Killed

    try:
        with watching(die):
            done = world.execute(provider=model, output=Order)
    except Killed:
        if world.load().status == "finished":
            assert world.load().messages[-1].content == GOOD
            return
        done = world.resume(provider=model, output=Order)
    assert (done.finish_reason, done.output, done.steps) == ("stop", Order(item="tea", count=2), 3)
    assert [text for text in said(done.messages) if text == "go"] == ["go"]
    assert len(said(done.messages)) == 2
    assert world.ledger.runs("a") == 1
    check_transcript(done.messages)


def test_a_fork_of_an_answer_is_read_by_the_shape_it_is_run_with(world: World) -> None:
    world.execute([GOOD], output=Order)
    fork = world.fork(from_step=1)
    assert world.resume([], session=fork.session_id, output=Order).output == Order(item="tea", count=2)
    fork = world.fork(from_step=1)
    done = world.resume([], session=fork.session_id, output={"type": "string"})
    assert (done.finish_reason, done.output) == ("output-invalid", None)


def test_a_sub_agent_answers_in_its_own_shape_and_the_lead_in_free_text(world: World) -> None:
    clerk = Agent("clerk", "clerk", output=Order)
    lead = Agent("bot", "be brief", subagents=[clerk])
    done = world.execute([turn(call("delegate_clerk", "d1", input="tea")), BAD, GOOD, "done"], agent=lead)
    assert (done.text, done.output) == ("done", None)
    assert [request.output is None for request in world.model.calls] == [True, False, False, True]
    assert json.loads(json.loads(done.messages[3].content)) == VALUE


@pytest.mark.parametrize(
    ("output", "words"), [({"type": "nonsense"}, "no JSON schema"), (object(), "no shape of an answer")]
)
def test_what_is_no_shape_is_refused(world: World, output: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        world.execute(["never"], output=output)
    assert world.history() == []


def test_without_jsonschema_a_json_schema_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(ConfigurationError, match="jsonschema") as missing:
        OutputFormat.of(SCHEMA)
    assert missing.value.code == "LOUSHO_PEER_MISSING"
    assert OutputFormat.of(Order) is not None
