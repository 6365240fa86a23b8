"""Checking and repairing what a workspace has stored, in whichever store it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import SDKError, SessionBusyError, StorageError
from ..stores.backend import Backend
from ..stores.findings import Mended, Problem, Progress, SessionReport, Severity
from .findings import Check

_FIRST_TO_LAST = ("permissions", "journal-damaged")
"""What is repaired first: a file that may not be read can be looked at then; a repaired journal brings its
history file with it."""


@dataclass(frozen=True, slots=True)
class StoredData:
    """What was found in the stored data.

    Attributes:
        sessions: those that were checked.
        problems: of the sessions and of what belongs to none.
        checks: what could not be looked at, or that all was.
    """

    sessions: tuple[SessionReport, ...]
    problems: tuple[Problem, ...]
    checks: tuple[Check, ...]

    @property
    def repairable(self) -> list[Problem]:
        """What `repair` mends, in the order in which it does."""
        order = {code: place for place, code in enumerate(_FIRST_TO_LAST)}
        found = [problem for problem in self.problems if problem.remedy is not None]
        return sorted(found, key=lambda problem: order.get(problem.code, len(order)))

    def counts(self) -> dict[str, int]:
        """How many problems of each severity there are, sessions, running ones, and what can be repaired."""
        severities: tuple[Severity, ...] = ("error", "warning", "notice")
        found = {
            f"{severity}s": sum(p.severity == severity for p in self.problems) for severity in severities
        }
        return {
            **found,
            "sessions": sum(each.exists or not each.readable for each in self.sessions),
            "running": sum(each.running for each in self.sessions),
            "repairable": len(self.repairable),
        }


def check_stored(
    backends: Callable[[], Iterable[Backend]],
    is_wanted: Callable[[str], bool],
    progress: Progress,
    only: Sequence[str] | None = None,
) -> StoredData:
    """What is wrong with the stored data.

    Args:
        backends: gives the places to look in; may raise what they raise.
        is_wanted: whether an agent's sessions are to be checked.
        only: the ids of the sessions to check, or None for everything.
    """
    sessions: list[SessionReport] = []
    problems: list[Problem] = []
    checks: list[Check] = []
    try:
        for backend in backends():
            report = backend.check(_counted_on(progress, len(sessions)), only)
            sessions += [each for each in report.sessions if is_wanted(each.agent)]
            problems += report.problems
    except SDKError as error:
        checks.append(Check.failed("store", "sessions", error))
    problems = [*(problem for each in sessions for problem in each.problems), *problems]
    if not checks:
        checks.append(_summary(sessions, problems))
    return StoredData(tuple(sessions), tuple(problems), tuple(checks))


def _counted_on(progress: Progress, before: int) -> Progress:
    return lambda done, total: progress(before + done, before + total)


def _summary(sessions: Sequence[SessionReport], problems: Sequence[Problem]) -> Check:
    there = sum(each.exists or not each.readable for each in sessions)
    running = sum(each.running for each in sessions)
    text = f"{there} {'session' if there == 1 else 'sessions'}"
    if running:
        text += f", {running} of them running"
    if any(problem.severity == "error" for problem in problems):
        error = StorageError("", code="LOUSHO_SESSION_FILE_CORRUPT")
        return Check("store", "sessions", "error", f"{text} checked; see the problems", error=error)
    return Check("store", "sessions", "ok", f"{text} checked")


def repair(problems: Iterable[Problem], *, dry_run: bool) -> Iterator[Mended]:
    """Repair problems one after another; one that cannot be repaired does not keep the others from it."""
    for problem in problems:
        if problem.remedy is None:
            continue
        try:
            done = problem.remedy.apply(dry_run=dry_run)
        except SessionBusyError as error:
            done = _undone("skipped", problem, error)
        except SDKError as error:
            done = _undone("failed", problem, error)
        if done.outcome != "unneeded":
            yield done


def _undone(outcome: Literal["skipped", "failed"], problem: Problem, error: SDKError) -> Mended:
    return Mended(outcome, error.message, problem.path, problem.session_id, problem.agent)
