"""The view of what `lousho doctor` found and repaired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from .console import Surface
from .text import escape_line

Item = Mapping[str, Any]

_AREAS = {
    "installation": "installation", "terminal": "terminal", "workspace": "workspace", "agents": "agents",
    "store": "stored data",
}  # fmt: skip
_LOOK = {
    "ok": ("ok", "green"), "absent": ("dot", "dim"), "notice": ("dot", "cyan"),
    "skipped": ("stopped", "dim"), "warning": ("warning", "yellow"), "error": ("failed", "red"),
    "repaired": ("ok", "green"), "planned": ("wait", "cyan"), "failed": ("failed", "red"),
}  # fmt: skip
_ORDER = ("error", "warning", "notice")
_SHOWN_OF_A_KIND = 5


def show_checks(surface: Surface, checks: Sequence[Item]) -> None:
    """Print checks: `area, name, status, message, fix?`.

    In a pipe each is one line of tab-separated fields: `check`, status, area, name, message, fix.
    """
    if not surface.terminal:
        for each in checks:
            surface.line("check", *_fields(each, "status", "area", "name", "message", "fix"))
        return
    width = max((len(each["name"]) for each in checks), default=0)
    for number, (area, group) in enumerate(groupby(checks, lambda each: each["area"])):
        if number:
            surface.console.print()
        _line(surface, (_AREAS.get(area, area), "bold"))
        for each in group:
            name = escape_line(each["name"]).ljust(width)
            dim = "dim" if each["status"] in ("absent", "skipped") else ""
            _line(surface, _mark(surface, each["status"]), (f" {name}  ", dim), (_text(each, "message"), dim))
            _fix(surface, each)


def show_problems(surface: Surface, problems: Sequence[Item], *, every: bool = False) -> None:
    """Print problems, the worst first: `code, severity, path, sessionId?, agent?, message, fix`.

    In a pipe each is one line of tab-separated fields: `problem`, severity, code, path, session, agent,
    message, fix. On a terminal only the first few of a kind are shown unless `every` is set.
    """
    ordered = sorted(problems, key=lambda each: (_ORDER.index(each["severity"]), each["code"]))
    if not surface.terminal:
        names = ("severity", "code", "path", "sessionId", "agent", "message", "fix")
        for each in ordered:
            surface.line("problem", *_fields(each, *names))
        return
    for number, (_, group) in enumerate(groupby(ordered, lambda each: each["code"])):
        if not number:
            surface.console.print()
            _line(surface, ("problems", "bold"))
        alike = list(group)
        shown = alike if every else alike[:_SHOWN_OF_A_KIND]
        for each in shown:
            _problem(surface, each)
        if len(alike) > len(shown):
            more = f"  {surface.mark('more')} {len(alike) - len(shown)} more of {alike[0]['code']}"
            _line(surface, (f"{more}; --verbose shows all", "dim"))


def show_counts(surface: Surface, counts: Mapping[str, int], *, offer_repair: bool) -> None:
    """Print how many problems there are, on a terminal only: a pipe has them as lines to count."""
    if not surface.terminal:
        return
    parts = [(number, name) for name in _ORDER if (number := counts[f"{name}s"])]
    surface.console.print()
    if not parts:
        _line(surface, _mark(surface, "ok"), (" no problems", "green"))
        return
    text = ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for number, name in parts)
    _line(surface, _mark(surface, parts[0][1]), (f" {text}", "bold"))
    if offer_repair and counts["repairable"]:
        text = f"  lousho doctor --repair mends {counts['repairable']} of them; --dry-run shows how"
        _line(surface, (text, "dim"))


def show_repairs(surface: Surface, repairs: Sequence[Item]) -> None:
    """Print repairs: `outcome, path, message, sessionId?, aside?, kept?, lost?`.

    In a pipe each is one line of tab-separated fields: `repair`, outcome, path, session, message, what is
    lost, where the original is kept.
    """
    if repairs and surface.terminal:
        surface.console.print()
        _line(surface, ("repairs", "bold"))
    for each in repairs:
        lost, aside = _lost(each), _text(each, "aside")
        if not surface.terminal:
            names = ("outcome", "path", "sessionId", "message")
            surface.line("repair", *_fields(each, *names), lost, aside)
            continue
        _line(
            surface,
            _mark(surface, each["outcome"]),
            (f" {each['outcome']}  ", "bold"),
            (_text(each, "path"), ""),
        )
        _prose(surface, _text(each, "message"))
        if lost:
            _prose(surface, f"lost: {lost}", "yellow")
        if aside:
            _line(surface, (f"    the original is kept: {aside}", "dim"))


def _problem(surface: Surface, each: Item) -> None:
    session = f"  session {_text(each, 'sessionId')}" if each.get("sessionId") else ""
    _line(surface, _mark(surface, each["severity"]), (f" {each['code']}", "bold"), (session, ""))
    _line(surface, (f"    {_text(each, 'path')}", "dim"))
    _prose(surface, _text(each, "message"))
    _fix(surface, each)


def _fix(surface: Surface, each: Item) -> None:
    if each.get("fix"):
        style = "cyan" if each.get("code") else "dim"
        _line(surface, (f"    {surface.mark('call')} {_text(each, 'fix')}", style))


def _lost(each: Item) -> str:
    """What a repair could not keep, in words."""
    lost = each.get("lost") or {}
    parts = [f"bytes {start}-{end}" for start, end in lost.get("bytes", ())]
    for key, what in (("missingSaves", "missing"), ("droppedSaves", "of no use without those before")):
        if lost.get(key):
            parts.append(f"saves {', '.join(map(str, lost[key]))} ({what})")
    return "; ".join(parts)


def _mark(surface: Surface, status: str) -> tuple[str, str]:
    name, style = _LOOK.get(status, ("stopped", "yellow"))
    return f"{surface.mark(name)}", style


def _line(surface: Surface, *parts: tuple[str, str]) -> None:
    from rich.text import Text

    # Paths and commands are copied from here: the terminal may break them, nobody else.
    surface.console.print(Text.assemble(*parts), soft_wrap=True)


def _prose(surface: Surface, text: str, style: str = "") -> None:
    """A sentence, indented also where it goes on in the next line."""
    from rich.text import Text

    for line in Text(text).wrap(surface.console, max(20, surface.width - 4)):
        _line(surface, (f"    {line.plain.rstrip()}", style))


def _text(each: Item, key: str) -> str:
    return escape_line(str(each.get(key) or ""))


def _fields(each: Item, *names: str) -> list[str]:
    return [_text(each, name) for name in names]
