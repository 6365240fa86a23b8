"""What new runs would change in the recording of a case, and doing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ..execution.messages import JsonObject
from ..execution.steps import Trajectory
from .recordings import RecordedRun, write_recording
from .stability import Compare, Verdict

MOST_RUNS = 10
"""Runs of a case beyond which no further way is added to its recording."""


@dataclass(frozen=True, slots=True)
class Update:
    """What would change in a recording.

    Attributes:
        action: `replace` all its runs by the new ones, or `add` ways that it does not have.
        file: where it lies.
        before: how many runs it has.
        runs: what it would hold.
        written: whether it has been done.
    """

    action: Literal["replace", "add"]
    file: Path
    before: int
    runs: Sequence[RecordedRun]
    written: bool = False

    def to_json(self) -> JsonObject:
        return {
            "action": self.action,
            "runsBefore": self.before,
            "runsAfter": len(self.runs),
            "written": self.written,
        }

    def write(self) -> Update:
        """Do it.

        Raises:
            CassetteError: the recording would be too large.
            StorageError: it cannot be written.
        """
        write_recording(self.file, self.runs)
        return replace(self, written=True)


def planned(
    file: Path,
    recorded: Sequence[RecordedRun],
    new: Sequence[RecordedRun],
    verdict: Verdict,
    compare: Compare,
) -> Update | None:
    """What new runs change in a recording; None for nothing.

    Where the case drifted, or its runs begin with another request than the recorded ones (a changed agent or
    input: a replay would miss), they take the place of these. Where it is flaky, the ways that are not there
    yet come beside the known good ones.
    """
    if verdict == "drifted" or _first_key(recorded[0]) != _first_key(new[0]):
        return Update("replace", file, len(recorded), new)
    runs = list(recorded)
    for run in new:
        if len(runs) < MOST_RUNS and not any(_alike(kept, run, compare) for kept in runs):
            runs.append(run)
    return Update("add", file, len(recorded), runs) if len(runs) > len(recorded) else None


def _alike(one: RecordedRun, other: RecordedRun, compare: Compare) -> bool:
    return compare(_without_usage(one), _without_usage(other)).alike


def _without_usage(run: RecordedRun) -> Trajectory:
    return replace(run.trajectory, tokens=None)


def _first_key(run: RecordedRun) -> str | None:
    return run.turns.calls[0].key if run.turns.calls else None
