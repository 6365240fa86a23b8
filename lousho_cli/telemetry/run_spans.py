"""The spans of one run: itself, its steps, requests to its model, tool calls, and waits for a human."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import Token
from datetime import datetime
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from ..errors import NothingToDoError, SessionAwaitingApprovalError
from ..execution.conversation import Message
from ..execution.events import Event
from ..execution.protocols import StoredApproval
from ..execution.tracing import EnteredRun, ModelTurn
from . import conventions as names
from .content import content_attributes

Attributes = dict[str, Any]

_NO_FAILURES = (SessionAwaitingApprovalError, NothingToDoError)
"""What is raised where a run has nothing to do yet, or at all."""


class RunSpans:
    """Makes the spans of a run out of what is told of it.

    Args:
        span: the run's own.
        content: whether spans hold what was said.
    """

    def __init__(self, tracer: Tracer, span: Span, entered: EnteredRun, content: bool) -> None:
        self._tracer = tracer
        self._run = span
        self._content = content
        self._common: Attributes = {names.AGENT: entered.agent}
        if entered.session_id is not None:
            self._common[names.CONVERSATION] = entered.session_id
        span.set_attributes({names.OPERATION: names.INVOKE_AGENT, **self._common})
        self._step: Span | None = None
        self._chat: Span | None = None
        self._chat_begins = 0
        self._outside_chat: Token[Context] | None = None
        self._calls: dict[str, tuple[Span, int]] = {}

    def span_of(self, call_id: str) -> Span | None:
        """The span of a call that was started."""
        started = self._calls.get(call_id)
        return started[0] if started is not None else None

    def observe(self, event: Event) -> None:
        data = event.data
        if event.type == "run.start":
            self._run.set_attributes(names.model_attributes(data["model"]))
            self._run.set_attribute(names.RESUMED, data["resumed"])
        elif event.type == "step.start":
            self._end_step()
            self._begin_step(data["step"])
            self._begin_chat(data["model"])
        elif event.type in ("model.retry", "model.failed"):
            self._failed_request(data, again=event.type == "model.retry")
        elif event.type == "tool.start":
            self._begin_call(data)
        elif event.type in ("tool.done", "tool.error"):
            self._end_call(data)
        elif event.type == "step.done":
            self._end_step()
        elif event.type == "approval.requested":
            self._run.add_event(event.type, _approval(data["approval"]))
        elif event.type in ("agent.drift", "output.invalid", "budget.exceeded"):
            self._run.add_event(event.type)
        elif event.type == "run.done":
            self._run.set_attributes(
                {
                    names.FINISH_REASON: data["finishReason"],
                    names.STEPS: data["steps"],
                    **names.usage_attributes(data["usage"]),
                }
            )

    def answered(self, turn: ModelTurn) -> None:
        """The model's turn is recorded: the request is over."""
        if self._chat is None:
            return
        calls = turn.message.get("toolCalls")
        reason = turn.finish_reason or ("tool_calls" if calls else "stop")
        attributes: Attributes = {names.FINISH_REASONS: [reason], **names.usage_attributes(turn.usage)}
        if turn.model is not None:
            attributes[names.RESPONSE_MODEL] = names.model_attributes(turn.model)[names.REQUEST_MODEL]
        settings = turn.request.settings
        asked = {
            names.REQUEST_TEMPERATURE: settings.temperature,
            names.REQUEST_MAX_TOKENS: settings.max_tokens,
            names.REQUEST_SEED: settings.seed,
            names.REQUEST_STOP: settings.stop or None,
        }
        attributes |= {name: value for name, value in asked.items() if value is not None}
        if self._content:
            attributes |= content_attributes(map(_plain, turn.request.messages), turn.message, reason)
        self._chat.set_attributes(attributes)
        self._end_chat()

    def decided(self, stored: StoredApproval) -> None:
        """A human has decided: how long that took is a span of its own."""
        pending = stored.pending
        outcome = stored.status if stored.decision is None else _outcome(stored)
        span = self._tracer.start_span(
            f"approval {pending.tool_name}",
            attributes={
                **self._common,
                names.TOOL: pending.tool_name,
                names.TOOL_CALL: pending.tool_call_id,
                names.APPROVAL: pending.id,
                names.APPROVAL_KIND: pending.kind,
                names.APPROVAL_DECISION: outcome,
            },
            start_time=_nanoseconds(pending.created_at),
        )
        span.end(_nanoseconds(stored.decided_at or ""))

    def end(self, error: BaseException | None) -> None:
        """The run has returned, or raised."""
        if error is not None and not isinstance(error, _NO_FAILURES):
            if self._chat is not None:
                _fail(self._chat, _type_of(error))
            self._run.record_exception(error)
            _fail(self._run, _type_of(error))
        self._end_chat()
        for span, _ in self._calls.values():
            span.end()
        self._end_step()
        self._run.end()

    def _begin_step(self, step: int) -> Span:
        inside = trace.set_span_in_context(self._run)
        attributes = {**self._common, names.STEP: step}
        self._step = self._tracer.start_span(f"step {step}", inside, attributes=attributes)
        return self._step

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.end()
            self._step = None

    def _begin_chat(self, model: str, wait: float = 0.0) -> None:
        self._chat_begins = time.time_ns() + int(wait * 1e9)
        attributes = names.model_attributes(model)
        self._chat = self._tracer.start_span(
            f"{names.CHAT} {attributes[names.REQUEST_MODEL]}",
            trace.set_span_in_context(self._step or self._run),
            SpanKind.CLIENT,
            {names.OPERATION: names.CHAT, **self._common, **attributes},
            start_time=self._chat_begins,
        )
        # What the model's client traces by itself belongs inside.
        self._outside_chat = otel_context.attach(trace.set_span_in_context(self._chat))

    def _end_chat(self) -> None:
        if self._outside_chat is not None:
            otel_context.detach(self._outside_chat)
            self._outside_chat = None
        if self._chat is not None:
            # The run may have been stopped while it waited for the time to ask again.
            self._chat.end(max(time.time_ns(), self._chat_begins))
            self._chat = None

    def _failed_request(self, data: Mapping[str, Any], *, again: bool) -> None:
        problem = data["error"]
        if self._chat is not None:
            _fail(self._chat, str(problem.get("status") or problem["code"]), problem["message"])
        self._end_chat()
        if again:
            self._begin_chat(data.get("next") or data["model"], data["wait"])

    def _begin_call(self, data: Mapping[str, Any]) -> None:
        step = self._step or self._begin_step(data["step"])
        attributes: Attributes = {
            names.OPERATION: names.EXECUTE_TOOL,
            **self._common,
            names.TOOL: data["toolName"],
            names.TOOL_CALL: data["toolCallId"],
        }
        if self._content and "args" in data:
            attributes[names.TOOL_ARGUMENTS] = data["args"]
        start = time.time_ns()
        span = self._tracer.start_span(
            f"{names.EXECUTE_TOOL} {data['toolName']}",
            trace.set_span_in_context(step),
            attributes=attributes,
            start_time=start,
        )
        self._calls[data["toolCallId"]] = (span, start)

    def _end_call(self, data: Mapping[str, Any]) -> None:
        if data["toolCallId"] not in self._calls:
            # It was refused before it could start.
            self._begin_call(data)
        span, start = self._calls.pop(data["toolCallId"])
        if self._content:
            span.set_attribute(names.TOOL_RESULT, data["result"])
        if "kind" in data:
            _fail(span, data["kind"], data["error"] if self._content else "")
        span.end(start + int(data["seconds"] * 1e9))


def _plain(message: Message) -> Mapping[str, Any]:
    return message.model_dump(mode="json", by_alias=True, exclude_none=True)


def _approval(approval: Mapping[str, Any]) -> Attributes:
    return {
        names.TOOL: approval["toolName"],
        names.TOOL_CALL: approval["toolCallId"],
        names.APPROVAL: approval["id"],
        names.APPROVAL_KIND: approval["kind"],
    }


def _outcome(stored: StoredApproval) -> str:
    if stored.status == "expired":
        return "expired"
    return "approved" if stored.decision is not None and stored.decision.approved else "rejected"


def _fail(span: Span, kind: str, message: str = "") -> None:
    span.set_attribute(names.ERROR_TYPE, kind)
    span.set_status(StatusCode.ERROR, message or None)


def _type_of(error: BaseException) -> str:
    return str(getattr(error, "code", None) or type(error).__name__)


def _nanoseconds(instant: str) -> int:
    """An instant as spans count time; now, where it is not known."""
    try:
        return int(datetime.fromisoformat(instant).timestamp() * 1e9)
    except ValueError:
        return time.time_ns()
