"""Surfaces that write into memory, and hostile text, for the tests of the views."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

from lousho_cli.render.console import Surface

HOSTILE = "a\x1b[31m\x9b2J\u202eb\u200b\ufeff\x07\x7f\r[bold]x[/bold] :smile: \ud800"
"""Text with terminal controls, invisible characters, console markup and a lone surrogate."""

RAW = ("\x1b", "\x9b", "\u202e", "\u200b", "\ufeff", "\x07", "\x7f", "\r", "\ud800")


def pipe() -> Surface:
    return Surface(stream=StringIO())


def screen(width: int = 80, *, unicode: bool = True, live: bool = False) -> Surface:
    """A terminal without colour, so that what it shows is plain text."""
    return Surface(StringIO(), terminal=True, live=live, unicode=unicode, fixed_width=width)


def shown(surface: Surface) -> str:
    stream = surface.stream
    assert isinstance(stream, StringIO)
    return stream.getvalue()


def assert_harmless(text: str) -> None:
    """Nothing that a terminal would act on or hide, and markup left as it was."""
    assert not [char for char in RAW if char in text]
    assert "[bold]x[/bold] :smile:" in text


def call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def result(call_id: str, name: str, value: Any, *, error: bool = False) -> dict[str, Any]:
    message = {"role": "tool", "content": json.dumps(value), "toolCallId": call_id, "toolName": name}
    return {**message, "isError": True} if error else message
