"""The public records: pydantic models with the camelCase keys of the stored files.

`model_dump(mode="json", by_alias=True, exclude_none=True)` of any of them is its documented JSON.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast, overload

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StrictBool,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import core_schema

from .log import Log
from .messages import MessageData, Role, calls_of
from .unset import UNSET

R = TypeVar("R", bound="Record")

Status = Literal["in-progress", "awaiting-approval", "finished"]
FinishReason = Literal[
    "stop", "length", "content-filter", "awaiting-approval", "aborted", "max-steps", "error"
]


class Record(BaseModel):
    """Base of the public records."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    @classmethod
    def of(cls: type[R], value: R | Mapping[str, Any]) -> R:
        """`value` itself if it is such a record, else one validated from a mapping of the same shape."""
        return value if isinstance(value, cls) else cls.model_validate(value)


class ToolFunction(Record):
    """What a tool call calls: the tool's name and the arguments as the model's text."""

    name: str
    arguments: str = "{}"


class ToolCall(Record):
    """A tool call of a model turn."""

    model_config = ConfigDict(extra="allow")

    id: str
    type: Literal["function"] = "function"
    function: ToolFunction

    @property
    def name(self) -> str:
        return self.function.name


class Message(Record):
    """One message of a transcript. Fields that lousho does not interpret are kept.

    It also reads like the mapping it is stored as: `message["toolCallId"]`, `message.get("isError")`.
    """

    model_config = ConfigDict(extra="allow")

    role: Role
    content: Any = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    is_error: bool | None = None

    def __getitem__(self, key: str) -> Any:
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.model_dump(mode="json", by_alias=True, exclude_none=True).get(key, default)


class Messages(Sequence[Message]):
    """A read-only transcript, the system message first if there is one.

    It shares the engine's storage; a record is built when it is touched.
    """

    __slots__ = ("log", "system")

    def __init__(self, log: Log, system: str | None = None) -> None:
        self.log = log
        self.system = system

    @classmethod
    def of(cls, value: Messages | Sequence[Message | Mapping[str, Any]]) -> Messages:
        if isinstance(value, Messages):
            return value
        data = [plain(message) for message in value]
        if data and data[0]["role"] == "system" and isinstance(data[0]["content"], str):
            return cls(Log(data[1:]), data[0]["content"])
        return cls(Log(data))

    def __len__(self) -> int:
        return len(self.log) + (self.system is not None)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if self.system is not None:
            if index == 0:
                return Message(role="system", content=self.system)
            index -= 1
        return _touched(self.log[index])

    def __iter__(self) -> Iterator[Message]:
        return (_touched(data) for data in self.data())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Messages):
            return self.system == other.system and self.log == other.log
        if isinstance(other, Sequence):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} messages>"

    def data(self) -> Iterator[MessageData]:
        """The messages as stored. Read them, do not change them."""
        if self.system is not None:
            yield {"role": "system", "content": self.system}
        yield from self.log

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.of,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda messages: list(messages.data())
            ),
        )


class ToolCalls(Sequence[ToolCall]):
    """The tool calls of a transcript from some message on, built when they are touched."""

    __slots__ = ("_calls", "_log", "_start")

    def __init__(self, log: Log, start: int = 0) -> None:
        self._log = log
        self._start = start
        self._calls: list[ToolCall] | None = None

    @classmethod
    def of(cls, value: ToolCalls | Sequence[ToolCall | Mapping[str, Any]]) -> ToolCalls:
        if isinstance(value, ToolCalls):
            return value
        calls = cls(Log())
        calls._calls = [ToolCall.of(call) for call in value]
        return calls

    def _all(self) -> list[ToolCall]:
        if self._calls is None:
            messages = self._log.slice(self._start)
            self._calls = [ToolCall.model_validate(c) for m in messages for c in calls_of(m)]
        return self._calls

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> ToolCall: ...
    @overload
    def __getitem__(self, index: slice) -> list[ToolCall]: ...
    def __getitem__(self, index: int | slice) -> ToolCall | list[ToolCall]:
        return self._all()[index]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<tool calls>"

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.of,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda calls: [c.model_dump(mode="json", by_alias=True, exclude_none=True) for c in calls]
            ),
        )


_FLAT = frozenset(("role", "content", "toolCallId", "toolName", "isError"))
_OPTIONAL = ("toolCalls", "toolCallId", "toolName", "isError")


def _touched(data: MessageData) -> Message:
    """The record of a stored message, which shares nothing with it that could be changed."""
    flat = isinstance(data["content"], str) and data.keys() <= _FLAT
    return Message.model_validate(data if flat else copy.deepcopy(data))


def plain(message: Message | Mapping[str, Any]) -> MessageData:
    """A message as the plain value the engine works with, validated once. Unknown fields stay as they are."""
    data = Message.of(message).model_dump(mode="json", by_alias=True)
    for key in _OPTIONAL:
        if data[key] is None:
            del data[key]
    if data["content"] is None:
        data["content"] = ""
    return cast(MessageData, data)


class Usage(Record):
    """Tokens, model calls and money. A cost that is not known is None, never 0."""

    model_config = ConfigDict(extra="allow")

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    model_calls: int = 0
    cost_usd: float | None = None

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
        messages: the whole conversation.
        tool_calls: the calls of this run, in order.
        usage: of this run, resumes included.
        step_usage: of each model turn made in this call, in order.
        finish_reason: why it returned.
        steps: model turns of this run, resumes included.
        approval_id: what to decide, when it waits.
    """

    text: str
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
    """A new session made from a save of another: `checkpoint` is what it will go on from."""

    session_id: str
    step: int
    checkpoint: Checkpoint


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
