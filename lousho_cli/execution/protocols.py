"""What the engine asks of a model and of a store. Implement these to bring your own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from .conversation import Messages
from .records import (
    ApprovalDecision,
    Checkpoint,
    HistoryEntry,
    ModelResponse,
    PendingApproval,
)

EXPIRY = "expiry"
"""Who "decides" an approval that nobody decided in time."""

ApprovalStatus = Literal["pending", "approved", "rejected", "expired", "consumed"]


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as the model sees it: name, description and the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


Thinking = bool | Literal["minimal", "low", "medium", "high", "xhigh"]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is asked. What is None is left to the provider; what a provider does not know it ignores.

    Attributes:
        temperature: 0 and up.
        max_tokens: the longest answer, in tokens.
        thinking: whether to reason first, or how hard.
        tool_choice: `auto`, `required`, `none`, or the name of the tool that must be called.
        parallel_tool_calls: whether one turn may ask for several calls.
        stop: texts that end the answer.
        seed: for providers that can repeat themselves.
        timeout: seconds one request may take.
        extra_body: further fields of the request's body, as the provider names them.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    thinking: Thinking | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    timeout: float | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to the model.

    Attributes:
        messages: the valid transcript so far, shared without copying.
        tools: what the model may call.
        model: the model's id, or None for the provider's own.
        session_id: the session it is asked for, or None.
        settings: how it is asked.
        output: the JSON schema of the final answer, or None for free text.
    """

    messages: Messages
    tools: Sequence[ToolSchema] = ()
    model: str | None = None
    session_id: str | None = None
    settings: ModelSettings = ModelSettings()
    output: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """More of a tool call that the model is writing: the `index`-th of the turn, from 0."""

    index: int
    name: str = ""
    arguments: str = ""


ModelDelta = TextDelta | ReasoningDelta | CallDelta


class Provider(Protocol):
    """A model. `generate` returns one finished turn or raises; a turn cut short must raise.

    Raise a `ProviderError` that is `retryable` where asking again may help.
    """

    async def generate(self, request: ModelRequest) -> ModelResponse | Mapping[str, Any]: ...


@runtime_checkable
class Streams(Protocol):
    """A provider that can tell a turn while the model writes it.

    The last thing a stream yields is the whole turn. A stream that ends without it was cut, and counts for
    nothing.
    """

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelResponse]: ...


class CheckpointStore(Protocol):
    """Where sessions live. These three methods are enough; `save` returns only when it is durable."""

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None: ...

    async def load(self, session_id: str) -> Checkpoint | None: ...

    async def delete(self, session_id: str, *, keep_history: bool = False) -> None: ...


@runtime_checkable
class KeepsHistory(Protocol):
    """A checkpoint store that keeps the newest saves too."""

    async def history(self, session_id: str, *, limit: int | None = None) -> Sequence[HistoryEntry]: ...


Snapshot = Checkpoint | Callable[[], Checkpoint | None] | None


@dataclass(frozen=True)
class StoredApproval:
    """An approval as its store knows it.

    Attributes:
        pending: what was asked.
        snapshot: the checkpoint it paused in, or a function that loads it.
        status: `pending`, `approved`, `rejected`, `expired` or `consumed`.
        decision: what was decided, or None.
        decided_at: when, UTC, ISO 8601.
        runs_later_calls: whether the calls behind the decided one run; not for old snapshots without them.
    """

    pending: PendingApproval
    snapshot: Snapshot = None
    status: ApprovalStatus = "pending"
    decision: ApprovalDecision | None = None
    decided_at: str | None = None
    runs_later_calls: bool = True

    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint it paused in."""
        return self.snapshot() if callable(self.snapshot) else self.snapshot

    def decided(self, decision: ApprovalDecision, at: str) -> StoredApproval:
        """The same approval with a decision."""
        status: ApprovalStatus = "approved" if decision.approved else "rejected"
        if decision.by == EXPIRY:
            status = "expired"
        return replace(self, status=status, decision=decision, decided_at=at)

    def consumed(self) -> StoredApproval:
        """The same approval after its decision was used."""
        return replace(self, status="consumed")


class ApprovalStore(Protocol):
    """Where requests for a human wait and decisions are kept."""

    async def save(self, pending: PendingApproval, snapshot: Checkpoint) -> None: ...

    async def get(self, approval_id: str) -> StoredApproval | None: ...

    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        """Record `decision` if there is none yet; return what holds, which may be another's."""
        ...

    async def consume(self, approval_id: str) -> None: ...

    async def list(self, *, status: str | None = "pending") -> Sequence[StoredApproval]: ...
