"""A model on a cassette: what is recorded, what is played, and that a replay never asks a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cassette_kit import LOOK, NoModel, agent_of, look, request_of, taped, user

from lousho_cli import (
    ConfigurationError,
    MemoryStore,
    ModelRequest,
    ModelResponse,
    ProviderError,
    create_agent,
)
from lousho_cli.errors import CassetteError
from lousho_cli.execution.protocols import ModelDelta, TextDelta
from lousho_cli.providers.cassette import Cassette, CassetteRun
from lousho_cli.providers.cassette_model import Tape
from lousho_cli.testing import ScriptedModel


def recorded(*turns: Any) -> CassetteRun:
    run = CassetteRun()
    taped(ScriptedModel(list(turns) or [LOOK, "Here."]), run, "record").send_sync("Tea?")
    return run


def miss(run: CassetteRun, message: str) -> str:
    with pytest.raises(CassetteError) as caught:
        taped(NoModel(), run, "replay").send_sync(message)
    assert caught.value.code == "LOUSHO_CASSETTE_MISS"
    return str(caught.value)


def test_a_replay_answers_as_the_model_did_and_asks_none() -> None:
    run = recorded({**LOOK, "usage": {"input_tokens": 3, "output_tokens": 4}}, "Here.")
    played = taped(NoModel(), run, "replay").send_sync("Tea?")
    assert played.text == "Here."
    assert [call.function.arguments for call in played.tool_calls] == ['{"q": "tea"}']
    assert (played.usage.input_tokens, played.usage.output_tokens) == (3, 4)
    assert taped(None, run, "replay").send_sync("Tea?").messages == played.messages


def test_what_lousho_does_not_interpret_comes_back_as_it_was(tmp_path: Path) -> None:
    opaque = [{"type": "thinking", "thinking": "", "signature": "sk-abcdefghijklmnop1234", "x": None}]
    run = recorded(
        {**LOOK, "reasoning": opaque, "later": None}, {"content": [{"type": "text", "text": "Hi"}]}
    )
    Cassette([run]).save(tmp_path / "tea.json")
    loaded = Cassette.load(tmp_path / "tea.json")
    assert loaded is not None
    turn = taped(None, loaded.runs[0], "replay").send_sync("Tea?").messages[2]
    assert turn["reasoning"] == opaque
    assert "later" in (turn.model_extra or {})


def test_a_miss_names_the_first_difference_to_the_closest_request() -> None:
    assert miss(recorded(), "Coffee?").endswith(
        'closest is call 1 of 2: messages[1].content was "Tea?", now it is "Coffee?"'
    )


def test_a_miss_further_on_is_compared_with_the_call_that_came_as_far() -> None:
    run = recorded()
    run.calls[1].request.messages[1]["content"]["found"] = "coffee"
    run.calls[1].key = "0" * 64
    assert miss(run, "Tea?").endswith(
        'closest is call 2 of 2: messages[3].content.found was "coffee", now it is "tea"'
    )


def test_a_miss_by_tools_or_settings_says_so() -> None:
    with pytest.raises(CassetteError, match=r"tools\.look was .*\"object\".*, now it is nothing"):
        create_agent(provider=Tape(recorded(), "replay").model(None), instructions="Be kind.").send_sync(
            "Tea?"
        )


def test_an_empty_cassette_says_that_it_is_empty() -> None:
    assert "holds no answers" in miss(CassetteRun(), "Tea?")


def test_each_answer_is_given_once_in_the_order_recorded() -> None:
    run = CassetteRun()
    model = ScriptedModel(["One.", "Two."])
    recording = taped(model, run, "record")
    assert [recording.send_sync("Tea?").text for _ in range(2)] == ["One.", "Two."]
    playing = taped(None, run, "replay")
    assert [playing.send_sync("Tea?").text for _ in range(2)] == ["One.", "Two."]
    with pytest.raises(CassetteError, match="was recorded 2x and is asked for once more"):
        playing.send_sync("Tea?")


def test_auto_plays_what_fits_and_records_what_is_missing() -> None:
    run = recorded()
    model = ScriptedModel(["A cup."])
    agent = taped(model, run, "auto")
    assert [agent.send_sync(text).text for text in ("Tea?", "Coffee?")] == ["Here.", "A cup."]
    assert len(model.calls) == 1
    assert len(run.calls) == 3


def test_auto_without_a_model_says_what_is_missing() -> None:
    with pytest.raises(CassetteError, match="holds no answers"):
        taped(None, CassetteRun(), "auto").send_sync("Tea?")


def test_recording_again_takes_the_place_of_the_same_request() -> None:
    run = recorded()
    taped(ScriptedModel([LOOK, "There."]), run, "record").send_sync("Tea?")
    assert len(run.calls) == 2
    assert taped(None, run, "replay").send_sync("Tea?").text == "There."


def test_recording_without_a_model_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no model to record") as caught:
        taped(None, CassetteRun(), "record")
    assert caught.value.code == "LOUSHO_CONFIG_MISSING_PROVIDER"


@pytest.mark.parametrize(
    "turn",
    [
        {"error": "overloaded"},
        {"text": "half", "finish_reason": "error"},
        {"tool_calls": [{"name": "look", "args": '{"q": "te'}], "finish_reason": "length"},
    ],
)
def test_a_turn_that_failed_is_not_recorded(turn: dict[str, Any]) -> None:
    run = recorded()
    with pytest.raises(ProviderError):
        taped(ScriptedModel([LOOK, turn]), run, "record").send_sync("Coffee?")
    assert len(run.calls) == 3
    assert taped(None, run, "replay").send_sync("Tea?").text == "Here."


def test_an_answer_that_is_no_turn_is_the_models_error_and_not_recorded() -> None:
    class Odd:
        async def generate(self, request: ModelRequest) -> dict[str, Any]:
            return {"hello": "world"}

    run = CassetteRun()
    with pytest.raises(ProviderError, match="no turn"):
        taped(Odd(), run, "record").send_sync("Tea?")
    assert run.calls == []


def test_a_changed_request_does_not_pass_for_the_recorded_one() -> None:
    run = recorded()
    run.calls[0].request.messages[1]["content"] = "Coffee?"
    with pytest.raises(CassetteError, match=r"key of call 1 .* has \"Coffee\?\" at messages\[1\]\.content"):
        taped(None, run, "replay").send_sync("Tea?")


def test_calls_are_kept_in_the_order_of_asking() -> None:
    class Slow:
        """Answers the first request last."""

        def __init__(self) -> None:
            self.second = asyncio.Event()

        async def generate(self, request: ModelRequest) -> ModelResponse:
            text = str(request.messages[0].content)
            if text == "one":
                await self.second.wait()
            self.second.set()
            return ModelResponse(content=text)

    async def both(run: CassetteRun) -> None:
        model = Tape(run, "record").model(Slow())
        await asyncio.gather(*(model.generate(request_of(user(text))) for text in ("one", "two")))

    run = CassetteRun()
    asyncio.run(both(run))
    assert [(call.response or {})["content"] for call in run.calls] == ["one", "two"]


def test_a_resume_gets_the_turn_that_its_transcript_is_at() -> None:
    run = recorded()
    store = MemoryStore()

    class DiesAfterOne:
        """A process that ends when the model has answered once."""

        def __init__(self) -> None:
            self.live = Tape(run, "replay").model(None)
            self.asked = 0

        async def generate(self, request: ModelRequest) -> ModelResponse | Mapping[str, Any]:
            self.asked += 1
            if self.asked == 2:
                raise ProviderError("gone")
            return await self.live.generate(request)

    first = create_agent(provider=DiesAfterOne(), tools=[look], instructions="Be kind.", store=store)
    with pytest.raises(ProviderError):
        first.send_sync("Tea?", session_id="s")
    second = create_agent(
        provider=Tape(run, "replay").model(None), tools=[look], instructions="Be kind.", store=store
    )
    resumed = second.resume_sync("s")
    assert resumed is not None
    assert (resumed.text, resumed.steps) == ("Here.", 2)


class Streaming:
    """A model that tells its turn in two pieces."""

    def __init__(self, cut: bool = False) -> None:
        self.cut = cut

    async def generate(self, request: ModelRequest) -> ModelResponse:
        raise AssertionError("it is to be streamed")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelResponse]:
        yield TextDelta("Hel")
        yield TextDelta("lo")
        if not self.cut:
            yield ModelResponse(content="Hello")


async def pieces_of(tape: Tape, provider: Any) -> list[ModelDelta | ModelResponse]:
    return [piece async for piece in tape.model(provider).stream(request_of(user("Hi")))]


def test_a_stream_is_passed_on_and_recorded_and_played_as_one_piece() -> None:
    run = CassetteRun()
    whole = ModelResponse(content="Hello")
    assert asyncio.run(pieces_of(Tape(run, "record"), Streaming())) == [
        *(TextDelta("Hel"), TextDelta("lo"), whole)
    ]
    assert asyncio.run(pieces_of(Tape(run, "replay"), None)) == [TextDelta("Hello"), whole]


def test_a_stream_that_is_cut_is_not_recorded() -> None:
    run = CassetteRun()
    assert asyncio.run(pieces_of(Tape(run, "record"), Streaming(cut=True))) == [
        TextDelta("Hel"),
        TextDelta("lo"),
    ]
    assert run.calls == []


def test_a_model_that_cannot_stream_is_asked_whole() -> None:
    class Whole:
        async def generate(self, request: ModelRequest) -> dict[str, Any]:
            return {"content": "Hi."}

    assert asyncio.run(pieces_of(Tape(CassetteRun(), "record"), Whole())) == [
        *(TextDelta("Hi."), ModelResponse(content="Hi."))
    ]


def test_the_models_id_is_the_recorded_one_in_a_replay() -> None:
    run = recorded()
    assert Tape(run, "replay").model(None).model == "scripted"
    assert Tape(run, "record").model(ScriptedModel([])).model == "scripted"
    assert Tape(CassetteRun(), "auto").model(None).model == "cassette"


def test_sub_agents_are_on_the_same_cassette() -> None:
    delegate = {"tool_calls": [{"name": "delegate_clerk", "args": {"input": "Look."}}]}

    def lead(tape: Tape, lead_model: Any, clerk_model: Any) -> Any:
        clerk = create_agent(name="clerk", provider=tape.model(clerk_model), instructions="Look it up.")
        return create_agent(provider=tape.model(lead_model), subagents=[clerk])

    run = CassetteRun()
    lead(Tape(run, "record"), ScriptedModel([delegate, "Done."]), ScriptedModel(["Found."])).send_sync("Go")
    played = lead(Tape(run, "replay"), None, None).send_sync("Go")
    assert played.text == "Done."
    assert played.messages[2].content == '"Found."'


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'rewind'"):
        Tape(CassetteRun(), "rewind")  # type: ignore[arg-type]


def test_the_agent_of_the_kit_finds_tea() -> None:
    assert agent_of(ScriptedModel([LOOK, "Here."])).send_sync("Tea?").messages[3].content == '{"found":"tea"}'
