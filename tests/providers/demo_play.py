"""A loop that stands in for the engine: ask the model, run the tools it asks for, ask again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lousho_cli.execution.cancel import Cancel
from lousho_cli.execution.conversation import Messages
from lousho_cli.execution.log import Log
from lousho_cli.execution.messages import CallData, MessageData, calls_of
from lousho_cli.execution.protocols import ModelRequest, ToolSchema
from lousho_cli.execution.records import ModelResponse
from lousho_cli.execution.tools import Tool, ToolContext
from lousho_cli.providers.demo import DemoModel

Run = Callable[[CallData], Any]
MOST_TURNS = 5
"""Model turns after which a wish counts as a loop without an end."""


class Failed(Exception):
    """Raised by a tool of these tests to give the error result that the engine would record."""

    def __init__(self, error: str, kind: str, note: str | None = None) -> None:
        super().__init__(error)
        self.result = {"error": error, "kind": kind} | ({"note": note} if note else {})


def schema(name: str, **parameters: str) -> ToolSchema:
    """A tool as the model sees it; `parameters` are names with JSON types."""
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    return ToolSchema(name, f"{name}.", {"type": "object", "properties": properties})


def ask(log: Log, schemas: Iterable[ToolSchema]) -> ModelResponse:
    """One turn of a model that has seen nothing before, as after a restart."""
    return asyncio.run(DemoModel().generate(ModelRequest(Messages(log, "Be kind."), tuple(schemas))))


def user(text: str) -> MessageData:
    return {"role": "user", "content": text}


def assistant(reply: ModelResponse) -> MessageData:
    message: MessageData = {"role": "assistant", "content": reply.content}
    if reply.tool_calls:
        calls: Any = [call.model_dump(mode="json", by_alias=True) for call in reply.tool_calls]
        message["toolCalls"] = calls
    return message


def result(call: CallData, run: Run) -> MessageData:
    """The result of a call as the engine records it."""
    message: MessageData = {
        "role": "tool", "content": "", "toolCallId": call["id"], "toolName": call["function"]["name"]
    }  # fmt: skip
    try:
        message["content"] = json.dumps(run(call))
    except Failed as failure:
        message["content"] = json.dumps(failure.result)
        message["isError"] = True
    except Exception as problem:
        message["content"] = json.dumps({"error": str(problem), "kind": "tool-error"})
        message["isError"] = True
    return message


class Dialogue:
    """A conversation with the demo model.

    Attributes:
        log: the transcript.
        calls: names and arguments of the calls made for the last wish.
    """

    def __init__(self, schemas: Iterable[ToolSchema], run: Run) -> None:
        self.schemas = list(schemas)
        self.run = run
        self.log = Log()
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def say(self, *texts: str) -> str:
        """Say something (or several things at once), let the tools run, and return the answer."""
        self.log = self.log.extended([user(text) for text in texts])
        return self.go_on()

    def go_on(self) -> str:
        self.calls = []
        for _ in range(MOST_TURNS):
            reply = ask(self.log, self.schemas)
            message = assistant(reply)
            calls = calls_of(message)
            self.calls += [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls]
            self.log = self.log.extended([message, *(result(call, self.run) for call in calls)])
            if not calls:
                assert isinstance(reply.content, str)
                return reply.content
        raise AssertionError(f"no answer after {MOST_TURNS} turns: {self.calls}")

    @property
    def called(self) -> list[str]:
        return [name for name, _ in self.calls]


def fixed(results: Mapping[str, Any]) -> Run:
    """Tools that always give these results; an exception among them is raised."""

    def run(call: CallData) -> Any:
        value = results[call["function"]["name"]]
        if isinstance(value, Exception):
            raise value
        return value

    return run


def real(tools: Iterable[Tool]) -> Dialogue:
    """A dialogue in which real tools run, approved."""
    by_name = {tool.name: tool for tool in tools}

    def run(call: CallData) -> Any:
        tool = by_name[call["function"]["name"]]
        arguments = tool.bind(json.loads(call["function"]["arguments"]))
        if tool.context_parameter:
            arguments[tool.context_parameter] = ToolContext(call["id"], "s", "concierge", None, Cancel())
        return tool(**arguments)

    return Dialogue((ToolSchema(t.name, t.description, t.parameters) for t in by_name.values()), run)
