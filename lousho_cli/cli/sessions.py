"""`lousho sessions`: the sessions of a workspace."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .globals import Globals, command
from .output import notice, print_json

if TYPE_CHECKING:
    from ..stores.reader import SessionSummary

Status = Literal["in-progress", "awaiting-approval", "finished", "damaged"]


@command
def sessions(
    options: Globals,
    status: Annotated[Status | None, typer.Option("--status", help="Only sessions of this status.")] = None,
) -> None:
    """List the sessions of the workspace, the one last active first."""
    from .place import open_place

    found = (each for _, each in open_place(options).sessions())
    wanted = [each for each in found if status in (None, each.status)]
    listed = [session_json(each) for each in sorted(wanted, key=lambda each: each.at, reverse=True)]
    for each in wanted:
        if each.problem is not None:
            notice(f"{each.problem} [{each.problem.code}]")
    if options.json:
        print_json({"sessions": listed})
        return
    from ..render.console import surface_for
    from ..render.sessions import show_sessions

    show_sessions(surface_for(sys.stdout, no_color=options.no_color), listed)


def session_json(session: SessionSummary) -> dict[str, Any]:
    """A session as it is listed: what the two ends of its file say."""
    if session.problem is not None:
        return {
            "sessionId": session.session_id,
            "agent": session.agent,
            "status": session.status,
            "error": {"code": session.problem.code, "message": session.problem.message},
        }
    data: dict[str, Any] = {
        "sessionId": session.session_id,
        "agent": session.agent,
        "status": session.status,
        "steps": session.step,
        "step": session.step,
        "seq": session.seq,
        "savedAt": session.at,
    }
    optional = {
        "createdAt": session.created_at,
        "parent": session.parent,
        "approvalId": session.approval and session.approval.get("id"),
        "finishReason": session.finish_reason,
    }
    return data | {name: value for name, value in optional.items() if value}
