"""The view of what came of evals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .console import Surface
from .eval_trends import fall, show_trends
from .table import Cell, Column, show_table
from .text import duration, escape_line

Result = Mapping[str, Any]

_LOOKS = {"passed": ("ok", "green"), "failed": ("failed", "red"), "skipped": ("stopped", "yellow")}
_NOTES = ("flaky", "declining", "update")
_CLEAR = "\x1b[K"
_DRIFT_COLUMNS = (
    Column("EVAL"),
    Column("CASE"),
    Column("FIELD"),
    Column("COMMITTED", wraps=True),
    Column("CURRENT", wraps=True),
)


def show_report(surface: Surface, report: Mapping[str, Any], *, trends: bool = False) -> None:
    """Print a report: each case, what is wrong with it, and in what it differs from its recording.

    In a pipe each finding is one line of tab-separated fields: `passed`, `failed`, `skipped`, `soft`,
    `flaky`, `drift` or `parted`, eval, case, and what is to be said; of drift the field, what it was, and
    what it is; of where it parted the step and how similar the runs are; `update` says what would change in
    the recording, or was changed, `declining` from what to what the similarity fell. Last, `agent`, its name,
    and in what it changed. With `trends` the last drift runs of each case follow.
    """
    cases: Sequence[Result] = report["cases"]
    if surface.terminal:
        _show_cases(surface, cases)
        _show_drift(surface, cases)
        _show_partings(surface, cases)
        _show_agents(surface, cases)
        if trends:
            surface.console.print()
            show_trends(surface, cases)
        return
    for case in cases:
        for kind, *fields in _findings(case):
            surface.line(
                kind, escape_line(case["eval"]), escape_line(case["case"]), *map(escape_line, fields)
            )
    for agent, change in _agent_changes(cases):
        surface.line("agent", escape_line(agent), escape_line(change))
    if trends:
        show_trends(surface, cases)


class Progress:
    """Tells of cases as they end: on a terminal in one line that is redrawn, else in a line for each.

    Args:
        surface: where it is told.
        total: how many cases there are.
    """

    def __init__(self, surface: Surface, total: int) -> None:
        self._surface = surface
        self._total = total
        self._done = 0
        self._failed = 0

    def tell(self, case: Result) -> None:
        """Tell of one case."""
        self._done += 1
        self._failed += case["status"] == "failed"
        if self._surface.live:
            failed = f", {self._failed} failed" if self._failed else ""
            self._write(f"\r{_CLEAR}{self._done} of {self._total} cases{failed}")
        else:
            drift = f", {len(case['drift'])} drift" if case["drift"] else ""
            name = escape_line(f"{case['eval']}/{case['case']}")
            self._write(f"{case['status']}: {name} ({duration(case['seconds'])}{drift})\n")

    def close(self) -> None:
        """Take the line away."""
        if self._surface.live and self._done:
            self._write(f"\r{_CLEAR}")

    def _write(self, text: str) -> None:
        self._surface.stream.write(text)
        self._surface.stream.flush()


def summary(report: Mapping[str, Any]) -> str:
    """The report in one line."""
    parts = [f"{report['passed']} passed"]
    parts += [f"{report['failed']} failed"] * bool(report["failed"])
    parts += [f"{report['skipped']} not recorded"] * bool(report["skipped"])
    parts += [f"{report['leftOut']} not begun"] * bool(report["leftOut"])
    if report["mode"] != "run" or report["compared"]:
        parts += [f"{report['compared']} compared", f"{report['drifted']} drifted"]
        parts += [f"{report['flaky']} flaky"] * bool(report["flaky"])
    return ", ".join(parts)


def _findings(case: Result) -> Iterator[tuple[str, ...]]:
    if case["status"] == "passed":
        yield ("passed",)
    if case["status"] == "skipped":
        yield "skipped", "nothing is recorded"
    for failure in case["failures"]:
        yield "failed", failure["check"], failure["message"]
    for warning in case["warnings"]:
        yield "soft", warning["check"], warning["message"]
    for drift in case["drift"]:
        yield "drift", drift["field"], drift["committed"], drift["current"]
    comparison = case.get("comparison", {})
    if comparison.get("verdict") == "flaky":
        yield "flaky", counts(comparison)
    if comparison.get("parting"):
        yield "parted", str(comparison["parting"]["partedAt"] or ""), f"{comparison['similarity']:.2f}"
    if case.get("trend", {}).get("declines"):
        yield "declining", fall(case["trend"])
    if "update" in case:
        yield "update", _update(case["update"])


def _show_cases(surface: Surface, cases: Sequence[Result]) -> None:
    from rich.text import Text

    for case in cases:
        mark, style = _LOOKS[case["status"]]
        name = escape_line(f"{case['eval']}/{case['case']}")
        note = "  nothing is recorded" if case["status"] == "skipped" else ""
        surface.console.print(
            Text.assemble((surface.mark(mark), style), f" {name}", (note, "dim")), soft_wrap=True
        )
        for kind, *said in (found for found in _findings(case) if found[0] in _NOTES):
            line = Text.assemble("    ", (f"{kind}: ", "yellow"), " ".join(said))
            surface.console.print(line, soft_wrap=True)
        for kind, check, message in (found for found in _findings(case) if found[0] in ("failed", "soft")):
            color = "red" if kind == "failed" else "yellow"
            line = Text.assemble("    ", (f"{check}: ", color), escape_line(message))
            surface.console.print(line, soft_wrap=True)


def _show_drift(surface: Surface, cases: Sequence[Result]) -> None:
    rows = [
        [
            Cell(escape_line(text))
            for text in (case["eval"], case["case"], drift["field"], drift["committed"], drift["current"])
        ]
        for case in cases
        for drift in case["drift"]
    ]
    if rows:
        surface.console.print()
        show_table(surface, _DRIFT_COLUMNS, rows)


def _show_partings(surface: Surface, cases: Sequence[Result]) -> None:
    from .eval_parting import show_parting

    for case in cases:
        comparison = case.get("comparison", {})
        if comparison.get("parting"):
            surface.console.print()
            show_parting(surface, f"{case['eval']}/{case['case']}", comparison)


def _show_agents(surface: Surface, cases: Sequence[Result]) -> None:
    from rich.text import Text

    changes = _agent_changes(cases)
    if changes:
        surface.console.print()
    for agent, change in changes:
        line = Text.assemble(("since the recording, agent ", "dim"), escape_line(f"{agent}: {change}"))
        surface.console.print(line, soft_wrap=True)


def rules_of(report: Mapping[str, Any]) -> list[str]:
    """What is not compared, and what is compared by a rule of the eval, a line each."""
    lines = [f"not compared: {', '.join(rule['what'] for rule in report['normalised'])}"]
    rules = dict.fromkeys(
        f"{rule['what']} {rule['how']}"
        for case in report["cases"]
        for rule in case.get("comparison", {}).get("rules", ())
    )
    return lines + [f"compared by rule: {', '.join(rules)}"] * bool(rules)


def _update(update: Mapping[str, Any]) -> str:
    does = "was done" if update["written"] else "not done"
    if update["action"] == "add":
        return f"{update['runsAfter'] - update['runsBefore']} new beside {update['runsBefore']} runs, {does}"
    return f"{update['runsAfter']} new in the place of {update['runsBefore']} runs, {does}"


def counts(comparison: Mapping[str, Any]) -> str:
    """How the new runs of a case and the recorded ones agree, in words."""
    return (
        f"{comparison['asRecorded']} of {comparison['new']} new runs as recorded, "
        f"{comparison['seenAgain']} of {comparison['recorded']} recorded runs seen again"
    )


def _agent_changes(cases: Sequence[Result]) -> list[tuple[str, str]]:
    """In what agents are others than at the recordings, each change once."""
    found = (
        (case["agent"], change)
        for case in cases
        for change in case.get("comparison", {}).get("agentChanges", ())
    )
    return list(dict.fromkeys(found))
