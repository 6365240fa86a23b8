"""`lousho resume`: finish an unfinished run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import run_options as opt
from .globals import Globals, command
from .output import notice, print_json

if TYPE_CHECKING:
    from .place import FoundSession


@command
def resume(
    options: Globals,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id, or @last.")],
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
    """Finish the unfinished run of a session. If there is none, say so and exit 0."""
    from ..errors import NothingToDoError
    from .place import find_session, open_place

    flags = opt.run_flags(
        model, max_steps, tool_concurrency, on_agent_drift, business_state, wait, ask, trust, events,
        opt.cassette_flags(cassette, record, replay), opt.budget_flags(max_tokens, max_cost, max_seconds),
    )  # fmt: skip
    place = open_place(options)
    found = find_session(place, session)
    newest = found.backend.summary(found.session_id)
    if newest is not None and newest.status == "finished" and wait == 0:
        return _nothing_to_resume(options, found)
    from .running import resume_session

    try:
        return resume_session(place, found, flags)
    except NothingToDoError:
        # Another process finished it between the look and the lock.
        return _nothing_to_resume(options, found)


def _nothing_to_resume(options: Globals, found: FoundSession) -> int:
    # Damage before its newest save is told here, not only by the run that comes next.
    state = found.backend.state(found.session_id)
    notice(f"nothing to resume: session {found.session_id} is finished")
    if options.json:
        from .run_view import finished_json

        print_json(finished_json(state, found.agent))
    return 0
