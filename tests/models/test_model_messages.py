"""Stored messages on their way to a provider and back: nothing invalid, nothing lost, nothing half."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from captured import Captured, capturing
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from transcripts import (
    blobs,
    check_chat,
    check_contents,
    check_items,
    check_messages,
    conversations,
    texts,
)

pytest.importorskip("pydantic_ai")

from pydantic_ai.messages import (
    ModelRequest as LibraryRequest,
)
from pydantic_ai.messages import (
    ModelResponse as LibraryResponse,
)
from pydantic_ai.messages import (
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from lousho_cli import ModelRequest, ModelResponse
from lousho_cli.errors import ProviderError
from lousho_cli.execution.conversation import Messages
from lousho_cli.execution.log import Log
from lousho_cli.execution.messages import MessageData
from lousho_cli.execution.protocols import ModelSettings, ToolSchema
from lousho_cli.providers.models.answer import to_answer
from lousho_cli.providers.models.calls import fit_id
from lousho_cli.providers.models.catalog import COMPATIBLE, VENDORS, Ids
from lousho_cli.providers.models.conversation import EARLIER, Conversations
from lousho_cli.providers.models.lookup import find_real_model

KEYS = {f"{name}_API_KEY": "k" for name in ("OPENAI", "ANTHROPIC", "GOOGLE", "MISTRAL", "GROQ")}
EXAMPLES = 12
CHECKS: dict[str, Any] = {
    "anthropic:claude-haiku-4-5": check_messages,
    "google:gemini-3.5-flash-lite": check_contents,
    "openai-responses:gpt-5.6-luna": check_items,
    "openai:gpt-5.6-luna": lambda body: check_chat(body, r"[\w-]{1,40}"),
    "local:any": lambda body: check_chat(body, r"[\w-]{1,40}"),
    "groq:openai/gpt-oss-20b": lambda body: check_chat(body, r"[\w-]{1,40}"),
    "mistral:mistral-small-latest": lambda body: check_chat(body, r"[a-zA-Z0-9]{9}"),
}


@pytest.fixture(scope="module")
def captured() -> Iterator[Captured]:
    with capturing() as server:
        yield server


@pytest.mark.parametrize("name", CHECKS)
def test_every_request_is_one_its_provider_takes(captured: Captured, name: str) -> None:
    """F01, F12, F16, F17, F32: whatever is in a session, what is sent is valid."""
    model = find_real_model(name, captured.servers(), KEYS)
    provider = name.partition(":")[0]

    async def ask(each: list[dict[str, Any]]) -> ModelResponse:
        return await model.generate(ModelRequest(Messages.of(each), session_id=None))

    with asyncio.Runner() as runner:

        @examples(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
        @given(conversations(provider, "another"))
        def check(messages: list[dict[str, Any]]) -> None:
            assert runner.run(ask(messages)).content == "ok"
            CHECKS[name](captured.bodies.pop())

        check()


def opaque(part: Any, *, signature: str | None = None, **more: Any) -> dict[str, Any]:
    return {**part, **more, **({"signature": signature} if signature else {})}


details = st.none() | st.dictionaries(st.sampled_from(["a", "b"]), st.integers() | blobs, min_size=1)
arguments = st.dictionaries(st.sampled_from(["q", "é"]), st.integers() | texts, max_size=2)


@st.composite
def library_parts(draw: st.DrawFn) -> list[ModelResponsePart]:
    """The parts of a turn as a client reads them: what has an id, a signature or details names its issuer."""
    parts: list[ModelResponsePart] = []
    for index in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["text", "thinking", "call"]))
        extra: dict[str, Any] = {"id": draw(st.none() | blobs), "provider_details": draw(details)}
        if any(extra.values()):
            extra["provider_name"] = "issuer"
        if kind == "text":
            parts.append(TextPart(draw(texts), **extra))
        elif kind == "thinking":
            extra["provider_name"] = "issuer"
            parts.append(ThinkingPart(draw(texts), signature=draw(st.none() | blobs), **extra))
        else:
            text = draw(st.booleans())
            given_arguments = draw(arguments)
            sent = json.dumps(given_arguments) if text else given_arguments
            parts.append(ToolCallPart("look", sent, f"call_{index}", **extra))
    return parts


def turn_of(parts: list[ModelResponsePart], provider: str = "anthropic") -> dict[str, Any]:
    """The turn as a session keeps it."""
    response = LibraryResponse(
        parts, provider_name="issuer", model_name="m", canonical_system="issuer-system"
    )
    data = json.loads(to_answer(response, provider).model_dump_json(by_alias=True, exclude_none=True))
    return {"role": "assistant", **data}


def sent_back(turn: dict[str, Any], provider: str = "anthropic") -> LibraryResponse | None:
    """What that provider gets of the turn; None if nothing."""
    log = Log(cast("list[MessageData]", [{"role": "user", "content": "hi"}, turn]))
    messages = Conversations(provider, VENDORS.get(provider, COMPATIBLE)).messages(log, None)
    return next((each for each in messages if isinstance(each, LibraryResponse)), None)


def comparable(part: ModelResponsePart) -> Any:
    assert isinstance(part, TextPart | ThinkingPart | ToolCallPart)
    said: Any = part.args_as_dict() if isinstance(part, ToolCallPart) else part.content
    signature = part.signature if isinstance(part, ThinkingPart) else None
    return part.part_kind, said, part.id, signature, part.provider_name, part.provider_details


@given(library_parts())
def test_f02_what_came_from_a_provider_goes_back_to_it_in_order_and_unchanged(
    parts: list[ModelResponsePart],
) -> None:
    response = sent_back(turn_of(parts))
    kept = [part for part in parts if not _is_blank_text(part)]
    if all(isinstance(part, ThinkingPart) for part in kept):
        # A turn of reasoning alone is no turn to a provider.
        assert response is None
        return
    assert response is not None
    assert [comparable(part) for part in response.parts] == [comparable(part) for part in kept]
    assert (response.provider_name, response.canonical_system) == ("issuer", "issuer-system")


@given(library_parts(), st.sampled_from(["openai", "mistral", "anthropic-proxy"]))
def test_another_provider_gets_text_and_calls_and_nothing_of_the_reasoning(
    parts: list[ModelResponsePart], other: str
) -> None:
    _check_plain(sent_back(turn_of(parts), other), parts)


@given(library_parts(), st.sampled_from(["content", "reasoning", "arguments"]))
def test_f02_a_turn_that_was_changed_loses_its_signed_parts_as_a_whole(
    parts: list[ModelResponsePart], field: str
) -> None:
    turn = turn_of(parts)
    if field != "arguments":
        turn[field] = turn.get(field, "") + "!"
    elif turn.get("toolCalls"):
        turn["toolCalls"][0]["function"]["arguments"] = '{"changed": true}'
    else:
        return
    response = sent_back(turn)
    assert response is None or all(
        not isinstance(part, ThinkingPart) and not part.id and not part.provider_details  # type: ignore[union-attr]
        for part in response.parts
    )


def _check_plain(response: LibraryResponse | None, parts: list[ModelResponsePart]) -> None:
    text = "".join(part.content for part in parts if isinstance(part, TextPart))
    calls = [part.args_as_dict() for part in parts if isinstance(part, ToolCallPart)]
    sent = response.parts if response is not None else []
    assert [part.content for part in sent if isinstance(part, TextPart)] == ([text] if text.strip() else [])
    assert [part.args_as_dict() for part in sent if isinstance(part, ToolCallPart)] == calls
    for part in sent:
        assert isinstance(part, TextPart | ToolCallPart)
        assert part.provider_details is None
        assert part.id is None


def _is_blank_text(part: ModelResponsePart) -> bool:
    return isinstance(part, TextPart) and not part.content.strip() and not part.provider_details


@given(st.text(max_size=80), st.sampled_from([Ids(), Ids(40), Ids(9, "", True)]))
def test_a_call_id_is_fitted_the_same_way_each_time(call_id: str, ids: Ids) -> None:
    fitted = fit_id(call_id, ids)
    assert fitted == fit_id(call_id, ids)
    assert fit_id(fitted, ids) == fitted
    assert fitted
    assert len(fitted) == 9 if ids.exact else len(fitted) <= ids.longest


def test_ids_that_differ_stay_different() -> None:
    ids = Ids(9, "", exact=True)
    assert len({fit_id(f"call_{n}", ids) for n in range(20_000)}) == 20_000


def growing() -> list[dict[str, Any]]:
    """A transcript of thirty steps."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for n in range(30):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "", "toolCalls": [call]})
        messages.append({"role": "tool", "content": f'"{n}"', "toolCallId": f"c{n}", "toolName": "look"})
    return messages


def test_a_growing_transcript_is_translated_once_and_reads_as_if_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages = cast("list[MessageData]", growing())
    known = Conversations("anthropic", VENDORS["anthropic"])
    looked_at: list[int] = []
    add = known._add

    def counting(*given: Any) -> None:
        looked_at.append(1)
        add(*given)

    monkeypatch.setattr(known, "_add", counting)
    log = Log(messages[:1])
    for message in messages[1:]:
        log = log.extended([message])
        told = known.messages(log, "s")
        anew = Conversations("anthropic", VENDORS["anthropic"]).messages(log, None)
        assert [_shape(each) for each in told] == [_shape(each) for each in anew]
    assert len(looked_at) == len(messages)


def test_another_log_of_the_same_session_is_translated_anew() -> None:
    known = Conversations("anthropic", VENDORS["anthropic"])
    messages = cast("list[MessageData]", growing())
    known.messages(Log(messages), "s")
    changed = cast("list[MessageData]", [{"role": "user", "content": "another"}, *messages[1:]])
    (first, *_) = known.messages(Log(changed), "s")
    assert _shape(first) == ["another"]


def _shape(message: Any) -> list[Any]:
    return [
        part.content if isinstance(part, UserPromptPart | ToolReturnPart | TextPart) else part.tool_call_id
        for part in message.parts
    ]


def test_f32_a_conversation_that_begins_with_an_answer_begins_with_the_user_all_the_same() -> None:
    log = Log(
        cast("list[MessageData]", [{"role": "assistant", "content": "so"}, {"role": "user", "content": "?"}])
    )
    first, *_ = Conversations("anthropic", VENDORS["anthropic"]).messages(log, None)
    assert isinstance(first, LibraryRequest)
    assert _shape(first) == [EARLIER]


def test_results_say_what_they_are(captured: Captured) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turns: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for n, result in enumerate(['"text\\nlines"', '""', "0", '"123"', '{"a": 1}']):
        made = {**call, "id": f"c{n}"}
        turns.append({"role": "assistant", "content": "", "toolCalls": [made]})
        turns.append({"role": "tool", "content": result, "toolCallId": f"c{n}", "toolName": "look"})
    model = find_real_model("local:any", captured.servers(), KEYS)
    asyncio.run(model.generate(ModelRequest(Messages.of(turns))))
    sent = [each["content"] for each in captured.bodies.pop()["messages"] if each["role"] == "tool"]
    assert sent == ["text\nlines", "(empty result)", "0", "123", '{"a": 1}']


def test_f02_signed_blocks_are_the_same_on_the_wire(captured: Captured) -> None:
    issued: dict[str, Any] = {"provider_name": "anthropic"}
    turn = LibraryResponse(
        [
            ThinkingPart("step one ...", signature="SIG-A", **issued),
            TextPart("ok"),
            ToolCallPart("search", {"q": "x"}, "t1"),
            ThinkingPart("", signature="SIG-B", **issued),
            ThinkingPart("", signature="OPAQUE", id="redacted_thinking", **issued),
        ],
        provider_name="anthropic",
        model_name="claude-haiku-4-5",
    )
    data = json.loads(to_answer(turn, "anthropic").model_dump_json(by_alias=True, exclude_none=True))
    result = {"role": "tool", "content": '{"error": "no"}', "toolCallId": "t1", "toolName": "search"}
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", **data}, {**result, "isError": True}]
    model = find_real_model("anthropic:claude-haiku-4-5", captured.servers(), KEYS)
    asyncio.run(model.generate(ModelRequest(Messages.of(messages))))
    _, assistant, user = captured.bodies.pop()["messages"]
    assert assistant["content"] == [
        {"type": "thinking", "thinking": "step one ...", "signature": "SIG-A"},
        {"type": "text", "text": "ok"},
        {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "x"}},
        {"type": "thinking", "thinking": "", "signature": "SIG-B"},
        {"type": "redacted_thinking", "data": "OPAQUE"},
    ]
    assert [(block["tool_use_id"], block["is_error"]) for block in user["content"]] == [("t1", True)]


@pytest.mark.parametrize("url", ["data:image/png;base64,iVBORw0KGgo=", "https://example.com/cat.png"])
def test_images_go_as_images(captured: Captured, url: str) -> None:
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    request = ModelRequest(Messages.of([{"role": "user", "content": parts}]))
    asyncio.run(find_real_model("local:any", captured.servers(), KEYS).generate(request))
    (message,) = captured.bodies.pop()["messages"]
    assert [part["type"] for part in message["content"]] == ["text", "image_url"]
    assert message["content"][1]["image_url"]["url"] == url
    asyncio.run(find_real_model("anthropic:claude-haiku-4-5", captured.servers(), KEYS).generate(request))
    (message,) = captured.bodies.pop()["messages"]
    assert [block["type"] for block in message["content"]] == ["text", "image"]


def test_a_file_that_cannot_be_read_is_told_and_not_sent(captured: Captured) -> None:
    parts = [{"type": "file", "file": {"file_data": "data:application/pdf;base64,!"}}]
    model = find_real_model("local:any", captured.servers(), KEYS)
    with pytest.raises(ProviderError, match="no valid base64") as error:
        asyncio.run(model.generate(ModelRequest(Messages.of([{"role": "user", "content": parts}]))))
    assert not error.value.retryable
    assert captured.bodies == []


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PARAMETERS = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOLS = [ToolSchema("look", "looks", PARAMETERS), ToolSchema("find", "finds", PARAMETERS)]


@pytest.mark.filterwarnings("ignore:Sampling parameters")
@pytest.mark.parametrize("name", CHECKS)
def test_settings_and_the_shape_of_the_answer_reach_every_provider(captured: Captured, name: str) -> None:
    """What a provider does not know is left out."""
    settings = ModelSettings(
        temperature=0.5,
        max_tokens=77,
        tool_choice="look",
        parallel_tool_calls=False,
        stop=("END",),
        seed=3,
        timeout=60,
    )
    messages = Messages.of([{"role": "system", "content": "be brief"}, {"role": "user", "content": "go"}])
    request = ModelRequest(messages, TOOLS, settings=settings, output=SCHEMA)
    answer = asyncio.run(find_real_model(name, captured.servers(), KEYS).generate(request))
    assert answer.content == "ok"
    body = captured.bodies.pop()
    sent = json.dumps(body)
    assert "77" in sent
    assert "be brief" in sent
    assert "integer" in sent
    if name.startswith("local"):
        assert (body["temperature"], body["seed"], body["stop"]) == (0.5, 3, ["END"])
        assert body["parallel_tool_calls"] is False
        assert body["tool_choice"] == {"type": "function", "function": {"name": "look"}}


def test_further_fields_of_the_body_are_sent_as_they_are(captured: Captured) -> None:
    settings = ModelSettings(extra_body={"top_k": 5, "cache_prompt": True})
    request = ModelRequest(Messages.of([{"role": "user", "content": "go"}]), settings=settings)
    asyncio.run(find_real_model("local:any", captured.servers(), KEYS).generate(request))
    body = captured.bodies.pop()
    assert (body["top_k"], body["cache_prompt"]) == (5, True)


def test_another_model_of_the_same_provider_can_be_asked_for(captured: Captured) -> None:
    model = find_real_model("local:any", captured.servers(), KEYS)
    said = Messages.of([{"role": "user", "content": "go"}])
    for asked, sent in [("local:other", "other"), ("openai:other", "any"), (None, "any")]:
        asyncio.run(model.generate(ModelRequest(said, model=asked)))
        assert captured.bodies.pop()["model"] == sent


def priced(model: str, provider: str, **usage: int) -> dict[str, Any]:
    counted_there = RequestUsage()
    for name, value in usage.items():
        setattr(counted_there, name, value)
    issued: dict[str, Any] = {"model_name": model, "provider_name": provider}
    turn = LibraryResponse([TextPart("x")], usage=counted_there, **issued)
    counted = to_answer(turn, "any").usage
    assert counted is not None
    return counted.model_dump(by_alias=True, exclude_none=True)


def test_a_turn_says_its_tokens_and_what_it_cost() -> None:
    usage = priced(
        "claude-haiku-4-5",
        "anthropic",
        input_tokens=1_000_000,
        output_tokens=10,
        cache_read_tokens=900_000,
        cache_write_tokens=50_000,
        output_reasoning_tokens=4,
    )
    cost = usage.pop("costUsd")
    full = priced("claude-haiku-4-5", "anthropic", input_tokens=1_000_000, output_tokens=10)["costUsd"]
    assert 0 < cost < full
    assert usage == {
        "inputTokens": 1_000_000,
        "outputTokens": 10,
        "totalTokens": 1_000_010,
        "modelCalls": 1,
        "cachedInputTokens": 900_000,
        "cacheWriteTokens": 50_000,
        "reasoningTokens": 4,
    }


@pytest.mark.parametrize(
    ("model", "provider", "tokens"),
    [("my-own-model", "local", 5), ("claude-haiku-4-5", "anthropic", 0), ("no-such-claude", "anthropic", 5)],
)
def test_a_cost_that_is_not_known_is_left_out_and_never_nothing(
    model: str, provider: str, tokens: int
) -> None:
    assert "costUsd" not in priced(model, provider, input_tokens=tokens)
