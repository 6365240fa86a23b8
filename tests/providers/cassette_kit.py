"""Agents and requests for the tests of cassettes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lousho_cli import ModelRequest, ToolSchema, create_agent, tool
from lousho_cli.agents.create import DurableAgent
from lousho_cli.execution.conversation import Messages
from lousho_cli.execution.protocols import ModelSettings, Provider
from lousho_cli.providers.cassette import CassetteRun
from lousho_cli.providers.cassette_model import Mode, Tape

LOOK = {"tool_calls": [{"name": "look", "args": {"q": "tea"}}]}


@tool
def look(q: str) -> dict[str, str]:
    """Look something up."""
    return {"found": q}


def agent_of(provider: Provider) -> DurableAgent:
    return create_agent(provider=provider, tools=[look], instructions="Be kind.")


class NoModel:
    """A model that must not be asked."""

    async def generate(self, request: ModelRequest) -> Mapping[str, Any]:
        raise AssertionError("a live model was asked")


def request_of(
    *messages: Mapping[str, Any],
    tools: Sequence[ToolSchema] = (),
    settings: ModelSettings | None = None,
    **more: Any,
) -> ModelRequest:
    return ModelRequest(Messages.of(list(messages)), tools, settings=settings or ModelSettings(), **more)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def called(call_id: str, arguments: str = "{}", text: str = "", **more: Any) -> dict[str, Any]:
    """An assistant turn that calls `look`."""
    function = {"name": "look", "arguments": arguments}
    return {
        "role": "assistant",
        "content": text,
        "toolCalls": [{"id": call_id, "type": "function", "function": function}],
        **more,
    }


def result(call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "content": content, "toolCallId": call_id, "toolName": "look"}


def key_of(request: ModelRequest, volatile: Sequence[str] = ()) -> str:
    return Tape(CassetteRun(), "auto", volatile=volatile).read(request).key


def taped(provider: Provider | None, run: CassetteRun, mode: Mode) -> DurableAgent:
    return agent_of(Tape(run, mode).model(provider))
