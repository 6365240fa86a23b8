"""`lousho delete`: remove a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .errors import FAILED
from .globals import Globals, command
from .output import notice, print_json, print_text

if TYPE_CHECKING:
    from .place import FoundSession, Place


@command
def delete(
    options: Globals,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id, or @last.")],
    keep_history: Annotated[
        bool, typer.Option("--keep-history", help="Keep its saves: they can still be listed and forked.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> int:
    """Delete a session. Its forks have all they need and stay."""
    from ..execution.sync import run_sync
    from .place import open_place

    place = open_place(options)
    found = _find(place, session, keep_history)
    if not yes and not _confirmed(place, found, keep_history):
        notice("nothing was deleted")
        return FAILED
    checkpoints = found.backend.store().checkpoints
    run_sync(lambda: checkpoints.delete(found.session_id, keep_history=keep_history))
    if options.json:
        print_json({"sessionId": found.session_id, "deleted": True, "historyKept": keep_history})
        return 0
    print_text(f"deleted {found.session_id}")
    if keep_history and not options.quiet:
        notice(f"its history is kept: {place.command('history', found.session_id)}")
    return 0


def _find(place: Place, given: str, keep_history: bool) -> FoundSession:
    """The session meant. One that is damaged, or whose history is all that is left, can be deleted."""
    from ..errors import StorageError
    from .place import FoundSession, find_session

    try:
        return find_session(place, given, deleted=not keep_history)
    except StorageError:
        having = [backend for backend in place.backends if backend.owner(given) is not None]
        if keep_history or len(having) != 1:
            raise
        return FoundSession(having[0], given, having[0].owner(given) or "")


def _confirmed(place: Place, found: FoundSession, keep_history: bool) -> bool:
    from ..errors import ConfigurationError
    from .questions import ask_yes, can_ask

    if not can_ask():
        raise ConfigurationError(
            f"deleting session {found.session_id!r} needs a yes, and there is no terminal to ask on",
            hint="add --yes",
        )
    what = "session" if keep_history else "session and history"
    notice(f"{what} {found.session_id} of agent {found.agent}: {_about(found)}")
    return ask_yes("Delete it for good?")


def _about(found: FoundSession) -> str:
    from ..errors import StorageError
    from ..execution.steps import ending

    try:
        newest = found.backend.summary(found.session_id)
    except StorageError:
        return "it is damaged"
    if newest is None:
        return "deleted already, only its history is left"
    waits = f", waits for approval {newest.approval.get('id')}" if newest.approval else ""
    return f"{ending(newest.status, newest.finish_reason)}, step {newest.step}{waits}"
