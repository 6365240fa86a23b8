"""`lousho approvals`: everything that waits for a human, over all sessions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .globals import Globals, command
from .output import notice, print_json

if TYPE_CHECKING:
    from ..stores.folder import AgentFolder
    from ..stores.reader import SessionSummary


@command
def approvals(options: Globals) -> None:
    """List what waits for a decision, oldest first."""
    from .place import open_place

    found = [each for folder in open_place(options).folders() for each in _waiting(folder)]
    found.sort(key=lambda each: each["createdAt"])
    if options.json:
        print_json({"approvals": found})
        return
    from ..render.approvals import show_approvals
    from ..render.console import surface_for

    show_approvals(surface_for(sys.stdout, no_color=options.no_color), found)


def _waiting(folder: AgentFolder) -> Iterator[dict[str, Any]]:
    """The undecided approvals of an agent. What cannot be read is reported and does not hide the others."""
    from ..errors import StorageError
    from ..stores.reader import summaries

    for session in summaries(folder):
        if session.problem is not None:
            notice(f"{session.problem} [{session.problem.code}]")
        if session.approval is None or not session.approval.get("id"):
            continue
        try:
            request = _undecided(folder, session.approval)
        except StorageError as error:
            notice(f"{error} [{error.code}]")
            request = session.approval
        if request is not None:
            yield _approval_json(session, request)


def _undecided(folder: AgentFolder, pending: dict[str, Any]) -> dict[str, Any] | None:
    """What is asked, or None if it is decided."""
    from ..stores.approvals_reader import decision_data, request_data

    approval_id = str(pending["id"])
    if decision_data(folder, approval_id) is not None:
        return None
    if "digest" in pending:
        return pending
    # A session that another program wrote says less than its request does.
    request = request_data(folder, approval_id)
    return pending if request is None else pending | request["pending"]


def _approval_json(session: SessionSummary, pending: dict[str, Any]) -> dict[str, Any]:
    known = {
        "id": "", "sessionId": session.session_id, "agent": session.agent, "toolName": "", "toolCallId": "",
        "args": None, "createdAt": session.at, "kind": "needs-approval",
    }  # fmt: skip
    return known | {name: value for name, value in pending.items() if name != "digest"}
