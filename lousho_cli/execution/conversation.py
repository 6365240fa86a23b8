"""A conversation as records: messages and tool calls, and sequences that build them when they are touched."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast, overload

from pydantic import ConfigDict, GetCoreSchemaHandler
from pydantic_core import core_schema

from .log import Log
from .messages import MessageData, Role, calls_of
from .record import Record


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
