"""Running chosen cases on a stage, and the report of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ..workspace import agent_folder, list_agents
from .drift_scores import Scored, remember_scores
from .files import EvalFile, read_evals
from .last_failed import after, read_last_failed, remember_last_failed
from .playing import Script
from .pool import run_all
from .results import CaseResult, Report
from .selection import Chosen
from .sessions import SESSION_EVAL, SessionStage
from .stage import Stage
from .trend import trend_of
from .turns import script_of


@dataclass(frozen=True, slots=True)
class Order:
    """In what order cases are run, and what of the report counts.

    Attributes:
        jobs: how many cases at a time.
        stop_at_failure: begin no further case once one has failed.
        strict: drift, and cases without a recording, fail.
    """

    jobs: int = 4
    stop_at_failure: bool = False
    strict: bool = False


async def run_session(stage: SessionStage, runs: int, strict: bool) -> Report:
    """Run a session again, and compare.

    Raises:
        SDKError: it could not be run at all.
    """
    started = _now()
    result = await stage.drift(runs)
    return Report("drift", [result], 0, started, _now(), strict, stage.volatile)


def evals_of(workspace: Path, agent: str | None) -> Iterator[tuple[str, Sequence[EvalFile]]]:
    """The evals of one agent, or of every agent of the workspace by name.

    Raises:
        NotFoundError: there is no such agent.
        ConfigurationError: an eval file is wrong; code `LOUSHO_EVALS_INVALID`.
    """
    agents = [agent] if agent is not None else [each.name for each in list_agents(workspace)]
    for name in agents:
        yield name, read_evals(agent_folder(workspace, name))


async def run_suite(
    stage: Stage, chosen: Sequence[Chosen], order: Order, on_result: Callable[[CaseResult], None]
) -> Report:
    """Run cases; nothing is run if a file of one of them cannot be read.

    Args:
        on_result: told each result when it is there.

    Raises:
        SDKError: a case could not be run at all; what was running is stopped.
    """
    started = _now()
    scripts = [(each, script_of(each.case, each.file.path.parent)) for each in chosen]

    async def run(item: tuple[Chosen, Script]) -> CaseResult:
        return await stage.run(*item)

    results = await run_all(
        scripts,
        run,
        jobs=order.jobs,
        on_result=on_result,
        is_last=lambda result: order.stop_at_failure and result.status == "failed",
    )
    left_out = len(chosen) - len(results)
    return Report(stage.mode, results, left_out, started, _now(), order.strict, stage.volatile)


def remember(workspace: Path, report: Report) -> None:
    """Remember which cases failed.

    Raises:
        StorageError: it cannot be written.
    """
    if all(result.eval == SESSION_EVAL for result in report.results):
        return
    passed = {result.key for result in report.results if result.status == "passed"}
    failed = {result.key for result in report.results if result.status == "failed"}
    before = read_last_failed(workspace)
    now = after(before, passed, failed)
    if now != before:
        remember_last_failed(workspace, now)


def with_updates(report: Report) -> Report:
    """Do the updates that are planned; returns the report with those that were done. None while a gate fails.

    Raises:
        CassetteError: a recording would be too large.
        StorageError: one cannot be written.
    """
    if report.count("failed"):
        return report
    results = [
        result if result.update is None else replace(result, update=result.update.write())
        for result in report.results
    ]
    return replace(report, results=results)


def with_trends(workspace: Path, report: Report) -> Report:
    """Remember how similar the cases were to their recordings; returns the report with what is remembered.

    Raises:
        StorageError: it cannot be written.
    """
    compared = [each for each in report.results if each.comparison is not None]
    if report.mode == "drift" and compared:
        known = remember_scores(workspace, _scored(compared), report.finished_at)
        results = [
            replace(each, trend=trend_of(known[each.key].levels)) if each in compared else each
            for each in report.results
        ]
        report = replace(report, results=results)
    recorded = [
        each
        for each in compared
        if report.mode == "record" or (each.update is not None and each.update.written)
    ]
    if recorded:
        remember_scores(workspace, _scored(recorded, is_recording=True), report.finished_at)
    return report


def _scored(results: Sequence[CaseResult], *, is_recording: bool = False) -> dict[str, Scored]:
    return {
        each.key: Scored(each.comparison.stability.score, each.comparison.stability.verdict, is_recording)
        for each in results
        if each.comparison is not None
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
