"""A run as OpenTelemetry spans: their tree, their attributes, and one trace over every process of a run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from lousho_cli import Agent, ExecutionResult, MemoryStore, ToolContext, create_agent, tool
from lousho_cli.errors import ProviderError
from lousho_cli.execution.tracing import Tracing
from lousho_cli.telemetry import current_tracing
from lousho_cli.telemetry.spans import tracing
from lousho_cli.testing import ScriptedModel

SECRET = "the-secret-word"


class Watched:
    """Runs of agents, and the spans they left.

    Attributes:
        seen: the names of the spans that were current in tools.
    """

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("tests")
        self.store = MemoryStore()
        self.seen: list[str] = []
        self.options: dict[str, Any] = {}

    def tracing(self, content: bool = False) -> Tracing:
        return tracing(self.tracer, content)

    def agent(self, script: list[Any], **options: Any) -> Any:
        @tool
        async def look(place: str) -> str:
            "Look."
            self.seen.append(trace.get_current_span().name)  # type: ignore[attr-defined]
            if place == "nowhere":
                raise ValueError(SECRET)
            return f"{place}: {SECRET}"

        @tool
        def sync_look(ctx: ToolContext) -> str:
            "Look, in a thread."
            self.seen.append(trace.get_current_span().name)  # type: ignore[attr-defined]
            return "seen"

        @tool(needs_approval=True)
        def launch() -> str:
            "Launch."
            return "launched"

        return create_agent(
            name="bot",
            instructions=f"Say {SECRET}.",
            model="openai-responses:gpt-x",
            provider=ScriptedModel(script),
            tools=[look, sync_look, launch],
            store=self.store,
            **options,
        )

    def send(self, script: list[Any], message: Any = "go", **options: Any) -> ExecutionResult:
        known = {"session_id": "s1", "tracing": self.tracing(), **self.options}
        result: ExecutionResult = asyncio.run(self.agent(script).send(message, **{**known, **options}))
        return result

    def spans(self) -> list[ReadableSpan]:
        """Those that ended, in the order of their beginnings."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans() if span.name == name]
        return found

    def tree(self) -> dict[str, str | None]:
        """Each span's name, and its parent's."""
        names = {span.context.span_id: span.name for span in self.spans() if span.context}
        return {span.name: names[span.parent.span_id] if span.parent else None for span in self.spans()}


@pytest.fixture
def watched() -> Iterator[Watched]:
    each = Watched()
    yield each
    each.provider.shutdown()


def calls(*names: str, **args: Any) -> dict[str, Any]:
    return {
        "tool_calls": [{"name": name, "args": args if name == "look" else {}} for name in names],
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_run_is_a_tree_of_spans_with_the_names_of_the_conventions(watched: Watched) -> None:
    watched.send([calls("look", "sync_look", place="Rome"), "done"])
    assert watched.tree() == {
        "invoke_agent bot": None,
        "step 1": "invoke_agent bot",
        "chat gpt-x": "step 2",
        "execute_tool look": "step 1",
        "execute_tool sync_look": "step 1",
        "step 2": "invoke_agent bot",
    }
    assert sorted(watched.seen) == ["execute_tool look", "execute_tool sync_look"]
    run = attributes(watched.span("invoke_agent bot"))
    assert run["gen_ai.operation.name"] == "invoke_agent"
    assert run["gen_ai.agent.name"] == "bot"
    assert run["gen_ai.conversation.id"] == "s1"
    assert run["gen_ai.usage.input_tokens"] == 7
    assert (run["lousho.finish_reason"], run["lousho.steps"], run["lousho.resumed"]) == ("stop", 2, False)
    first, last = [span for span in watched.spans() if span.name == "chat gpt-x"]
    assert first.kind is SpanKind.CLIENT
    chat = attributes(first)
    assert chat["gen_ai.provider.name"] == "openai"
    assert chat["gen_ai.request.model"] == chat["gen_ai.response.model"] == "gpt-x"
    assert (chat["gen_ai.usage.input_tokens"], chat["gen_ai.usage.output_tokens"]) == (7, 3)
    assert list(chat["gen_ai.response.finish_reasons"]) == ["tool_calls"]
    assert list(attributes(last)["gen_ai.response.finish_reasons"]) == ["stop"]
    called = attributes(watched.span("execute_tool look"))
    assert called["gen_ai.operation.name"] == "execute_tool"
    assert (called["gen_ai.tool.name"], called["gen_ai.tool.call.id"]) == ("look", "call_1")
    assert all(span.end_time for span in watched.spans())


def test_content_is_left_out_unless_it_is_asked_for(watched: Watched) -> None:
    script = [calls("look", place="Rome"), calls("look", place="nowhere"), f"It is {SECRET}."]
    watched.send(script, f"Tell {SECRET}")
    assert not any(SECRET in span.to_json() for span in watched.spans())
    watched.exporter.clear()

    watched.send(script, f"Tell {SECRET}", session_id="s2", tracing=watched.tracing(content=True))
    chat = attributes([span for span in watched.spans() if span.name.startswith("chat")][1])
    assert json.loads(chat["gen_ai.system_instructions"]) == [{"type": "text", "content": f"Say {SECRET}."}]
    user, turn, result = json.loads(chat["gen_ai.input.messages"])
    assert user == {"role": "user", "parts": [{"type": "text", "content": f"Tell {SECRET}"}]}
    assert turn["parts"][0]["type"] == "tool_call"
    assert result["parts"][0] == {
        "type": "tool_call_response",
        "id": "call_1",
        "response": f'"Rome: {SECRET}"',
    }
    (answer,) = json.loads(chat["gen_ai.output.messages"])
    assert answer["finish_reason"] == "tool_calls"
    told = attributes(next(span for span in watched.spans() if span.name == "execute_tool look"))
    assert json.loads(told["gen_ai.tool.call.arguments"]) == {"place": "Rome"}
    assert told["gen_ai.tool.call.result"] == f'"Rome: {SECRET}"'


def test_errors_of_tools_and_requests_are_recorded(watched: Watched) -> None:
    watched.options = {"retries": {"base_seconds": 0}}
    busy = {"error": ProviderError("busy", retryable=True)}
    watched.send([calls("look", "no_such_tool", place="nowhere"), {"text": "done", "fails": [busy]}])
    for name, kind in (("execute_tool look", "tool-error"), ("execute_tool no_such_tool", "unknown-tool")):
        span = watched.span(name)
        assert attributes(span)["error.type"] == kind
        assert span.status.status_code is StatusCode.ERROR
    chats = [span for span in watched.spans() if span.name == "chat gpt-x"]
    assert [span.status.status_code for span in chats] == [
        StatusCode.UNSET,
        StatusCode.ERROR,
        StatusCode.UNSET,
    ]

    watched.exporter.clear()
    with pytest.raises(Exception, match="gave up"):
        watched.send([{"error": "gave up"}], "again", session_id="s2")
    run = watched.span("invoke_agent bot")
    assert run.status.status_code is StatusCode.ERROR
    assert [event.name for event in run.events] == ["exception"]
    assert watched.span("chat gpt-x").status.status_code is StatusCode.ERROR


def test_an_approval_days_later_goes_on_in_the_trace_of_the_run(watched: Watched) -> None:
    paused = watched.send([calls("launch")])
    (before,) = [span for span in watched.spans() if span.parent is None]
    decision = {"id": paused.approval_id, "approved": True, "by": "ann"}
    agent = watched.agent(["done"])
    asyncio.run(agent.approvals.resolve(decision, run=False))
    with watched.tracer.start_as_current_span("a request of somebody") as request:
        asyncio.run(agent.resume("s1", tracing=watched.tracing()))
    again = watched.spans()[-1]
    resumed = [span for span in watched.spans() if span.name == "invoke_agent bot"][-1]
    assert resumed.context is not None
    assert before.context is not None
    assert resumed.context.trace_id == before.context.trace_id
    assert resumed.parent is not None
    assert resumed.parent.span_id == before.context.span_id
    assert [link.context.span_id for link in resumed.links] == [request.get_span_context().span_id]
    assert attributes(resumed)["lousho.resumed"] is True
    assert again.context is not None
    wait = watched.span("approval launch")
    assert wait.parent is not None
    assert wait.parent.span_id == resumed.context.span_id
    assert attributes(wait)["lousho.approval.decision"] == "approved"
    assert (wait.start_time or 0) < (wait.end_time or 0) <= (resumed.end_time or 0)
    assert watched.span("execute_tool launch").status.status_code is StatusCode.UNSET


def test_a_crash_does_not_lose_the_trace_and_a_new_run_has_its_own(watched: Watched) -> None:
    class Died(BaseException):
        pass

    def die(event: Any) -> None:
        if event.type == "tool.start":
            raise Died

    with pytest.raises(Died):
        watched.send([calls("look", place="Rome")], on_event=die)
    watched.send(["done"], None)
    watched.send(["done"], "another")
    begun, resumed, new = [span for span in watched.spans() if span.name == "invoke_agent bot"]
    traces = [span.context.trace_id for span in (begun, resumed, new) if span.context]
    assert traces[0] == traces[1] != traces[2]


def test_a_session_that_was_begun_without_a_tracer_is_traced_from_here_on(watched: Watched) -> None:
    paused = watched.send([calls("launch")], tracing=None)
    assert watched.spans() == []
    decision = {"id": paused.approval_id, "approved": True}
    agent = watched.agent(["done"])
    asyncio.run(agent.approvals.resolve(decision, run=False))
    asyncio.run(agent.resume("s1", tracing=watched.tracing()))
    assert watched.span("invoke_agent bot").parent is None


def test_sub_agents_are_inside_the_calls_that_run_them(watched: Watched) -> None:
    def helper(name: str, answer: str) -> Agent:
        return Agent(name, tools=[], provider=ScriptedModel([answer]))

    lead = create_agent(
        name="lead",
        model="demo",
        provider=ScriptedModel(
            [
                {
                    "tool_calls": [
                        {"name": "delegate_one", "args": {"input": "x"}},
                        {"name": "delegate_two", "args": {"input": "y"}},
                    ]
                },
                "both done",
            ]
        ),
        subagents=[helper("one", "1"), helper("two", "2")],
    )
    asyncio.run(lead.send("go", tracing=watched.tracing()))
    tree = watched.tree()
    assert tree["invoke_agent one"] == "execute_tool delegate_one"
    assert tree["invoke_agent two"] == "execute_tool delegate_two"
    assert tree["execute_tool delegate_one"] == "step 1"
    assert len({span.context.trace_id for span in watched.spans() if span.context}) == 1


def test_a_key_that_is_taken_out_of_what_is_stored_is_not_in_a_span(watched: Watched) -> None:
    key = "sk-abcdefghijklmnop1234567890"
    watched.options = {"redaction": True}
    told = watched.tracing(content=True)
    watched.send([calls("look", place=key), f"It is {key}"], f"My key is {key}", tracing=told)
    chats = [attributes(span) for span in watched.spans() if span.name == "chat gpt-x"]
    assert key not in str([chat["gen_ai.output.messages"] for chat in chats][-1])
    assert key not in attributes(watched.span("execute_tool look"))["gen_ai.tool.call.result"]


def test_without_a_tracer_provider_there_is_nothing(watched: Watched) -> None:
    assert current_tracing() is None


PROGRAM = """
import asyncio, sys
from lousho_cli import create_agent
from lousho_cli.testing import ScriptedModel

def run():
    return asyncio.run(create_agent(name="bot", provider=ScriptedModel(["hi"])).send("go"))

run()
assert not [name for name in sys.modules if name.startswith("opentelemetry")]

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

provider = TracerProvider()
exporter = ConsoleSpanExporter(formatter=lambda span: span.name + "\\n")
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
run()
"""


def test_a_provider_that_the_application_has_set_is_used_by_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[-2] == "invoke_agent bot"
