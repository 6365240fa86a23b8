"""Following runs from outside: what a tracer is told of one, and what it may keep with it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from .events import Event
from .messages import JsonObject, MessageData, UsageData
from .protocols import ModelRequest, StoredApproval

KEPT = "trace"
"""Where a run's `runConfig` keeps what its tracer wants to find again."""


@dataclass(frozen=True, slots=True)
class EnteredRun:
    """A run that is entered: begun, or gone on with.

    Attributes:
        kept: what the tracer wanted to keep when the run began; None where it begins now, or kept nothing.
        is_nested: whether it is a sub-agent's, inside a call of its lead.
    """

    agent: str
    session_id: str | None
    kept: Any = None
    is_nested: bool = False


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """A turn of a model that was recorded.

    Attributes:
        request: what the model was asked.
        message: the turn as it is stored.
        model: the model that answered.
        finish_reason: why it ended the turn, or None.
        usage: what the turn cost.
    """

    request: ModelRequest
    message: MessageData
    model: str | None
    finish_reason: str | None
    usage: UsageData


@dataclass(frozen=True, slots=True)
class Tracing:
    """Functions that follow runs. None may raise. All but `context_of` are called in the context of the run's
    own task, a sub-agent's in that of the call it runs in.

    Attributes:
        run: surrounds a run. What it gives is kept, where the run begins now and is no sub-agent's.
        observe: told each event, but for pieces of a turn that nobody else listens to.
        answered: told each model turn.
        decided: told a decision that the run goes on with.
        context_of: the context that a call, of which `tool.start` was told, is to run in; None for the run's.
    """

    run: Callable[[EnteredRun], AbstractContextManager[JsonObject | None]]
    observe: Callable[[Event], None]
    answered: Callable[[ModelTurn], None]
    decided: Callable[[StoredApproval], None]
    context_of: Callable[[str], Context | None]
