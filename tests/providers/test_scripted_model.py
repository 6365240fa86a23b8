"""The scripted model: turns of every shape, in order, and what happens when they run out."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from lousho_cli.errors import ConfigurationError, ProviderError
from lousho_cli.execution.conversation import Messages
from lousho_cli.execution.log import Log
from lousho_cli.execution.protocols import ModelRequest
from lousho_cli.execution.records import ModelResponse
from lousho_cli.testing import ScriptedModel

REQUEST = ModelRequest(Messages(Log([{"role": "user", "content": "go"}])))


def ask(model: ScriptedModel, request: ModelRequest = REQUEST) -> ModelResponse:
    return asyncio.run(model.generate(request))


def call(**fields: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": "search", **fields}]}


def test_texts_and_mappings_are_played_in_order() -> None:
    model = ScriptedModel(["one", {"text": "two", "finish_reason": "length"}])
    assert ask(model).content == "one"
    second = ask(model)
    assert (second.content, second.finish_reason) == ("two", "length")
    assert model.model == "scripted"


def test_a_turn_carries_usage_and_further_fields() -> None:
    parts = [{"type": "thinking", "thinking": "", "signature": "SIG"}, {"type": "text", "text": "ok"}]
    turn = {"content": parts, "usage": {"input_tokens": 3, "output_tokens": 4}, "reasoning": "because"}
    reply = ask(ScriptedModel([turn]))
    assert reply.content == parts
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.total_tokens) == (3, 4, 7)
    assert reply.model_extra == {"reasoning": "because"}


def test_call_ids_are_counted_over_the_life_of_the_model() -> None:
    both = {"tool_calls": [{"name": "a"}, {"name": "b"}]}
    model = ScriptedModel([both, call(id="mine"), call()])
    ids = [[made.id for made in ask(model).tool_calls] for _ in range(3)]
    assert ids == [["call_1", "call_2"], ["mine"], ["call_3"]]


@pytest.mark.parametrize("missing", ["", None])
def test_an_id_that_is_said_to_be_missing_stays_missing(missing: str | None) -> None:
    assert ask(ScriptedModel([call(id=missing)])).tool_calls[0].id == ""


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({}, "{}"),
        ({"args": {"q": "tea", "n": 2**70}}, '{"q": "tea", "n": 1180591620717411303424}'),
        ({"args": {"q": "thé"}}, '{"q": "thé"}'),
        ({"args": {"q": "\ud83d"}}, '{"q": "\\ud83d"}'),
        ({"args": '{"a":1,}'}, '{"a":1,}'),
        ({"args": ""}, ""),
    ],
)
def test_arguments_are_sent_as_json_or_as_the_text_given(fields: dict[str, Any], sent: str) -> None:
    assert ask(ScriptedModel([call(**fields)])).tool_calls[0].function.arguments == sent


def test_further_fields_of_a_call_are_kept() -> None:
    made = ask(ScriptedModel([call(args={}, thought_signature="SIG")])).tool_calls[0]
    assert made.model_extra == {"thought_signature": "SIG"}


def test_a_function_of_the_request_may_be_sync_or_async() -> None:
    async def later(request: ModelRequest) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"text": f"heard {request.messages[-1].content}"}

    model = ScriptedModel([lambda request: f"{len(request.messages)} messages", later])
    assert ask(model).content == "1 messages"
    assert ask(model).content == "heard go"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ("overloaded", "LOUSHO_PROVIDER_REQUEST_FAILED", "overloaded"),
        (
            {"message": "slow down", "code": "LOUSHO_PROVIDER_RATE_LIMITED"},
            "LOUSHO_PROVIDER_RATE_LIMITED",
            "slow down",
        ),
    ],
)
def test_an_error_turn_fails_as_a_provider_does(error: object, code: str, message: str) -> None:
    model = ScriptedModel([{"error": error}, "recovered"])
    with pytest.raises(ProviderError, match=message) as raised:
        ask(model)
    assert raised.value.code == code
    assert ask(model).content == "recovered"


def test_an_exception_is_raised_as_it_is() -> None:
    mine = KeyError("mine")
    model = ScriptedModel([{"error": mine}], on_exhausted="repeat-last")
    for _ in range(2):
        with pytest.raises(KeyError) as raised:
            ask(model)
        assert raised.value is mine


def test_a_delay_is_waited_before_the_answer_and_can_be_cancelled() -> None:
    start = time.monotonic()
    assert ask(ScriptedModel([{"text": "late", "delay": 0.05}])).content == "late"
    assert time.monotonic() - start >= 0.03

    async def impatient() -> None:
        await asyncio.wait_for(ScriptedModel([{"text": "never", "delay": 600}]).generate(REQUEST), 0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())


def test_running_out_fails_with_a_hint() -> None:
    model = ScriptedModel(["only"])
    ask(model)
    with pytest.raises(ProviderError, match="has 1 turn, and turn 2 was asked for") as raised:
        ask(model)
    assert raised.value.hint


def test_the_last_turn_may_repeat() -> None:
    model = ScriptedModel(["first", call()], on_exhausted="repeat-last")
    replies = [ask(model) for _ in range(4)]
    assert [made.id for reply in replies[1:] for made in reply.tool_calls] == ["call_1", "call_2", "call_3"]
    model.assert_exhausted()


def test_without_any_turn_there_is_nothing_to_repeat() -> None:
    with pytest.raises(ProviderError, match="has 0 turns"):
        ask(ScriptedModel([], on_exhausted="repeat-last"))


def test_requests_are_kept_and_what_is_left_is_counted() -> None:
    model = ScriptedModel(["one", "two", "three"])
    with pytest.raises(AssertionError, match="3 of 3"):
        model.assert_exhausted()
    ask(model)
    assert model.calls == [REQUEST]
    assert model.calls[0] is REQUEST
    with pytest.raises(AssertionError, match="2 of 3"):
        model.assert_exhausted()


@pytest.mark.parametrize(
    ("turn", "says", "advises"),
    [
        (42, "turn 2 is 42", "a turn is a text"),
        (None, "turn 2 is null", "a turn is a text"),
        ({"toolCalls": []}, "unknown key `toolCalls`", "`tool_calls`"),
        ({"txt": "hi"}, "unknown key `txt`", "`text`"),
        ({"calls": []}, "unknown key `calls`", "`tool_calls`"),
        ({"text": ["hi"]}, "`text` is a list", "a text"),
        ({"text": "a", "content": []}, "both `text` and `content`", "keep one"),
        ({"tool_calls": {"name": "a"}}, "`tool_calls` is a mapping", "a list of calls"),
        ({"tool_calls": [{"args": {}}]}, "turn 2, call 1 has no `name`", "name the tool"),
        ({"tool_calls": [{"name": "a", "arguments": {}}]}, "unknown key `arguments`", "`args`"),
        ({"tool_calls": [{"name": "a", "args": [1]}]}, "`args` is a list", "a mapping, or a text"),
        ({"tool_calls": [{"name": "a", "args": {"x": {1}}}]}, "cannot be written as JSON", "as a text"),
        ({"tool_calls": [{"name": "a", "id": 7}]}, "`id` is 7", "a text"),
        ({"tool_calls": [{"name": "a", "type": "function"}]}, "'type' has no meaning", "name, args, id"),
        ({"usage": {"inputTokens": 1}}, "unknown key `inputTokens`", "`input_tokens`"),
        ({"usage": {"input_tokens": 1.5}}, "no whole number", "whole"),
        ({"usage": {"input_tokens": True}}, "is true", "a number"),
        ({"delay": -1}, "`delay` is -1", "0 or more"),
        ({"error": {"message": "x", "state": 500}}, "unknown key `state`", "message, code, status"),
        ({"error": {"status": "500"}}, "`status` is a text", "a number"),
        ({"fails": ["fine"]}, "turn 2, failure 1 does not fail", "`error` or `cut`"),
        ({"chunks": 1.5}, "`chunks` is no whole number", "whole"),
        ({"error": 500}, "`error` is 500", "a message"),
    ],
)
def test_a_wrong_shape_names_the_turn_and_the_likely_key(turn: Any, says: str, advises: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        ScriptedModel(["fine", turn])
    assert says in str(raised.value)
    assert "turn 2" in str(raised.value)
    assert advises in raised.value.hint


def test_what_a_function_returns_is_checked_too() -> None:
    def wrong(request: ModelRequest) -> Any:
        return 7

    with pytest.raises(ConfigurationError, match="what the function of turn 1 returned is 7"):
        ask(ScriptedModel([wrong]))


def test_one_turn_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not a list"):
        ScriptedModel("hello")


def test_an_unknown_way_to_run_out_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="on_exhausted is 'loop'"):
        ScriptedModel(["a"], on_exhausted="loop")  # type: ignore[arg-type]


def test_a_request_costs_the_same_however_long_the_transcript_is() -> None:
    class Untouchable(Log):
        def __getitem__(self, index: int) -> Any:
            raise AssertionError("the transcript was read")

        def slice(self, start: int, stop: int | None = None) -> Any:
            raise AssertionError("the transcript was read")

    model = ScriptedModel([json.dumps({"n": n}) for n in range(3)])
    request = ModelRequest(Messages(Untouchable([{"role": "user", "content": "go"}])))
    assert [ask(model, request).content for _ in range(3)] == ['{"n": 0}', '{"n": 1}', '{"n": 2}']
