"""Running evals from the command line: choose, run, tell, write reports, and the exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from ..errors import ConfigurationError, StorageError
from ..evals.files import EVALS_FOLDER
from ..evals.html_page import to_html
from ..evals.junit import to_junit
from ..evals.last_failed import read_last_failed
from ..evals.markdown import to_markdown
from ..evals.results import Report
from ..evals.selection import Chosen, all_cases, select, unknown_name
from ..evals.stage import Stage
from ..evals.suite import Order, evals_of, remember, run_suite, with_trends, with_updates
from ..execution.protocols import Provider
from ..providers.resolve import resolve_model
from ..render.console import surface_for
from ..render.evals import Progress, rules_of, show_report, summary
from ..render.text import escape_json
from ..workspace import agent_folder
from .errors import FAILED, NOTHING_DONE
from .eval import EvalFlags
from .interrupts import Interrupted, Interrupts, exit_at_once
from .output import notice, write_out
from .place import Place
from .questions import ask_yes, can_ask
from .run_options import RunFlags
from .running import ensure_trusted
from .streams import private_stdout

CI_VARIABLE = "CI"
EXIT_CODES = {"passed": 0, "failed": FAILED, "nothing-done": NOTHING_DONE}


def run_evals(place: Place, flags: EvalFlags) -> int:
    """Run the evals that are wanted; returns the exit code."""
    chosen = choose(place, flags)
    if chosen:
        ensure_trusted(place, RunFlags(trust=flags.trust))
    volatile = place.settings.cassette_volatile or ()
    stage = Stage(
        place.workspace,
        flags.mode,
        _in_ci(),
        flags.runs,
        flags.usage,
        volatile,
        flags.update,
        _judge(place, flags),
    )
    order = Order(flags.jobs, flags.stop_at_failure, flags.strict)
    progress = Progress(surface_for(sys.stderr, no_color=place.options.no_color), len(chosen))
    tell = _silent if place.options.quiet else progress.tell

    def suite() -> Coroutine[Any, Any, Report]:
        return run_suite(stage, chosen, order, lambda result: tell(result.to_json()))

    return report_of(place, flags, suite, progress.close)


def _judge(place: Place, flags: EvalFlags) -> Callable[[str], Provider] | None:
    """Looks up the model that judges; None if nothing is to be judged."""
    if not flags.judge:
        return None
    model = (place.settings.judge or {}).get("model")
    if model is None:
        raise ConfigurationError(
            "no model is configured to judge",
            code="LOUSHO_CONFIG_MISSING_PROVIDER",
            hint='write [judge] and model = "provider:model" into config.toml',
        )

    def provider(agent: str) -> Provider:
        return resolve_model(model, agent_folder(place.workspace, agent), place.settings.providers)

    return provider


def report_of(
    place: Place,
    flags: EvalFlags,
    suite: Callable[[], Coroutine[Any, Any, Report]],
    then: Callable[[], None] = lambda: None,
) -> int:
    """Run what makes a report, show and write the report; returns the exit code.

    Args:
        then: called when it has been run, whatever came of it.
    """
    interrupts = Interrupts()
    with private_stdout() as stdout:
        try:
            report = interrupts.run(suite)
        except Interrupted as interrupted:
            notice("interrupted: there is no report")
            return _end(interrupts, interrupted.exit_code)
        finally:
            then()
        asks = _asks(place, report, flags)
        if asks:
            _show(place, report, stdout, trends=flags.trend)
        report = _remember(place, _updated(report, flags, asks))
        _write_reports(report, flags)
        if not asks:
            _show(place, report, stdout, trends=flags.trend)
        return _end(interrupts, EXIT_CODES[report.ending])


def _end(interrupts: Interrupts, code: int) -> int:
    if interrupts.left_running:
        # A tool that ignores being cancelled would keep the interpreter from ending.
        exit_at_once(code)
    return code


def choose(place: Place, flags: EvalFlags) -> Sequence[Chosen]:
    """The cases that are wanted; says why there are none."""
    cases = list(all_cases(evals_of(place.workspace, place.options.agent)))
    if not cases:
        folder = f"agents/{place.options.agent or 'NAME'}/{EVALS_FOLDER}"
        notice(f"there are no evals: write {place.workspace / folder / 'NAME.toml'} (see docs/evals.md)")
        return []
    missing = unknown_name(cases, flags.names)
    if missing is not None:
        name, close = missing
        known = (
            f"did you mean {' or '.join(close)}?" if close else f"{place.command('eval')} runs all there are"
        )
        notice(f"there is no eval or case {name!r}; {known}")
        return []
    keys = set(read_last_failed(place.workspace)) if flags.last_failed else None
    chosen = select(cases, names=flags.names, tags=flags.tags, keys=keys)
    if not chosen:
        notice("no case failed last" if keys == set() else "no case is chosen by these names and tags")
    return chosen


def _silent(_: Mapping[str, Any]) -> None:
    """No progress."""


def _in_ci() -> bool:
    return os.environ.get(CI_VARIABLE, "").lower() not in ("", "0", "false")


def _remember(place: Place, report: Report) -> Report:
    """Keep what the next eval looks at; the report with what earlier ones left."""
    try:
        remember(place.workspace, report)
        return with_trends(place.workspace, report)
    except StorageError as error:
        notice(f"this eval is not remembered: {error.message}")
        return report


def _write_reports(report: Report, flags: EvalFlags) -> None:
    if flags.report is not None:
        _write(flags.report, _formatted(report, flags.report.suffix.lower()))
    if flags.junit is not None:
        _write(flags.junit, to_junit(report))


def _formatted(report: Report, suffix: str) -> bytes:
    """The report as the name of its file asks for."""
    if suffix in (".md", ".markdown"):
        return to_markdown(report).encode()
    if suffix in (".html", ".htm"):
        return to_html(report).encode()
    return json.dumps(report.to_json(), indent=2).encode() + b"\n"


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise StorageError(
            f"the report {path} could not be written: {error.strerror}", hint="name a file you may write"
        ) from error


def _asks(place: Place, report: Report, flags: EvalFlags) -> bool:
    """Whether a person is asked about changes of recordings, and so has to see the report first."""
    pending = report.updates and not report.count("failed")
    return bool(pending) and flags.update and not flags.yes and not place.options.json and can_ask()


def _updated(report: Report, flags: EvalFlags, asks: bool) -> Report:
    """Change the recordings if that is wanted."""
    if not flags.update:
        return report
    count = f"{report.updates} {'recording' if report.updates == 1 else 'recordings'}"
    if report.count("failed"):
        notice("no recording is changed while a gate fails")
    elif not report.updates:
        notice("no recording would change")
    elif flags.yes or (asks and ask_yes(f"Change {count}?")):
        report = with_updates(report)
        notice(f"{count} changed")
    else:
        notice(f"{count} would change: add --yes")
    return report


def _show(place: Place, report: Report, stdout: TextIO, *, trends: bool) -> None:
    data = report.to_json()
    if place.options.json:
        write_out(stdout, escape_json(json.dumps(data, indent=2, allow_nan=False)) + "\n")
        return
    show_report(surface_for(stdout, no_color=place.options.no_color), data, trends=trends)
    sys.stderr.flush()
    if not place.options.quiet:
        notice(summary(data))
        if report.mode == "drift" and report.compared:
            for line in rules_of(data):
                notice(line)
