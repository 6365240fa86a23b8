"""`lousho fork`: a new session from a kept save of another, with a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .globals import Globals, command
from .output import notice, print_json, print_text

if TYPE_CHECKING:
    from .fork_patch import Changes
    from .place import FoundSession, Place


@command
def fork(
    options: Globals,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id, or @last.")],
    from_step: Annotated[
        int | None, typer.Option("--from-step", metavar="N", help="Fork from the newest save of this step.")
    ] = None,
    at: Annotated[
        int | None, typer.Option("--at", metavar="SEQ", help="Fork from this save (see lousho history).")
    ] = None,
    tool_result: Annotated[
        str | None,
        typer.Option(
            "--tool-result",
            metavar="CALL=JSON",
            help="Another result for a tool call: its id, or the name of a tool called once up to there.",
        ),
    ] = None,
    append_input: Annotated[
        str | None,
        typer.Option("--append-input", metavar="TEXT", help="Say this too; - reads it from standard input."),
    ] = None,
    messages: Annotated[
        str | None,
        typer.Option(
            "--messages", metavar="FILE", help="A JSON list of messages instead; - reads standard input."
        ),
    ] = None,
    business_state: Annotated[
        str | None, typer.Option("--business-state", metavar="JSON", help="Another business state.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Its id; SESSION.fork-N by default.")
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Run it, as lousho resume does.")] = False,
) -> int:
    """Make a new session from a kept save of another, with a change. The other stays as it is."""
    from ..errors import ConfigurationError
    from ..stores.ids import check_id
    from .fork_patch import read_options
    from .place import find_session, open_place

    changes = read_options(tool_result, append_input, messages, business_state)
    if name is not None:
        check_id(name)
    place = open_place(options)
    found = find_session(place, session, deleted=True)
    if (from_step is None) == (at is None):
        raise ConfigurationError(
            "say where to fork: --from-step N, or --at SEQ",
            hint=f"{place.command('history', found.session_id)} lists both",
        )
    made = _fork(found, from_step, at, changes, name)
    if run:
        return _go_on(place, made)
    _report(place, made)
    return 0


def _fork(
    source: FoundSession, from_step: int | None, at: int | None, changes: Changes, name: str | None
) -> FoundSession:
    from ..execution.fork_stores import fork_session
    from ..execution.sync import run_sync
    from .fork_patch import patched
    from .place import FoundSession

    store, session_id = source.backend.store().checkpoints, source.session_id
    forked = run_sync(
        lambda: fork_session(store, session_id, from_step, at, name, lambda save: patched(save, changes))
    )
    return FoundSession(source.backend, forked.session_id, source.agent)


def _go_on(place: Place, made: FoundSession) -> int:
    from .run_options import RunFlags
    from .running import resume_session

    if not place.options.quiet:
        notice(_origin(made))
    return resume_session(place, made, RunFlags())


def _report(place: Place, made: FoundSession) -> None:
    if place.options.json:
        parent = _parent(made)
        print_json(
            {
                "sessionId": made.session_id,
                "step": parent["step"],
                "parent": {"sessionId": parent["sessionId"], "seq": parent["seq"]},
            }
        )
        return
    print_text(made.session_id)
    if not place.options.quiet:
        notice(_origin(made))
        notice(f"next: {place.command('resume', made.session_id)}")


def _origin(made: FoundSession) -> str:
    parent = _parent(made)
    where = f"step {parent['step']} (save {parent['seq']})"
    return f"{made.session_id} is forked from {parent['sessionId']}, {where}"


def _parent(made: FoundSession) -> dict[str, Any]:
    header = made.backend.header(made.session_id)
    assert header is not None
    assert header.parent is not None
    return header.parent
