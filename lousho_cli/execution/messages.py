"""The shapes of a conversation, as plain values.

Inside the engine a message is the JSON object that is stored; the pydantic records of `records` are built
from it only when somebody touches them. Keys are the camelCase ones of the stored files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict

JsonObject = dict[str, Any]
Role = Literal["system", "user", "assistant", "tool"]


class FunctionData(TypedDict):
    name: str
    arguments: str
    """What the model sent, as text. It may be no JSON at all."""


class CallData(TypedDict):
    """One tool call of a model turn."""

    id: str
    type: Literal["function"]
    function: FunctionData
    providerId: NotRequired[str]
    """The provider's id, empty if there was none, where it was missing or taken and `id` is ours."""


class MessageData(TypedDict):
    """One message. Fields we do not interpret are kept beside these, unchanged."""

    role: Role
    content: Any
    toolCalls: NotRequired[list[CallData]]
    toolCallId: NotRequired[str]
    toolName: NotRequired[str]
    isError: NotRequired[bool]
    reasoning: NotRequired[str]
    redacted: NotRequired[int]


class UsageData(TypedDict, total=False):
    inputTokens: int
    outputTokens: int
    totalTokens: int
    modelCalls: int
    cachedInputTokens: int
    cacheWriteTokens: int
    reasoningTokens: int
    costUsd: float
    knownCostUsd: float


def text_of(content: Any) -> str:
    """The readable text of a message's content: a string, or the text parts of a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(
            str(part.get("text") or "") if isinstance(part, dict) else str(part) for part in content
        )
    return ""


def calls_of(message: MessageData) -> list[CallData]:
    return message.get("toolCalls") or []
