"""A transcript as it reads: each turn with its calls, each call with what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .outcome import Outcome, of_message

Plain = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool message says: its outcome and its content as JSON text."""

    outcome: Outcome
    content: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its result, which is None while there is none. `asked` is False without a request."""

    id: str
    name: str
    arguments: str
    result: Result | None
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    """One message that is not a tool result: who, the texts, other parts as JSON values, the calls."""

    number: int
    role: str
    text: str
    parts: list[Any] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


def conversation(messages: Sequence[Plain]) -> Iterator[Entry]:
    """Entries in order, numbered by their message from 1.

    Results belong to the turn they follow, so a call id that an older file uses twice is no trouble. A
    result that no turn asked for is an entry of its own, with role `tool`.
    """
    index = 0
    while index < len(messages):
        message = messages[index]
        number = index + 1
        index += 1
        if message.get("role") == "tool":
            yield Entry(number, "tool", "", calls=[_unasked(message)])
            continue
        results: dict[str, Plain] = {}
        asked = [str(call.get("id") or "") for call in message.get("toolCalls") or []]
        while asked and index < len(messages) and messages[index].get("toolCallId") in asked:
            results.setdefault(str(messages[index]["toolCallId"]), messages[index])
            index += 1
        text, parts = _content(message.get("content"))
        calls = [_call(call, results) for call in message.get("toolCalls") or []]
        yield Entry(number, str(message.get("role") or "unknown"), text, parts, calls)


def _call(call: Plain, results: Mapping[str, Plain]) -> Call:
    function = call.get("function") or {}
    call_id = str(call.get("id") or "")
    answer = results.get(call_id)
    return Call(
        call_id,
        str(function.get("name") or ""),
        str(function.get("arguments") or "{}"),
        None if answer is None else _result(answer),
    )


def _unasked(message: Plain) -> Call:
    return Call(
        str(message.get("toolCallId") or ""),
        str(message.get("toolName") or ""),
        "",
        _result(message),
        asked=False,
    )


def _result(message: Plain) -> Result:
    content = message.get("content")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return Result(of_message(message), text)


def _content(content: Any) -> tuple[str, list[Any]]:
    """The text of a message and its parts that are not text."""
    if content is None or isinstance(content, str):
        return content or "", []
    texts: list[str] = []
    others: list[Any] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            others.append(part)
    return "".join(texts), others
