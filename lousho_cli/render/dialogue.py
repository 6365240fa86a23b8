"""A conversation on a terminal: who said what, and each call with what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.text import Text

from .console import Surface
from .conversation import Call, Entry, Result
from .fit import shorten
from .outcome import STYLES
from .text import escape, escape_line
from .values import json_line, raw_block

_ROLE_STYLE = {"user": "bold blue", "assistant": "bold green"}


def show_dialogue(surface: Surface, entries: Iterable[Entry]) -> None:
    """Print entries as they come, a blank line between them."""
    for number, entry in enumerate(entries):
        if number:
            surface.console.print()
        surface.console.print(Text("\n").join(_entry(surface, entry)), soft_wrap=True)


def _entry(surface: Surface, entry: Entry) -> Iterator[Text]:
    title = "result that no turn asked for" if entry.role == "tool" else escape_line(entry.role)
    yield Text(title, _ROLE_STYLE.get(entry.role, "bold dim"))
    if entry.text:
        yield from _block(surface, escape(entry.text), Text("  "))
    elif not (entry.parts or entry.calls):
        yield Text("  (empty)", "dim")
    for part in entry.parts:
        yield Text(f"  {shorten(json_line(part), surface.width - 2, surface.mark('more'))}", "dim")
    for call in entry.calls:
        yield from _call(surface, call)


def _call(surface: Surface, call: Call) -> Iterator[Text]:
    yield Text.assemble(
        (f"  {surface.mark('call')} ", "dim"),
        (escape_line(call.name), "cyan"),
        (f"  {escape_line(call.id)}", "dim"),
    )
    if call.asked:
        yield from _block(surface, raw_block(call.arguments, surface.width - 4), Text("    "))
    if call.result is None:
        yield Text(f"    {surface.mark('wait')} no result yet", STYLES["wait"])
    else:
        yield from _result(surface, call.result)


def _result(surface: Surface, result: Result) -> Iterator[Text]:
    outcome = result.outcome
    margin = Text(f"    {surface.mark(outcome.mark)} ", outcome.style)
    if outcome.mark == "ok":
        body = raw_block(result.content, surface.width - margin.cell_len)
        yield from _block(surface, body or '""', margin)
    else:
        label = escape_line(outcome.label)
        text = f"{label}: {escape(outcome.reason)}" if outcome.reason else label
        yield from _block(surface, text, margin, outcome.style)


def _block(surface: Surface, text: str, margin: Text, style: str = "") -> Iterator[Text]:
    """`text` wrapped to the width behind a left margin, which is blank after the first line."""
    room = max(10, surface.width - margin.cell_len)
    for line in text.split("\n"):
        whole = Text(line, style)
        fits = "\t" not in line and cell_len(line) <= room
        for part in [whole] if fits else whole.wrap(surface.console, room, overflow="fold"):
            yield Text.assemble(margin, part)
            margin = Text(" " * margin.cell_len)
