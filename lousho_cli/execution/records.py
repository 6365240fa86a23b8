"""The public records of runs, checkpoints, approvals and forks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import ConfigDict, Field, PrivateAttr, StrictBool, computed_field, model_validator

from .conversation import Message, Messages, ToolCall, ToolCalls
from .log import Log
from .record import Record
from .unset import UNSET

Status = Literal["in-progress", "awaiting-approval", "finished"]
FinishReason = Literal[
    "stop",
    "length",
    "content-filter",
    "awaiting-approval",
    "aborted",
    "max-steps",
    "budget-exceeded",
    "output-invalid",
    "error",
]


class Usage(Record):
    """Tokens, model calls and money. What is not known is None, never 0.

    Attributes:
        input_tokens: tokens read, those from a cache included.
        output_tokens: tokens written, those of reasoning included.
        total_tokens: both.
        model_calls: requests that were paid for.
        cost_usd: what it cost, in US dollars; None if that is not known of every request.
        known_cost_usd: if it is known of some of them only: what those cost.
        cached_input_tokens: input tokens that a cache of the provider served.
        cache_write_tokens: input tokens that were written to it.
        reasoning_tokens: output tokens that were reasoning.
    """

    model_config = ConfigDict(extra="allow")

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    model_calls: int = 0
    cost_usd: float | None = None
    known_cost_usd: float | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        filled = dict(data)
        for ours, camel, old in (
            ("input_tokens", "inputTokens", "promptTokens"),
            ("output_tokens", "outputTokens", "completionTokens"),
        ):
            if ours not in filled and camel not in filled and old in filled:
                filled[camel] = filled[old]
        if "total_tokens" not in filled and "totalTokens" not in filled:
            filled["totalTokens"] = sum(
                int(filled.get(a, filled.get(b, 0)) or 0)
                for a, b in (("input_tokens", "inputTokens"), ("output_tokens", "outputTokens"))
            )
        return filled


class ModelResponse(Record):
    """One finished model turn, as a provider returns it.

    Attributes:
        content: the text, or a list of content parts.
        tool_calls: the calls the model asks for, in order; an id may be missing (empty).
        usage: what the turn cost.
        finish_reason: why the model ended the turn; None is derived from the calls.
        model: the model that answered, if it differs from the one asked.

    Further fields (reasoning, signatures, opaque blocks) are stored on the message and sent back unchanged.
    """

    model_config = ConfigDict(extra="allow")

    content: Any = ""
    tool_calls: list[ToolCall] = Field(default_factory=list)
    usage: Usage | None = None
    finish_reason: str | None = None
    model: str | None = None


class PendingApproval(Record):
    """A tool call that waits for a human.

    Attributes:
        id: what `approve` takes.
        args: exactly what will run if approved: the validated arguments as JSON.
        kind: `needs-approval`, or `interrupted`: the call may already have happened.
        digest: over tool and arguments; an approval covers only what was shown.
        created_at: UTC, ISO 8601.
        subagent: the sub-agents, outermost first, whose call it is; None for a call of the agent itself.
    """

    model_config = ConfigDict(extra="allow")

    id: str
    session_id: str | None = None
    agent: str = ""
    tool_name: str
    tool_call_id: str
    args: Any = None
    kind: Literal["needs-approval", "interrupted"] = "needs-approval"
    digest: str = ""
    created_at: str = ""
    expires_at: str | None = None
    subagent: list[str] | None = None


class ApprovalDecision(Record):
    """A human's word on one pending approval, validated strictly: `approved` is a bool, never guessed.

    Attributes:
        id: the approval's id.
        approved: True lets the call run, False records that it was rejected.
        note: for the record and, on a rejection, for the model.
        arguments: run with these arguments instead.
        result: do not run: this is the call's outcome, looked up by a human.
        by: who decides; default the OS user.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    id: str = Field(min_length=1)
    approved: StrictBool
    note: str | None = None
    arguments: dict[str, Any] | None = None
    result: Any = UNSET
    by: str | None = None


class Checkpoint(Record):
    """The whole state of a session at one moment."""

    model_config = ConfigDict(extra="allow")

    agent_id: str = ""
    session_id: str | None = None
    step_index: int = 0
    messages: Messages = Field(default_factory=lambda: Messages(Log()))
    tool_calls: ToolCalls = Field(default_factory=lambda: ToolCalls(Log()))
    usage: Usage = Field(default_factory=Usage)
    finish_reason: str | None = None
    business_state: Any = None
    status: Status = "in-progress"
    approval_id: str | None = None
    agent_fingerprint: dict[str, Any] | None = None
    run_config: dict[str, Any] | None = None


class HistoryEntry(Record):
    """One kept save of a session.

    Attributes:
        seq: the save's number, growing by one with each save of the session.
        step: the step it was made in.
        saved_at: UTC, ISO 8601.
        status: the session's status then.
        checkpoint: the whole state then.
    """

    seq: int
    step: int
    saved_at: str
    status: Status
    checkpoint: Checkpoint


class ExecutionResult(Record):
    """What came of a run, or of the part of it that was possible.

    Attributes:
        text: the last assistant text of the run.
        output: the final answer as a value, where one of a shape was asked for; else None.
        messages: the whole conversation.
        tool_calls: the calls of this run, in order.
        usage: of this run, resumes included.
        step_usage: of each model turn made in this call, in order.
        finish_reason: why it returned.
        steps: model turns of this run, resumes included.
        approval_id: what to decide, when it waits.
    """

    text: str
    output: Any = None
    messages: Messages
    tool_calls: ToolCalls
    usage: Usage
    step_usage: list[Usage]
    finish_reason: FinishReason
    steps: int
    approval_id: str | None = None
    session_id: str | None = None
    approval: PendingApproval | None = None


class ForkResult(Record):
    """A new session made from a save of another: `checkpoint` is what it will go on from.

    It is read when it is first touched. If the fork was deleted before that, it raises NotFoundError.
    """

    session_id: str
    step: int
    _read: Callable[[], Checkpoint] = PrivateAttr()

    @classmethod
    def of_fork(cls, session_id: str, step: int, read: Callable[[], Checkpoint]) -> ForkResult:
        made = cls(session_id=session_id, step=step)
        made._read = read
        return made

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def checkpoint(self) -> Checkpoint:
        return self._read()


class ToolResultPatch(Record):
    """Another result for one tool call."""

    tool_call_id: str
    result: Any = None


class ForkPatch(Record):
    """What a fork changes, applied in this order.

    Attributes:
        messages: a function from the list of stored messages to the list to use instead.
        business_state: another business state.
        tool_result: another result for one call: in place, or for a pending call.
        append_input: a user message, behind any pending calls.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    messages: Callable[[list[Message]], Sequence[Message | Mapping[str, Any]]] | None = None
    business_state: Any = UNSET
    tool_result: ToolResultPatch | None = None
    append_input: str | None = None
