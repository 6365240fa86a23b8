"""`lousho eval`: run evals, record them, replay them, and see how an agent drifts from its recordings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import run_options as opt
from .globals import Globals, command

if TYPE_CHECKING:
    from ..evals.results import Mode


@dataclass(frozen=True, slots=True)
class EvalFlags:
    """What was asked of an eval.

    Attributes:
        names: evals, or cases as `eval/label`; empty for all.
        mode: how cases are run.
        runs: how many runs are recorded.
        usage: tokens are compared too.
        update: what new runs would change in the recordings is worked out, and done if it is wanted.
        yes: it is wanted.
        source: the session to make a case of, or None.
        name: of the eval it becomes, or None.
        session: the session to run again, or None.
        trend: the last runs of each case are shown.
        judge: a model judges what cases want judged.
        strict: drift, and cases without a recording, fail.
        tags: of evals, one of which they must have; empty for all.
        jobs: how many cases at a time.
        stop_at_failure: begin no further case once one has failed.
        last_failed: only cases that failed last.
        report, junit: files for reports, or None.
        trust: trust the workspace.
    """

    names: tuple[str, ...]
    mode: Mode
    runs: int
    usage: bool
    update: bool
    yes: bool
    source: str | None
    name: str | None
    session: str | None
    trend: bool
    judge: bool
    strict: bool
    tags: tuple[str, ...]
    jobs: int
    stop_at_failure: bool
    last_failed: bool
    report: Path | None
    junit: Path | None
    trust: bool


@command
def eval(
    options: Globals,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAMES", help="Evals, or cases as EVAL/LABEL; all by default."),
    ] = None,
    record: Annotated[bool, typer.Option("--record", help="Keep what the model and tools answer.")] = False,
    runs: Annotated[
        int | None,
        typer.Option("--runs", min=1, metavar="N", help="Runs of each case to record or to compare."),
    ] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Play recordings; ask no model.")] = False,
    drift: Annotated[
        bool, typer.Option("--drift", help="Ask the model anew and compare with the recordings.")
    ] = False,
    drift_usage: Annotated[
        bool, typer.Option("--drift-usage", help="Like --drift, tokens included.")
    ] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Like --drift; show what new runs change in the recordings.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --update: change them, unasked.")] = False,
    source: Annotated[
        str | None, typer.Option("--from", metavar="SESSION", help="Make an eval of a session, recorded.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="With --from: the eval's name.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="SESSION", help="With --drift: run this session again instead."),
    ] = None,
    trend: Annotated[
        bool, typer.Option("--trend", help="Show how similar each case's last drift runs were.")
    ] = False,
    judge: Annotated[
        bool, typer.Option("--judge", help="Have runs judged by the model that `judge` configures.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on drift, and on cases without a recording.")
    ] = False,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="Only evals with this tag (or another).")
    ] = None,
    last_failed: Annotated[bool, typer.Option("--last-failed", help="Only cases that failed last.")] = False,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", min=1, metavar="N", show_default=False, help="Cases at a time; 4 by default."
        ),
    ] = 4,
    stop_at_failure: Annotated[
        bool, typer.Option("--stop-at-failure", "-x", help="Begin no further case once one has failed.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="PATH", help="Write a report too: JSON, or .md, or .html."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="PATH", help="Write a report as JUnit XML too.")
    ] = None,
    trust: opt.Trust = False,
) -> int:
    """Run evals: cases of agents, and what is expected of them.

    Exit code 0: all gates passed. 1: one failed. 2: could not run. 8: nothing was run or compared.
    """
    from .eval_run import run_evals
    from .eval_session import make_eval, run_session
    from .eval_trend import show_trends
    from .place import open_place

    mode = _mode({"record": record, "replay": replay, "drift": drift or drift_usage or update}, runs)
    flags = EvalFlags(
        names=tuple(names or ()),
        mode=mode,
        runs=runs or 1,
        usage=drift_usage,
        update=update,
        yes=yes,
        source=source,
        name=name,
        session=session,
        trend=trend,
        judge=judge,
        strict=strict,
        tags=tuple(tag or ()),
        jobs=jobs,
        stop_at_failure=stop_at_failure,
        last_failed=last_failed,
        report=report,
        junit=junit,
        trust=trust,
    )
    _check(flags)
    if source is not None:
        return make_eval(open_place(options), flags, source)
    if session is not None:
        return run_session(open_place(options), flags, session)
    if trend and mode == "run":
        return show_trends(open_place(options), flags)
    return run_evals(open_place(options), flags)


def _mode(given: dict[Mode, bool], runs: int | None) -> Mode:
    from ..errors import ConfigurationError

    asked: list[Mode] = [mode for mode, is_given in given.items() if is_given]
    if len(asked) > 1:
        flags = " and ".join(f"--{mode}" for mode in asked)
        raise ConfigurationError(f"{flags} exclude each other", hint="give one of them")
    mode: Mode = asked[0] if asked else "run"
    if runs is not None and mode not in ("record", "drift"):
        raise ConfigurationError(
            "--runs says how many runs to record or to compare", hint="add --record or --drift"
        )
    return mode


def _check(flags: EvalFlags) -> None:
    """See that the options fit each other."""
    from ..errors import ConfigurationError

    if flags.yes and not flags.update:
        raise ConfigurationError("--yes says that recordings may change", hint="add --update")
    if flags.name is not None and flags.source is None:
        raise ConfigurationError("--as names what --from makes", hint="add --from SESSION")
    if flags.source is not None and (flags.mode != "run" or flags.session is not None):
        raise ConfigurationError("--from makes an eval and runs nothing else", hint="give it alone")
    if flags.session is not None and (flags.mode != "drift" or flags.update):
        raise ConfigurationError("--session runs a session again and compares", hint="give it with --drift")
    if flags.names and (flags.source is not None or flags.session is not None):
        raise ConfigurationError("a session is no eval: names do not go with it", hint="leave the names out")
