"""The view of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .console import Surface
from .conversation import Entry, conversation
from .text import escape, escape_line
from .values import json_line, raw_line


def show_transcript(surface: Surface, messages: Sequence[Mapping[str, Any]]) -> None:
    """Print a transcript: messages as stored (`role`, `content`, `toolCalls`, `toolCallId`, `isError`).

    On a terminal each call has its result under it. In a pipe nothing is cut and every line starts with the
    number of the message and what the line is, separated by tabs: `user`, `assistant` or `system` with a
    line of the text, `part` with JSON, `call` with name, id and arguments, `result` with name, id, outcome
    and content.
    """
    if surface.terminal:
        from .dialogue import show_dialogue

        show_dialogue(surface, conversation(messages))
        return
    for entry in conversation(messages):
        _plain_entry(surface, entry)


def _plain_entry(surface: Surface, entry: Entry) -> None:
    number = str(entry.number)
    if entry.text or not (entry.parts or entry.calls):
        for line in entry.text.split("\n"):
            surface.line(number, escape_line(entry.role), escape(line))
    for part in entry.parts:
        surface.line(number, "part", json_line(part))
    for call in entry.calls:
        names = escape_line(call.name), escape_line(call.id)
        if call.asked:
            surface.line(number, "call", *names, raw_line(call.arguments))
        if call.result is None:
            surface.line(number, "result", *names, "none", "")
        else:
            kind = escape_line(call.result.outcome.kind)
            surface.line(number, "result", *names, kind, raw_line(call.result.content))
