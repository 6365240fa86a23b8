"""Ways of a run, written shortly: `way(["lookup", {"order": 1}], [...])`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lousho_cli.evals.drift_rules import DriftTable, strictness
from lousho_cli.evals.likeness import Likeness, likeness
from lousho_cli.evals.results import Comparison
from lousho_cli.evals.same_calls import Sameness
from lousho_cli.evals.stability import Stability, stability
from lousho_cli.execution.steps import Step, StepCall, Trajectory
from lousho_cli.providers.cassette_volatile import Volatile


def call(name: str, **args: Any) -> StepCall:
    return StepCall(name, args)


def way(*calls: StepCall) -> Trajectory:
    """One call a step, and an answer."""
    return batches(*([each] for each in calls))


def batches(*steps: Sequence[StepCall]) -> Trajectory:
    return Trajectory([*(Step("", tuple(calls)) for calls in steps), Step("Done.", ())], "stop")


def alike(a: Trajectory, b: Trajectory, **table: Any) -> Likeness:
    """Compared as a table `drift` says."""
    rules = strictness(DriftTable.model_validate(table), DriftTable())
    return likeness(a, b, Sameness(rules, Volatile()))


def stable(recorded: Sequence[Trajectory], new: Sequence[Trajectory]) -> Stability:
    return stability(recorded, new, alike)


def comparison(recorded: Trajectory, new: Trajectory) -> Comparison:
    return Comparison(stable([recorded], [new]), recorded.steps, new.steps)
