"""The views of what waits for a human: the list, and one request with exactly what would run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .console import Surface
from .table import Cell, Column, show_table
from .text import ago, escape_line
from .values import json_line, json_pretty

_COLUMNS = (
    Column("approval"),
    Column("session"),
    Column("agent"),
    Column("tool"),
    Column("age", right=True),
    Column("arguments", clips=True),
)
_PLAIN_WIDTH = 100
_INTERRUPTED = "This call was interrupted: IT MAY ALREADY HAVE HAPPENED. Approving it runs it again."


def show_approvals(
    surface: Surface, approvals: Sequence[Mapping[str, Any]], now: datetime | None = None
) -> None:
    """Print pending approvals: `id, sessionId, agent, toolName, args, kind, createdAt`.

    In a pipe each is one line of tab-separated fields: id, session, agent, tool, createdAt, arguments, kind.
    """
    if not surface.terminal:
        for approval in approvals:
            kind = escape_line(str(approval.get("kind") or "needs-approval"))
            surface.line(*(cell.text for cell in _row(approval, None)), kind)
        return
    if not approvals:
        surface.console.print("nothing waits for a decision", style="dim")
        return
    instant = now or datetime.now(UTC)
    show_table(surface, _COLUMNS, [_row(approval, instant) for approval in approvals])


def _row(approval: Mapping[str, Any], now: datetime | None) -> list[Cell]:
    created = str(approval.get("createdAt") or "")
    doubt = "may have run! " if now and approval.get("kind") == "interrupted" else ""
    return [
        Cell(escape_line(str(approval.get("id", ""))), "bold"),
        Cell(escape_line(str(approval.get("sessionId") or ""))),
        Cell(escape_line(_whose(approval))),
        Cell(escape_line(str(approval.get("toolName", ""))), "cyan"),
        Cell(ago(created, now) if now else escape_line(created), "dim"),
        Cell(doubt + json_line(approval.get("args")), "magenta" if doubt else "dim"),
    ]


def show_approval_panel(
    surface: Surface,
    approval: Mapping[str, Any],
    *,
    agent: str | None = None,
    workspace: str | None = None,
    now: datetime | None = None,
) -> None:
    """Print one request: the tool, every argument in full, who asks, and the commands that decide it.

    `agent` and `workspace` are repeated in the commands when the person gave them.
    """
    if surface.terminal:
        _show_panel(surface, approval, _commands(approval, agent, workspace), now)
    else:
        _plain_panel(surface, approval, _commands(approval, agent, workspace))


def _path(approval: Mapping[str, Any]) -> list[str]:
    """The sub-agents whose call it is, outermost first."""
    return [str(name) for name in approval.get("subagent") or ()]


def _whose(approval: Mapping[str, Any]) -> str:
    return " > ".join([str(approval.get("agent") or ""), *_path(approval)])


def _commands(approval: Mapping[str, Any], agent: str | None, workspace: str | None) -> list[tuple[str, str]]:
    parts = ["lousho", "approve", str(approval.get("id", ""))]
    for flag, value in (("--agent", agent), ("--workspace", workspace)):
        if value is not None:
            parts += [flag, value]
    command = escape_line(shlex.join(parts))
    commands = [("approve", command), ("reject", f'{command} --reject --note "..."')]
    if approval.get("kind") == "interrupted":
        commands.append(("it ran", f"{command} --result JSON"))
    return commands


def _facts(approval: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = (
        ("session", approval.get("sessionId")),
        ("agent", approval.get("agent")),
        ("sub-agent", " > ".join(_path(approval))),
        ("call", approval.get("toolCallId")),
    )
    return [(name, escape_line(str(value))) for name, value in pairs if value]


def _plain_panel(surface: Surface, approval: Mapping[str, Any], commands: list[tuple[str, str]]) -> None:
    surface.line(f"approval needed: {escape_line(str(approval.get('id', '')))}")
    if approval.get("kind") == "interrupted":
        surface.line(_INTERRUPTED)
    surface.line(f"tool: {escape_line(str(approval.get('toolName', '')))}")
    surface.line(f"arguments: {json_pretty(approval.get('args'), _PLAIN_WIDTH)}")
    for name, value in _facts(approval):
        surface.line(f"{name}: {value}")
    for field in ("createdAt", "expiresAt"):
        if approval.get(field):
            surface.line(f"{field}: {escape_line(str(approval[field]))}")
    for name, command in commands:
        surface.line(f"{name}: {command}")


def _show_panel(
    surface: Surface,
    approval: Mapping[str, Any],
    commands: list[tuple[str, str]],
    now: datetime | None,
) -> None:
    from rich.text import Text

    console = surface.console
    rule = surface.mark("rule")
    title = " approval needed "
    console.print(
        Text.assemble(
            (rule * 2, "dim"),
            (title, "bold yellow"),
            (rule * (surface.width - len(title) - 2), "dim"),
        )
    )
    if approval.get("kind") == "interrupted":
        console.print(Text(_INTERRUPTED, "bold red"))
    console.print(Text(escape_line(str(approval.get("toolName", ""))), "bold cyan"), soft_wrap=True)
    console.print(Text(json_pretty(approval.get("args"), surface.width)), soft_wrap=True)
    facts = Text("\n").join(_fact_lines(approval, now or datetime.now(UTC)))
    console.print(facts, soft_wrap=True)
    console.print(Text(rule * surface.width, "dim"))
    for name, command in commands:
        console.print(Text.assemble((f"{name:<9}", "dim"), (command, "bold")), soft_wrap=True)


def _fact_lines(approval: Mapping[str, Any], now: datetime) -> list[Any]:
    from rich.text import Text

    facts = _facts(approval)
    for name, field in (("asked", "createdAt"), ("expires", "expiresAt")):
        if approval.get(field):
            facts.append((name, ago(str(approval[field]), now)))
    return [Text.assemble((f"{name:<9}", "dim"), value) for name, value in facts]
