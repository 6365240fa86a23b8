"""`lousho doctor`: check the installation, the workspace and what is stored; repair what is damaged."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from .errors import FAILED, STORAGE, WRONG_USAGE, exit_code
from .globals import Globals, command
from .output import notice, print_json

if TYPE_CHECKING:
    from pathlib import Path

    from ..config import Settings
    from ..doctor.examination import Examination
    from ..doctor.stored import StoredData
    from ..render.console import Surface
    from ..stores.findings import Progress


@command
def doctor(
    options: Globals,
    sessions: Annotated[
        list[str] | None,
        typer.Argument(metavar="SESSION", help="Only these sessions.", show_default=False),
    ] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --repair: show what would be done, and change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --repair: do not ask.")] = False,
) -> int:
    """Check the set-up and the stored files. Without --repair nothing is changed."""
    from ..doctor.examination import Examination, Scope
    from ..render.console import surface_for
    from .streams import private_stdout

    workspace = _workspace(options, sessions or [], repair=repair, only_repair=dry_run or yes)
    scope = Scope(workspace, sessions or None, options.agent)
    examination = Examination(scope, lambda path, settings: _stored(path, settings, options, scope.sessions))
    surface = surface_for(sys.stdout, no_color=options.no_color)
    examination.look(surface, private_stdout())
    if repair:
        if not (dry_run or yes) and not _confirmed(examination, options):
            notice("nothing was changed")
            return FAILED
        examination.repair(dry_run=dry_run)
    _show(examination, surface, options)
    codes = [exit_code(error) for error in examination.errors]
    return STORAGE if STORAGE in codes else WRONG_USAGE if codes else 0


def _workspace(options: Globals, sessions: list[str], *, repair: bool, only_repair: bool) -> Path | None:
    """The workspace to look at. An installation can be checked without one."""
    from ..errors import ConfigurationError
    from ..stores.ids import check_id
    from ..workspace import current_folder, find_workspace, require_workspace

    if only_repair and not repair:
        raise ConfigurationError("--dry-run and --yes go with --repair", hint="add --repair")
    for session in sessions:
        check_id(session)
    find = require_workspace if repair or sessions else find_workspace
    return find(options.workspace, current_folder())


def _stored(workspace: Path, settings: Settings, options: Globals, only: Sequence[str] | None) -> StoredData:
    from ..doctor.stored import check_stored
    from .place import Place

    place = Place(workspace, settings, options)
    with _progress(options) as progress:
        return check_stored(lambda: place.backends, place.is_wanted, progress, only)


@contextmanager
def _progress(options: Globals) -> Iterator[Progress]:
    """How far the check is, on stderr."""
    from ..render.console import surface_for
    from ..render.progress import CountedProgress

    surface = surface_for(sys.stderr, no_color=options.no_color)
    if options.quiet or (options.json and not surface.terminal):
        yield lambda done, total: None
        return
    progress = CountedProgress(surface, "checking sessions")
    try:
        yield progress.show
    finally:
        progress.close()


def _confirmed(examination: Examination, options: Globals) -> bool:
    """Ask whether to repair, once it is shown what would be done. Nothing to do needs no answer."""
    from ..errors import ConfigurationError
    from ..render.console import surface_for
    from ..render.doctor import show_repairs
    from .questions import ask_yes, can_ask

    planned = examination.planned()
    if not planned:
        return True
    if not can_ask():
        raise ConfigurationError(
            f"a repair of {len(planned)} files needs a yes, and there is no terminal to ask on",
            hint="add --yes, or --dry-run to see what would be done",
        )
    surface = surface_for(sys.stderr, no_color=options.no_color)
    show_repairs(surface, [each.to_json() for each in planned])
    return ask_yes("Repair this? Damaged originals are kept.")


def _show(examination: Examination, surface: Surface, options: Globals) -> None:
    """Print all of it, or with --quiet what is wrong and what was repaired."""
    data = examination.to_json()
    if options.json:
        print_json(data)
        return
    from ..render.doctor import show_checks, show_counts, show_problems, show_repairs

    checks, problems = data["checks"], data["problems"]
    if options.quiet:
        checks = [check for check in checks if check["status"] == "error"]
        problems = [problem for problem in problems if problem["severity"] == "error"]
    show_checks(surface, checks)
    show_repairs(surface, data.get("repairs", []))
    show_problems(surface, problems, every=options.verbose)
    if not options.quiet:
        show_counts(surface, data["counts"], offer_repair=examination.repairs is None)
