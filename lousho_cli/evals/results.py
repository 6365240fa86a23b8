"""What came of the cases, case by case and as a whole. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .._version import __version__
from ..execution.steps import Difference, Step
from ..providers.cassette_volatile import KNOWN
from .judging import Judgement
from .outcome import Failure
from .stability import Stability
from .trend import Trend
from .updating import Update

Mode = Literal["run", "record", "replay", "drift"]
Status = Literal["passed", "failed", "skipped"]

Ending = Literal["passed", "failed", "nothing-done"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A case held against its recording.

    Attributes:
        stability: the verdict and the scores.
        committed, current: the steps of the two runs that are shown: the new run that is least like any
            recorded one, and the recorded one that comes closest to it.
        agent_changes: in what the agent is another one than at the recording, in words.
        rules: how the case is compared where not all must be equal: what, and how.
    """

    stability: Stability
    committed: Sequence[Step]
    current: Sequence[Step]
    agent_changes: Sequence[str] = ()
    rules: Sequence[tuple[str, str]] = ()

    @property
    def parts(self) -> bool:
        """Whether the two runs that are shown differ."""
        return not self.stability.likeness.alike

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            **self.stability.to_json(),
            "agentChanges": [*self.agent_changes],
            "rules": [{"what": what, "how": how} for what, how in self.rules],
        }
        if self.parts:
            data["parting"] = {
                **self.stability.likeness.to_json(),
                "differences": [each._asdict() for each in self.stability.likeness.drift],
                "committed": [step.to_json() for step in self.committed],
                "current": [step.to_json() for step in self.current],
            }
        return data


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of one case.

    Attributes:
        agent: who played it.
        eval: its eval's name.
        case: its label.
        status: `passed`, `failed`, or `skipped`: it was not played, as nothing is recorded for it.
        failures: gates that do not hold, and what kept the case from being played.
        warnings: soft checks that do not hold.
        score: the share of soft checks that hold; None without any.
        comparison: how it holds against its recording; None if it was not compared.
        runs: how many recorded runs it was held against, or that were recorded.
        judgements: what a judge said of its runs.
        seconds: how long it took.
        trend: of its last drift runs; None where none is remembered.
        update: what would change in its recording, or was changed; None for nothing.
    """

    agent: str
    eval: str
    case: str
    status: Status
    failures: tuple[Failure, ...] = ()
    warnings: tuple[Failure, ...] = ()
    score: float | None = None
    comparison: Comparison | None = None
    runs: int = 0
    judgements: tuple[Judgement, ...] = ()
    seconds: float = 0.0
    trend: Trend | None = None
    update: Update | None = None

    @property
    def key(self) -> str:
        """Names the case in its workspace."""
        return f"{self.agent}/{self.eval}/{self.case}"

    @property
    def compared(self) -> bool:
        return self.comparison is not None

    @property
    def is_flaky(self) -> bool:
        return self.comparison is not None and self.comparison.stability.verdict == "flaky"

    @property
    def drift(self) -> Sequence[Difference]:
        """In what it differs from its recording; nothing unless it drifted."""
        if self.comparison is None or self.comparison.stability.verdict != "drifted":
            return ()
        return self.comparison.stability.likeness.drift

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "agent": self.agent,
            "eval": self.eval,
            "case": self.case,
            "status": self.status,
            "passed": self.status == "passed",
            "failures": [failure.to_json() for failure in self.failures],
            "warnings": [warning.to_json() for warning in self.warnings],
            "drift": [difference._asdict() for difference in self.drift],
            "compared": self.compared,
            "runs": self.runs,
            "seconds": round(self.seconds, 3),
        }
        if self.score is not None:
            data["score"] = self.score
        if self.judgements:
            data["judgements"] = [each.to_json() for each in self.judgements]
        if self.comparison is not None:
            data["comparison"] = self.comparison.to_json()
        if self.trend is not None:
            data["trend"] = self.trend.to_json()
        if self.update is not None:
            data["update"] = self.update.to_json()
        return data


@dataclass(frozen=True, slots=True)
class Report:
    """What came of all cases that were chosen.

    Attributes:
        mode: how they were run.
        results: in the order of the files.
        left_out: how many were not begun, because an earlier one failed.
        started_at, finished_at: UTC, ISO 8601.
        strict: drift, and cases without a recording, fail.
        volatile: the regular expressions of the user's own that were replaced before comparing.
    """

    mode: Mode
    results: Sequence[CaseResult]
    left_out: int
    started_at: str
    finished_at: str
    strict: bool = False
    volatile: Sequence[str] = ()

    def count(self, status: Status) -> int:
        return sum(result.status == status for result in self.results)

    @property
    def compared(self) -> int:
        return sum(result.compared for result in self.results)

    @property
    def drifted(self) -> int:
        return sum(bool(result.drift) for result in self.results)

    @property
    def flaky(self) -> int:
        return sum(result.is_flaky for result in self.results)

    @property
    def updates(self) -> int:
        """How many recordings would change, or were changed."""
        return sum(result.update is not None for result in self.results)

    @property
    def declining(self) -> int:
        return sum(result.trend is not None and result.trend.declines for result in self.results)

    @property
    def ending(self) -> Ending:
        """Whether all gates hold. Nothing is done where nothing was run, or under drift nothing compared."""
        nothing_run = self.count("skipped") == len(self.results)
        nothing_compared = self.mode == "drift" and not self.compared
        if not self.count("failed") and (nothing_run or nothing_compared):
            return "nothing-done"
        return "failed" if any(map(self.problems_of, self.results)) else "passed"

    @property
    def normalised(self) -> list[tuple[str, str]]:
        """What is replaced before runs are compared, and by what."""
        return [*KNOWN, *((pattern, "<volatile>") for pattern in self.volatile)]

    def problems_of(self, result: CaseResult) -> list[str]:
        """Why a case is not green, in words; nothing if it is."""
        problems = [f"{each.check}: {each.message}" for each in result.failures]
        if result.status == "skipped" and (self.strict or self.mode == "replay"):
            problems.append("nothing is recorded")
        if self.strict:
            problems += [f"drift: {each.field}: {each.committed} -> {each.current}" for each in result.drift]
        return problems

    def to_json(self) -> dict[str, Any]:
        return {
            "lousho": __version__,
            "mode": self.mode,
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
            "cases": [result.to_json() for result in self.results],
            "total": len(self.results) + self.left_out,
            "passed": self.count("passed"),
            "failed": self.count("failed"),
            "skipped": self.count("skipped"),
            "leftOut": self.left_out,
            "compared": self.compared,
            "drifted": self.drifted,
            "flaky": self.flaky,
            "declining": self.declining,
            "normalised": [{"what": what, "becomes": becomes} for what, becomes in self.normalised],
        }
