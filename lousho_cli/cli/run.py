"""`lousho run`: send a message to a session, resuming first what is unfinished."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import run_options as opt
from .globals import Globals, command
from .output import notice

if TYPE_CHECKING:
    from .place import FoundSession


@command
def run(
    options: Globals,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id, or @last.")],
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="What to say; - reads it from standard input.")
    ] = None,
    model: opt.Model = None,
    max_steps: opt.MaxSteps = None,
    max_tokens: opt.MaxTokens = None,
    max_cost: opt.MaxCost = None,
    max_seconds: opt.MaxSeconds = None,
    tool_concurrency: opt.ToolConcurrency = None,
    on_agent_drift: opt.OnAgentDrift = None,
    business_state: opt.BusinessState = None,
    wait: opt.Wait = 0.0,
    ask: opt.Ask = False,
    trust: opt.Trust = False,
    events: opt.Events = False,
    cassette: opt.Cassette = None,
    record: opt.Record = False,
    replay: opt.Replay = False,
) -> int:
    """Send a message to a session; resume first what is unfinished.

    Without MESSAGE the session is resumed. Without a workspace, ./.lousho is made from the example.
    """
    from ..errors import ConfigurationError
    from ..stores.ids import check_id
    from ..workspace import current_folder, find_workspace
    from .place import look_for_session, place_at, refuse_taken_name
    from .running import choose_agent, run_session
    from .streams import read_message

    flags = opt.run_flags(
        model, max_steps, tool_concurrency, on_agent_drift, business_state, wait, ask, trust, events,
        opt.cassette_flags(cassette, record, replay), opt.budget_flags(max_tokens, max_cost, max_seconds),
    )  # fmt: skip
    check_id(session)
    text = read_message(message)
    workspace = find_workspace(options.workspace, current_folder())
    if workspace is None and not text:
        raise ConfigurationError(f"there is nothing to resume: no session {session!r}", hint="give a message")
    place = place_at(workspace or _new_workspace(), options)
    found = look_for_session(place, session)
    if not text and (found is None or _is_finished(found)):
        raise ConfigurationError(
            f"there is nothing to resume in session {session!r}", hint="give a message to go on with"
        )
    if found is not None:
        return run_session(place, found.agent, found.session_id, text, flags)
    refuse_taken_name(place, session)
    return run_session(place, choose_agent(place), session, text, flags.for_new_session())


def _is_finished(found: FoundSession) -> bool:
    newest = found.backend.summary(found.session_id)
    if newest is None or newest.status != "finished":
        return False
    # Read as a whole: damage before its newest save is told before anything else.
    return found.backend.state(found.session_id).status == "finished"


def _new_workspace() -> Path:
    from ..trust import trust
    from ..workspace import create_workspace, current_folder

    workspace, made = create_workspace(current_folder())
    if made:
        trust(workspace)
        notice(f"made {workspace} from the example: agent concierge on the offline demo model")
    return workspace
