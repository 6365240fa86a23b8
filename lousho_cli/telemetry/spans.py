"""Spans of runs: each run finds its own through the context it runs in."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import ParamSpec

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ..execution.events import Event
from ..execution.messages import JsonObject
from ..execution.protocols import StoredApproval
from ..execution.tracing import EnteredRun, ModelTurn, Tracing
from . import conventions as names
from .run_spans import RunSpans

P = ParamSpec("P")

logger = logging.getLogger("lousho")
_current: ContextVar[RunSpans | None] = ContextVar("lousho_run_spans", default=None)
_propagator = TraceContextTextMapPropagator()


def tracing(tracer: trace.Tracer, content: bool) -> Tracing:
    """What makes spans of runs.

    Args:
        content: whether they hold what was said.
    """

    @contextmanager
    def run(entered: EnteredRun) -> Iterator[JsonObject | None]:
        span = tracer.start_span(
            f"{names.INVOKE_AGENT} {entered.agent}", _parent(entered), links=_links(entered)
        )
        spans = RunSpans(tracer, span, entered, content)
        inside, token = _current.set(spans), otel_context.attach(trace.set_span_in_context(span))
        error: BaseException | None = None
        try:
            yield _kept(span)
        except BaseException as raised:
            error = raised
            raise
        finally:
            _quietly(spans.end)(error)
            otel_context.detach(token)
            _current.reset(inside)

    return Tracing(run, _quietly(_observe), _quietly(_answered), _quietly(_decided), _context_of)


def _observe(event: Event) -> None:
    spans = _current.get()
    if spans is not None:
        spans.observe(event)


def _answered(turn: ModelTurn) -> None:
    spans = _current.get()
    if spans is not None:
        spans.answered(turn)


def _decided(stored: StoredApproval) -> None:
    spans = _current.get()
    if spans is not None:
        spans.decided(stored)


def _context_of(call_id: str) -> Context | None:
    spans = _current.get()
    span = spans.span_of(call_id) if spans is not None else None
    if span is None:
        return None
    context = copy_context()
    context.run(otel_context.attach, trace.set_span_in_context(span))
    return context


def _parent(entered: EnteredRun) -> otel_context.Context | None:
    """The run's own trace where it is gone on with, else what is current."""
    return _propagator.extract(entered.kept) if isinstance(entered.kept, dict) else None


def _links(entered: EnteredRun) -> list[trace.Link]:
    """Who goes on with a run, if that is part of another trace."""
    here = trace.get_current_span().get_span_context()
    return [trace.Link(here)] if isinstance(entered.kept, dict) and here.is_valid else []


def _kept(span: trace.Span) -> JsonObject | None:
    carrier: JsonObject = {}
    _propagator.inject(carrier, trace.set_span_in_context(span))
    return carrier or None


def _quietly(function: Callable[P, None]) -> Callable[P, None]:
    """`function`, whose failure is logged: a run does not fail for its spans."""

    @functools.wraps(function)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except Exception:
            logger.warning("a span of a run is missing or incomplete", exc_info=True)

    return quiet
