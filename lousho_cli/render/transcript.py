"""The view of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .console import Surface
from .conversation import Call, Entry, Result, conversation
from .outcome import STYLES
from .text import escape, escape_line
from .values import json_line, raw_block, raw_line

_ROLE_STYLE = {"user": "bold blue", "assistant": "bold green"}


def show_transcript(surface: Surface, messages: Sequence[Mapping[str, Any]]) -> None:
    """Print a transcript: messages as stored (`role`, `content`, `toolCalls`, `toolCallId`, `isError`).

    On a terminal each call has its result under it. In a pipe nothing is cut and every line starts with the
    number of the message and what the line is, separated by tabs: `user`, `assistant` or `system` with a
    line of the text, `part` with JSON, `call` with name, id and arguments, `result` with name, id, outcome
    and content.
    """
    for entry in conversation(messages):
        if surface.terminal:
            _show_entry(surface, entry)
        else:
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


def _show_entry(surface: Surface, entry: Entry) -> None:
    from rich.text import Text

    console = surface.console
    if entry.number > 1:
        console.print()
    title = "result that no turn asked for" if entry.role == "tool" else escape_line(entry.role)
    console.print(Text(title, _ROLE_STYLE.get(entry.role, "bold dim")))
    if entry.text:
        _indented(surface, escape(entry.text), 2)
    elif not (entry.parts or entry.calls):
        _indented(surface, "(empty)", 2, "dim")
    for part in entry.parts:
        from .fit import shorten

        room = max(20, 3 * surface.width)
        _indented(surface, shorten(json_line(part), room, surface.mark("more")), 2, "dim")
    for call in entry.calls:
        _show_call(surface, call)


def _show_call(surface: Surface, call: Call) -> None:
    from rich.text import Text

    surface.console.print(
        Text.assemble(
            (f"  {surface.mark('call')} ", "dim"),
            (escape_line(call.name), "cyan"),
            (f"  {escape_line(call.id)}", "dim"),
        ),
        soft_wrap=True,
    )
    if call.asked:
        _indented(surface, raw_block(call.arguments, surface.width - 4), 4)
    if call.result is None:
        _indented(surface, f"{surface.mark('wait')} no result yet", 4, STYLES["wait"])
    else:
        _show_result(surface, call.result)


def _show_result(surface: Surface, result: Result) -> None:
    outcome = result.outcome
    mark = surface.mark(outcome.mark)
    if outcome.mark == "ok":
        body = raw_block(result.content, surface.width - 6)
        _indented(surface, body or '""', 4, mark=mark, mark_style=outcome.style)
    else:
        label = escape_line(outcome.label)
        text = f"{label}: {escape(outcome.reason)}" if outcome.reason else label
        _indented(surface, text, 4, outcome.style, mark=mark, mark_style=outcome.style)


def _indented(
    surface: Surface,
    text: str,
    indent: int,
    style: str = "",
    *,
    mark: str = "",
    mark_style: str = "",
) -> None:
    """Print text wrapped within a left margin, with a mark before its first line."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=0)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    margin = Text(" " * indent + (f"{mark} " if mark else ""), mark_style)
    grid.add_row(margin, Text(text, style, overflow="fold"))
    surface.console.print(grid)
