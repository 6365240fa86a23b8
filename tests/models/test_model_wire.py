"""Real clients of the providers against a server that speaks their interfaces."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from aimock import KEY, Aimock, aimock_server, call, roles
from captured import KEY_VARIABLE, Replay, replaying

pytest.importorskip("pydantic_ai")

from lousho_cli import Agent, AgentExecutor, FileStore, ModelRequest, ModelResponse, tool
from lousho_cli.errors import ConfigurationError, ProviderError
from lousho_cli.execution.conversation import Messages
from lousho_cli.execution.protocols import CallDelta, ReasoningDelta, TextDelta, ToolSchema
from lousho_cli.execution.triggers import watching
from lousho_cli.providers.models.lookup import find_real_model
from lousho_cli.providers.models.model import RealModel
from lousho_cli.providers.models.servers import Server

MODELS = (
    "openai:gpt-5.6-luna",
    "openai-responses:gpt-5.6-luna",
    "anthropic:claude-haiku-4-5",
    "google:gemini-3.5-flash-lite",
    "mistral:mistral-small-latest",
    "groq:openai/gpt-oss-20b",
    "ollama:qwen3",
    "local:any",
)
STREAMS_BADLY = "mistral:mistral-small-latest"
"""The server's streamed calls lack a field that this client insists on."""
SILENT_ABOUT_REASONING = ("mistral", "groq")
TOOLS = [ToolSchema("look", "looks it up", {"type": "object", "properties": {"q": {"type": "string"}}})]
# The server names an end of Gemini's that Google does not know.
pytestmark = pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid FinishReason")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with aimock_server() as url:
        yield url


@pytest.fixture
def aimock(server: str, monkeypatch: pytest.MonkeyPatch) -> Aimock:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    return Aimock(server)


def model(aimock: Aimock, name: str) -> RealModel:
    return find_real_model(name, aimock.servers())


def asking(aimock: Aimock, *more: dict[str, Any]) -> ModelRequest:
    said = [{"role": "system", "content": "be brief"}, {"role": "user", "content": aimock.prompt}, *more]
    return ModelRequest(Messages.of(said), TOOLS, session_id="s")


def ask(model: RealModel, *requests: ModelRequest) -> list[ModelResponse]:
    async def each() -> list[ModelResponse]:
        return [await model.generate(request) for request in requests]

    return asyncio.run(each())


def stream(model: RealModel, request: ModelRequest) -> list[Any]:
    async def collect() -> list[Any]:
        return [each async for each in model.stream(request)]

    return asyncio.run(collect())


def stored(answer: ModelResponse) -> dict[str, Any]:
    """A turn as a session keeps it."""
    data = json.loads(answer.model_dump_json(by_alias=True, exclude_none=True))
    return {"role": "assistant", **data}


def result_of(answer: ModelResponse, content: str = '"found"') -> dict[str, Any]:
    made = answer.tool_calls[0]
    return {"role": "tool", "content": content, "toolCallId": made.id, "toolName": made.name}


@pytest.mark.parametrize("name", MODELS)
def test_a_turn_with_reasoning_text_and_a_call_goes_there_and_back(aimock: Aimock, name: str) -> None:
    aimock.replies(
        {"content": "Let me see.", "reasoning": "hm, look", "toolCalls": [call("look", {"q": "tea"})]},
        {"content": "Tea."},
    )
    asked = model(aimock, name)
    (turn,) = ask(asked, asking(aimock))
    assert turn.content == "Let me see."
    assert [(made.name, json.loads(made.function.arguments)) for made in turn.tool_calls] == [
        ("look", {"q": "tea"})
    ]
    if not name.startswith(SILENT_ABOUT_REASONING):
        assert (turn.model_extra or {})["reasoning"] == "hm, look"
    (end,) = ask(asked, asking(aimock, stored(turn), result_of(turn)))
    assert (end.content, end.tool_calls, end.finish_reason) == ("Tea.", [], "stop")
    first, second = aimock.requests()
    assert [role for role in roles(first) if role != "developer"] == ["system", "user"]
    assert roles(second)[-3:] == ["user", "assistant", "tool"]
    sent, result = second["messages"][-2:]
    assert [made["id"] for made in sent["tool_calls"]] == [result["tool_call_id"]]


@pytest.mark.parametrize("name", [name for name in MODELS if name != STREAMS_BADLY])
def test_a_stream_tells_the_turn_in_pieces_and_whole_at_the_end(aimock: Aimock, name: str) -> None:
    aimock.replies(
        {"content": "Once upon a time", "reasoning": "a tale", "toolCalls": [call("look", {"q": "tea"})]},
        chunkSize=5,
    )
    *deltas, turn = stream(model(aimock, name), asking(aimock))
    assert isinstance(turn, ModelResponse)
    assert "".join(each.text for each in deltas if isinstance(each, TextDelta)) == turn.content
    calls = [each for each in deltas if isinstance(each, CallDelta)]
    assert "".join(each.name for each in calls) == "look"
    assert json.loads("".join(each.arguments for each in calls)) == {"q": "tea"}
    thoughts = "".join(each.text for each in deltas if isinstance(each, ReasoningDelta))
    assert thoughts == (turn.model_extra or {}).get("reasoning", "")
    assert turn.content == "Once upon a time"


STREAMING = {
    "openai:gpt-5.6-luna": "/v1/chat/completions",
    "openai-responses:gpt-5.6-luna": "/v1/responses",
    "anthropic:claude-haiku-4-5": "/v1/messages",
    "google:gemini-3.5-flash-lite": "/v1beta/models/gemini-3.5-flash-lite:streamGenerateContent?alt=sse",
}


@pytest.mark.parametrize("name", STREAMING)
def test_a_stream_that_ends_behind_any_event_leaves_no_turn_or_the_whole_one(
    aimock: Aimock, name: str
) -> None:
    """A server that goes away closes its connection like one that is done."""
    aimock.replies(
        {"content": "Once upon a time", "toolCalls": [call("look", {"q": "a long question"}, "call_1")]},
        chunkSize=6,
    )
    events = aimock.events(STREAMING[name])

    async def cut_behind(replay: Replay, kept: int) -> ModelResponse | ProviderError:
        replay.body = b"".join(events[:kept])
        try:
            *_, turn = [each async for each in asked.stream(asking(aimock))]
        except ProviderError as error:
            return error
        assert isinstance(turn, ModelResponse)
        return turn

    with replaying() as replay, asyncio.Runner() as runner:
        asked = find_real_model(name, replay.servers())
        ends = [runner.run(cut_behind(replay, kept)) for kept in range(len(events) + 1)]
    failed = [each for each in ends if isinstance(each, ProviderError)]
    turns = [each for each in ends if isinstance(each, ModelResponse)]
    assert all(error.retryable for error in failed)
    assert len(failed) > len(events) // 2
    # What comes behind the end of a turn makes no difference, so all cuts before it fail, and none after it.
    assert ends == [*failed, *turns]
    assert turns
    for turn in turns:
        assert turn.content == "Once upon a time"
        assert [json.loads(made.function.arguments) for made in turn.tool_calls] == [{"q": "a long question"}]


@pytest.mark.parametrize("name", STREAMING)
def test_a_stream_whose_connection_breaks_leaves_no_turn(aimock: Aimock, name: str) -> None:
    aimock.replies({"content": "Once upon a time there was"}, chunkSize=4, truncateAfterChunks=3)
    with pytest.raises(ProviderError) as error:
        stream(model(aimock, name), asking(aimock))
    assert error.value.retryable
    assert len(aimock.requests()) == 1


REFUSALS = [
    (429, "LOUSHO_PROVIDER_RATE_LIMITED", True),
    (401, "LOUSHO_PROVIDER_KEY_REFUSED", False),
    (400, "LOUSHO_PROVIDER_REQUEST_FAILED", False),
    (404, "LOUSHO_PROVIDER_MODEL_NOT_FOUND", False),
    (500, "LOUSHO_PROVIDER_REQUEST_FAILED", True),
    (529, "LOUSHO_PROVIDER_REQUEST_FAILED", True),
]


@pytest.mark.parametrize(
    ("name", "status", "code", "retryable"),
    [
        *[(name, *refusal) for name in MODELS for refusal in REFUSALS[:2]],
        *[(name, *refusal) for name in (MODELS[0], MODELS[2]) for refusal in REFUSALS[2:]],
    ],
)
def test_a_refusal_says_whether_asking_again_may_help(
    aimock: Aimock, name: str, status: int, code: str, retryable: bool
) -> None:
    aimock.fails(status, f"not for {KEY}")
    with pytest.raises(ProviderError) as error:
        ask(model(aimock, name), asking(aimock))
    raised = error.value
    assert (raised.status, raised.code, raised.retryable) == (status, code, retryable)
    assert "not for ***" in str(raised)
    assert KEY not in str(raised)
    # The client itself tried once: each further attempt is the engine's.
    assert len(aimock.requests()) == 1


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        *[(name, "malformedRate") for name in MODELS],
        *[(name, rate) for name in (MODELS[0], MODELS[2]) for rate in ("disconnectRate", "dropRate")],
    ],
)
def test_a_broken_answer_is_no_turn_and_may_be_asked_for_again(aimock: Aimock, name: str, rate: str) -> None:
    aimock.replies({"content": "never seen"})
    aimock.chaos(**{rate: 1})
    with pytest.raises(ProviderError) as error:
        ask(model(aimock, name), asking(aimock))
    assert error.value.retryable
    aimock.calm()
    assert [each.content for each in ask(model(aimock, name), asking(aimock))] == ["never seen"]


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA0123456789")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.mark.usefixtures("aws")
def test_bedrock_is_asked_once_as_well(aimock: Aimock) -> None:
    model = find_real_model("bedrock:us.amazon.nova-lite-v1:0", {"bedrock": Server(aimock.url)})
    aimock.replies(
        {"content": "Let me see.", "toolCalls": [call("look", {"q": "tea"})]},
        {"error": {"message": "busy"}, "status": 429},
    )
    (turn,) = ask(model, asking(aimock))
    assert turn.content == "Let me see."
    assert [made.name for made in turn.tool_calls] == ["look"]
    with pytest.raises(ProviderError) as error:
        ask(model, asking(aimock, stored(turn), result_of(turn)))
    assert (error.value.status, error.value.retryable) == (429, True)
    # This client takes no header for the test's scope, so its requests are told by what they say.
    assert len(aimock.requests(scoped=False)) == 2


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (
            ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
            "AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID is not",
        ),
        (("AWS_SECRET_ACCESS_KEY",), "AWS_SECRET_ACCESS_KEY is not set"),
        (("AWS_REGION",), "needs a region"),
    ],
)
def test_bedrock_without_credentials_or_a_region_says_so(
    aimock: Aimock, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], said: str
) -> None:
    for variable in missing:
        monkeypatch.delenv(variable)
    with pytest.raises(ConfigurationError, match=said):
        ask(find_real_model("bedrock:any", {"bedrock": Server(aimock.url)}), asking(aimock))


def test_a_rate_limit_says_how_long_to_wait(aimock: Aimock) -> None:
    aimock.replies({"content": "later"})
    aimock.chaos(rateLimitRate=1)
    for name in ("openai:gpt-5.6-luna", "anthropic:claude-haiku-4-5"):
        with pytest.raises(ProviderError) as error:
            ask(model(aimock, name), asking(aimock))
        assert error.value.retry_after
        assert error.value.retry_after > 0


def test_a_server_that_is_not_there_may_be_asked_again(aimock: Aimock) -> None:
    gone = Aimock("http://127.0.0.1:1")
    for name in ("local:any", "anthropic:claude-haiku-4-5", "groq:any"):
        with pytest.raises(ProviderError) as error:
            ask(find_real_model(name, gone.servers()), asking(aimock))
        assert error.value.retryable


def test_a_session_goes_on_at_another_provider_and_comes_back(aimock: Aimock) -> None:
    aimock.replies(
        {"content": "one", "reasoning": "private", "toolCalls": [call("look", {"q": "tea"})]},
        {"content": "two"},
        {"content": "three"},
    )
    claude, local = model(aimock, "anthropic:claude-haiku-4-5"), model(aimock, "local:any")
    (first,) = ask(claude, asking(aimock))
    said = [stored(first), result_of(first)]
    (second,) = ask(local, asking(aimock, *said))
    said += [stored(second), {"role": "user", "content": aimock.prompt}]
    (third,) = ask(claude, asking(aimock, *said))
    assert [first.content, second.content, third.content] == ["one", "two", "three"]
    to_local, back = aimock.requests()[1:]
    assert "private" not in json.dumps(to_local)
    assert "private" in json.dumps(back) or _kept_by(back)


def _kept_by(request: dict[str, Any]) -> bool:
    """The journal shows Anthropic's blocks without their reasoning; the order of what is left still tells."""
    return roles(request)[-4:] == ["assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize("name", ["openai:gpt-5.6-luna", "anthropic:claude-haiku-4-5"])
def test_after_a_kill_between_answer_and_tool_the_model_is_not_asked_again(
    aimock: Aimock, name: str, tmp_path: Any
) -> None:
    aimock.replies({"toolCalls": [call("look", {"q": "tea"}, "call_1")]}, {"content": "Tea."})
    ran: list[str] = []

    @tool
    def look(q: str) -> str:
        """Look it up."""
        ran.append(q)
        return "found"

    agent = Agent("a", "be brief", [look])

    def run(message: str | None) -> Any:
        store = FileStore(tmp_path / ".lousho")
        return AgentExecutor.execute_sync(
            agent=agent,
            input=message,
            provider=model(aimock, name),
            session_id="s",
            checkpoint_store=store.checkpoints,
            approval_store=store.approvals,
        )

    class Killed(BaseException):
        pass

    def die(point: str) -> None:
        if point == "call.starting":
            raise Killed

    with watching(die), pytest.raises(Killed):
        run(aimock.prompt)
    assert (len(aimock.requests()), ran) == (1, [])
    assert run(None).text == "Tea."
    assert ran == ["tea"]
    first, second = aimock.requests()
    assert roles(first)[-1:] == ["user"]
    assert roles(second)[-3:] == ["user", "assistant", "tool"]
