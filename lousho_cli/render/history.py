"""The view of a session's kept saves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .console import Surface
from .table import Cell, Column, show_table
from .text import ago, escape_line

STATUS_STYLE = {"finished": "green", "in-progress": "yellow", "awaiting-approval": "magenta"}
_COLUMNS = (
    Column("save", right=True),
    Column("step", right=True),
    Column("status"),
    Column("when", right=True),
    Column("msgs", right=True),
    Column("what happened", wraps=True),
)


def show_history(
    surface: Surface,
    session_id: str,
    entries: Sequence[Mapping[str, Any]],
    now: datetime | None = None,
) -> None:
    """Print the saves of a session, newest first: `seq, step, status, savedAt, messages, event`, and where
    they apply `tools, approvalId, finishReason, note`.

    In a pipe each save is one line of tab-separated fields: seq, step, status, savedAt, number of messages,
    what happened.
    """
    if not surface.terminal:
        for entry in entries:
            surface.line(*(cell.text for cell in _row(entry, None)))
        return
    from rich.text import Text

    surface.console.print(
        Text.assemble((escape_line(session_id), "bold"), ("  newest first", "dim")), soft_wrap=True
    )
    instant = now or datetime.now(UTC)
    show_table(surface, _COLUMNS, [_row(entry, instant) for entry in entries])


def _row(entry: Mapping[str, Any], now: datetime | None) -> list[Cell]:
    status = str(entry.get("status") or "in-progress")
    saved_at = str(entry.get("savedAt") or "")
    return [
        Cell(str(entry.get("seq", ""))),
        Cell(str(entry.get("step", ""))),
        Cell(escape_line(status), STATUS_STYLE.get(status, "")),
        Cell(ago(saved_at, now) if now else escape_line(saved_at), "dim"),
        Cell(str(entry.get("messages", "")), "dim"),
        Cell(what_happened(entry)),
    ]


def what_happened(entry: Mapping[str, Any]) -> str:
    """What a save records, in a few words on one line, from its `event` and the fields that go with it."""
    tools = _names(entry.get("tools") or [], entry.get("failed") or [])
    text = _EVENTS.get(str(entry.get("event")), _other)(entry, tools)
    note = entry.get("note")
    return f"{text}: {escape_line(str(note))}" if note else text


def _names(tools: Sequence[Any], failed: Sequence[Any]) -> list[str]:
    """The tools' names, those whose result is an error marked so."""
    left = list(failed)
    names = []
    for tool in tools:
        name = escape_line(str(tool))
        if tool in left:
            left.remove(tool)
            name = f"{name} (failed)"
        names.append(name)
    return names


def _always(text: str) -> Callable[[Mapping[str, Any], list[str]], str]:
    return lambda entry, tools: text


def _other(entry: Mapping[str, Any], tools: list[str]) -> str:
    return escape_line(str(entry.get("event") or "saved"))


def _turn(entry: Mapping[str, Any], tools: list[str]) -> str:
    return f"model asked for {', '.join(tools)}" if tools else "model answered"


def _result(entry: Mapping[str, Any], tools: list[str]) -> str:
    if len(tools) > 1:
        return f"{len(tools)} results: {', '.join(tools)}"
    return f"result of {tools[0]}" if tools else "result recorded"


def _pause(entry: Mapping[str, Any], tools: list[str]) -> str:
    text = f"waits for approval of {', '.join(tools)}" if tools else "waits for approval"
    approval_id = entry.get("approvalId")
    return f"{text} {escape_line(str(approval_id))}" if approval_id else text


def _decision(entry: Mapping[str, Any], tools: list[str]) -> str:
    return f"decision on {', '.join(tools)}" if tools else "decision"


def _start(entry: Mapping[str, Any], tools: list[str]) -> str:
    return f"starts {', '.join(tools)}" if tools else "starts a call"


def _finish(entry: Mapping[str, Any], tools: list[str]) -> str:
    reason = entry.get("finishReason")
    return f"finished ({escape_line(str(reason))})" if reason else "finished"


_EVENTS: dict[str, Callable[[Mapping[str, Any], list[str]], str]] = {
    "input": _always("new input"),
    "turn": _turn,
    "result": _result,
    "pause": _pause,
    "decision": _decision,
    "start": _start,
    "abort": _always("aborted"),
    "finish": _finish,
    "queue": _always("input queued"),
    "fork": _always("forked"),
    "drift": _always("agent changed"),
    "delete": _always("session deleted, history kept"),
    "sub": _always("a sub-agent went on"),
    "save": _always("saved"),
}
