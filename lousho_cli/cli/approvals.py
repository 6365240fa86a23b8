"""`lousho approvals`: everything that waits for a human, over all sessions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .globals import Globals, command
from .output import notice, print_json

if TYPE_CHECKING:
    from ..stores.reader import SessionSummary
    from .place import Place


@command
def approvals(options: Globals) -> None:
    """List what waits for a decision, oldest first."""
    from .place import open_place

    found = sorted(_waiting(open_place(options)), key=lambda each: str(each["createdAt"]))
    if options.json:
        print_json({"approvals": found})
        return
    from ..render.approvals import show_approvals
    from ..render.console import surface_for

    show_approvals(surface_for(sys.stdout, no_color=options.no_color), found)


def _waiting(place: Place) -> Iterator[dict[str, Any]]:
    """The undecided approvals. What cannot be read is reported and does not hide the others."""
    from ..errors import StorageError

    for backend, session in place.sessions():
        if session.problem is not None:
            notice(f"{session.problem} [{session.problem.code}]")
        if session.approval is None or not session.approval.get("id"):
            continue
        try:
            request = backend.undecided(session.approval)
        except StorageError as error:
            notice(f"{error} [{error.code}]")
            request = session.approval
        if request is not None:
            yield _approval_json(session, request)


def _approval_json(session: SessionSummary, pending: dict[str, Any]) -> dict[str, Any]:
    known = {
        "id": "", "sessionId": session.session_id, "agent": session.agent, "toolName": "", "toolCallId": "",
        "args": None, "createdAt": session.at, "kind": "needs-approval",
    }  # fmt: skip
    return known | {name: value for name, value in pending.items() if name != "digest"}
