"""What was said, as the conventions write it: messages of parts, as JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..execution.messages import text_of
from . import conventions as names

Plain = Mapping[str, Any]


def content_attributes(messages: Iterable[Plain], answer: Plain, finish_reason: str) -> dict[str, str]:
    """The attributes of a model turn that hold its content.

    Args:
        messages: what was asked, as messages are stored.
        answer: the turn.
    """
    asked = list(messages)
    system = [text_of(each["content"]) for each in asked if each["role"] == "system"]
    attributes = {
        names.INPUT_MESSAGES: _json([_message(each) for each in asked if each["role"] != "system"]),
        names.OUTPUT_MESSAGES: _json([{**_message(answer), "finish_reason": finish_reason}]),
    }
    if system:
        attributes[names.INSTRUCTIONS] = _json([_text(each) for each in system])
    return attributes


def _message(message: Plain) -> dict[str, Any]:
    content = message.get("content")
    if message["role"] == "tool":
        response = {"type": "tool_call_response", "id": message.get("toolCallId"), "response": content}
        return {"role": "tool", "parts": [response]}
    text = text_of(content)
    parts: list[dict[str, Any]] = [_text(text)] if text else []
    for call in message.get("toolCalls") or ():
        function = call["function"]
        parts.append(
            {
                "type": "tool_call",
                "id": call["id"],
                "name": function["name"],
                "arguments": function["arguments"],
            }
        )
    return {"role": message["role"], "parts": parts}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
