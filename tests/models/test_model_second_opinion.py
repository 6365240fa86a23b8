"""The same turns from a second server, by other authors: what one server lets pass, the other may not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from aimock import absent, free_port, wait_until_ready

pytest.importorskip("pydantic_ai")

from lousho_cli import ModelRequest, ModelResponse
from lousho_cli.errors import ProviderError
from lousho_cli.execution.conversation import Messages
from lousho_cli.execution.protocols import CallDelta, TextDelta, ToolSchema
from lousho_cli.providers.models.lookup import find_real_model
from lousho_cli.providers.models.servers import Server

RULES = """\
rules:
  - {name: limited, when: {messages_contain: too often}, respond: {status: 429, error: slow down}}
  - {name: broken, when: {messages_contain: break}, respond: {status: 500, error: out of order}}
  - {name: answer, when: {tool_result_contains: found}, respond: {content: "It is tea, and hot."}}
  - name: call
    when: {messages_contain: look}
    respond: {content: "", tool_calls: [{name: look, arguments: {q: tea}}]}
"""
MODELS = ("openai:gpt-5.6-luna", "local:any", "anthropic:claude-haiku-4-5")
TOOLS = [ToolSchema("look", "looks it up", {"type": "object", "properties": {"q": {"type": "string"}}})]


@pytest.fixture(scope="module")
def fakellm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if find_spec("fakellm") is None:
        absent("no fakellm: pip install fakellm")
    rules = tmp_path_factory.mktemp("fakellm") / "rules.yaml"
    rules.write_text(RULES)
    port = free_port()
    command = [sys.executable, "-m", "fakellm.cli", "serve", "--port", str(port), "--config", str(rules)]
    process = subprocess.Popen(
        command, cwd=Path(rules).parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until_ready(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def model(url: str, name: str) -> Any:
    at = {each: Server(f"{url}/v1") for each in ("openai", "local")}
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    return find_real_model(name, {**at, "anthropic": Server(url)}, keys)


def asking(text: str, *more: dict[str, Any]) -> ModelRequest:
    """The server tells conversations apart by what the user says first."""
    return ModelRequest(Messages.of([{"role": "user", "content": text}, *more]), TOOLS)


@pytest.mark.parametrize("name", MODELS)
def test_a_call_and_its_result_go_there_and_back(fakellm: str, name: str) -> None:
    async def play() -> tuple[ModelResponse, list[Any], ModelResponse]:
        asked = model(fakellm, name)
        said = f"look it up for {name}"
        turn = await asked.generate(asking(said))
        made = json.loads(turn.model_dump_json(by_alias=True, exclude_none=True))
        called = {"toolCallId": turn.tool_calls[0].id, "toolName": "look"}
        result = {"role": "tool", "content": '"found: tea"', **called}
        request = asking(said, {"role": "assistant", **made}, result)
        streamed = [each async for each in asked.stream(request)]
        return turn, streamed, await asked.generate(request)

    turn, (*deltas, told), end = asyncio.run(play())
    assert [json.loads(made.function.arguments) for made in turn.tool_calls] == [{"q": "tea"}]
    assert end.content == told.content == "It is tea, and hot."
    assert "".join(each.text for each in deltas if isinstance(each, TextDelta)) == end.content
    assert end.usage is not None
    assert end.usage.input_tokens > 0


@pytest.mark.parametrize("name", MODELS)
def test_a_streamed_call_is_whole_at_its_end(fakellm: str, name: str) -> None:
    async def play() -> list[Any]:
        return [each async for each in model(fakellm, name).stream(asking(f"look, {name}"))]

    *deltas, turn = asyncio.run(play())
    told = "".join(each.arguments for each in deltas if isinstance(each, CallDelta))
    assert json.loads(told) == json.loads(turn.tool_calls[0].function.arguments) == {"q": "tea"}


# The server forgets to refuse what is to be streamed, as Anthropic's client asks for long answers.
@pytest.mark.parametrize("name", MODELS[:2])
def test_refusals_say_whether_to_ask_again(fakellm: str, name: str) -> None:
    for text, status, said in (("too often", 429, "slow down"), ("break", 500, "out of order")):
        with pytest.raises(ProviderError, match=said) as error:
            asyncio.run(model(fakellm, name).generate(asking(text)))
        assert (error.value.status, error.value.retryable) == (status, True)
