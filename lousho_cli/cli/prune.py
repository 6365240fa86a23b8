"""`lousho prune`: remove old sessions, and compact the journals of the others."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .errors import FAILED, exit_code
from .globals import Globals, command
from .output import notice, print_json

if TYPE_CHECKING:
    from datetime import datetime

    from ..stores.prune_run import Plan, Pruned
    from ..stores.retention import Criteria
    from .place import Place

Status = Literal["in-progress", "awaiting-approval", "finished"]
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@command
def prune(
    options: Globals,
    sessions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SESSION", help="Only these sessions, unfinished ones too.", show_default=False
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Last saved so long ago: 30d, 12h, 2w, 90m."),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", min=0, help="The N sessions with the newest saves stay."),
    ] = None,
    status: Annotated[Status | None, typer.Option("--status", help="Only sessions of this status.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> int:
    """Remove old sessions, and compact the journals of the others. Without a condition it only compacts.

    A session is removed that meets every condition given. One that is unfinished or waits for an approval is
    only removed if it is named, and one that is being run never.
    """
    from ..stores.prune_run import carry_out, plan_pruning
    from .place import open_place

    place = open_place(options)
    criteria = _criteria(place, sessions or [], older_than, keep, status)
    plan = plan_pruning(place.sessions(), criteria)
    if plan.removals and not (dry_run or yes) and not _confirmed(plan, options):
        notice("nothing was removed")
        return FAILED
    done = carry_out(plan, dry_run=dry_run)
    _show(done, options)
    return 0 if done.problem is None else exit_code(done.problem)


def _criteria(
    place: Place, names: list[str], older_than: str | None, keep: int | None, status: str | None
) -> Criteria:
    from ..errors import ConfigurationError
    from ..stores.retention import Criteria
    from .place import find_session

    if status not in (None, "finished") and not names:
        raise ConfigurationError(
            "a session that is unfinished or waits for an approval is only removed by its name",
            hint=f"name it; {place.command('sessions', '--status', status)} lists them",
        )
    before = None if older_than is None else _instant(older_than)
    found = [find_session(place, name) for name in names]
    named = frozenset((each.agent, each.session_id) for each in found) if names else None
    return Criteria(named, before, keep, status)


def _instant(age: str) -> datetime:
    """The instant that was so long ago."""
    from datetime import UTC, datetime, timedelta

    from ..errors import ConfigurationError

    match = re.fullmatch(r"([0-9]{1,7})([mhdw])", age.strip().lower())
    try:
        if match is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError:
        pass
    raise ConfigurationError(
        f"--older-than: {age!r} is not an age", hint="a number and m, h, d or w: 90m, 12h, 30d, 2w"
    )


def _confirmed(plan: Plan, options: Globals) -> bool:
    """Ask whether to remove, once it is shown what."""
    from ..errors import ConfigurationError
    from ..render.console import surface_for
    from ..render.prune import announce
    from .questions import ask_yes, can_ask

    if not can_ask():
        what = "1 session" if len(plan.removals) == 1 else f"{len(plan.removals)} sessions"
        raise ConfigurationError(
            f"removing {what} needs a yes, and there is no terminal to ask on",
            hint="add --yes, or --dry-run to see what would be removed",
        )
    surface = surface_for(sys.stderr, no_color=options.no_color)
    announce(surface, [each.to_json() for each in plan.removals], each_session=options.verbose)
    return ask_yes("Remove this for good?")


def _show(done: Pruned, options: Globals) -> None:
    data = done.to_json()
    if options.json:
        print_json(data)
        return
    from ..render.console import surface_for
    from ..render.prune import show_pruned

    for each in done.skipped:
        code = f" [{each.problem.code}]" if each.problem is not None else ""
        notice(f"skipped {each.session.session_id}: {each.reason}{code}")
    surface = surface_for(sys.stdout, no_color=options.no_color)
    show_pruned(surface, data, each_session=options.verbose, quiet=options.quiet)
