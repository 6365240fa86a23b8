"""`lousho show`: a session's transcript, now or at one of its saves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .globals import Globals, command
from .output import notice, print_json

if TYPE_CHECKING:
    from ..execution.messages import MessageData
    from ..execution.state import State
    from .place import FoundSession, Place


@command
def show(
    options: Globals,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id, or @last.")],
    at: Annotated[
        int | None, typer.Option("--at", metavar="SEQ", help="As it was at this save (see lousho history).")
    ] = None,
) -> None:
    """Show the transcript of a session."""
    from .place import find_session, open_place

    place = open_place(options)
    found = find_session(place, session, deleted=at is not None)
    state = found.backend.state(found.session_id, at)
    if options.json:
        print_json(state_json(state, found))
        return
    _show(place, found, state, at)


def state_json(state: State, found: FoundSession) -> dict[str, Any]:
    """A session as it is stored, in the shape that `lousho show --json` documents."""
    data: dict[str, Any] = {
        "sessionId": found.session_id,
        "agent": state.agent or found.agent,
        "status": state.status,
        "seq": state.seq,
        "savedAt": state.saved_at,
        "stepIndex": state.step,
        "messages": _messages(state),
        "usage": state.usage,
        "finishReason": state.finish_reason,
        "businessState": state.business_state,
    }
    optional = {
        "approvalId": state.approval and state.approval.get("id"),
        "parent": state.parent,
        "results": list(state.results.values()),
        "queued": list(state.queue),
    }
    return data | {name: value for name, value in optional.items() if value}


def _messages(state: State) -> list[MessageData]:
    system: list[MessageData] = []
    if state.system is not None:
        system = [{"role": "system", "content": state.system}]
    return [*system, *state.log]


def _show(place: Place, found: FoundSession, state: State, at: int | None) -> None:
    from ..execution.messages import text_of
    from ..render.console import surface_for
    from ..render.text import escape_line
    from ..render.transcript import show_transcript

    surface = surface_for(sys.stdout, no_color=place.options.no_color)
    # A result that waits for an earlier call of its turn is shown under its own call.
    show_transcript(surface, [*_messages(state), *state.results.values()])
    for message in state.queue:
        text = escape_line(text_of(message["content"]))
        if surface.terminal:
            surface.line(f"queued behind the open calls: {text}")
        else:
            surface.line("queued", escape_line(message["role"]), text)
    if not place.options.quiet:
        for line in _about(place, found, state, at):
            notice(line)


def _about(place: Place, found: FoundSession, state: State, at: int | None) -> list[str]:
    """What a person reading the transcript may want to know or do next."""
    from ..execution.steps import ending

    what = f"session {found.session_id} of agent {found.agent}"
    lines = [f"{what}: {ending(state.status, state.finish_reason)}, step {state.step}, save {state.seq}"]
    if at is not None:
        lines.append(f"go on from here with: {place.command('fork', found.session_id, '--at', str(at))}")
    elif state.approval is not None:
        lines.append(f"decide with: {place.command('approve', str(state.approval.get('id')))}")
    elif state.status == "in-progress":
        lines.append(f"go on with: {place.command('resume', found.session_id)}")
    return lines
