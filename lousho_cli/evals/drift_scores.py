"""How similar the drift runs of each case were, remembered in the workspace but not in git.

The newest 50 runs of a case are kept, of the 5,000 cases that were run last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from pydantic import BaseModel, Field

from ..errors import StorageError
from ..stores.files import PRIVATE_FILE, replace_file, storage
from .last_failed import STATE_FOLDER, read_state, state_folder

RUNS_KEPT = 50
CASES_KEPT = 5_000
ANOTHER = 0.9
"""A recording less similar to the one before was changed on purpose: what is remembered begins anew."""
VERSION = 1
_FILE = "drift-scores.json"


class ScoredRun(BaseModel):
    """A drift run of a case.

    Attributes:
        at: when, UTC, ISO 8601.
        similarity: to the recording it was compared with.
        level: to the first recording that is remembered.
        verdict: `stable`, `flaky` or `drifted`.
    """

    at: str
    similarity: float
    level: float
    verdict: str


class ScoredCase(BaseModel):
    """The drift runs of a case.

    Attributes:
        level: how similar the present recording is to the first that is remembered: the product of the
            similarities of each recording to the one before.
        runs: the newest last.
    """

    level: float = 1.0
    runs: list[ScoredRun] = Field(default_factory=list)

    @property
    def levels(self) -> list[float]:
        return [run.level for run in self.runs]


@dataclass(frozen=True, slots=True)
class Scored:
    """What is new of a case: a drift run of that similarity, or a recording in the place of another."""

    similarity: float
    verdict: str
    is_recording: bool = False


def read_scores(workspace: Path) -> dict[str, ScoredCase]:
    """The cases by key; none where nothing is remembered or it cannot be read."""
    with suppress(StorageError, ValueError, KeyError, AttributeError, RecursionError):
        data = json.loads(read_state(workspace, _FILE))
        if isinstance(data, dict) and data.get("version") == VERSION:
            return {key: ScoredCase.model_validate(case) for key, case in data["cases"].items()}
    return {}


def remember_scores(workspace: Path, new: Mapping[str, Scored], at: str) -> dict[str, ScoredCase]:
    """Add what is new, by key of the case; returns all that is remembered then.

    Raises:
        StorageError: it cannot be written.
    """
    file = workspace / STATE_FOLDER / _FILE
    with storage(file, "written"):
        folder = state_folder(workspace)
        with FileLock(folder / f"{_FILE}.lock", mode=PRIVATE_FILE):
            cases = after(read_scores(workspace), new, at)
            data: dict[str, Any] = {
                "version": VERSION,
                "cases": {key: case.model_dump() for key, case in cases.items()},
            }
            replace_file(file, (json.dumps(data) + "\n").encode(), durable=False, whole=True)
    return cases


def after(before: Mapping[str, ScoredCase], new: Mapping[str, Scored], at: str) -> dict[str, ScoredCase]:
    """What is remembered after some runs. Cases that were run come last."""
    cases = {key: case for key, case in before.items() if key not in new}
    for key, scored in new.items():
        case = before.get(key, ScoredCase())
        level = round(case.level * scored.similarity, 9)
        if scored.is_recording:
            anew = scored.similarity < ANOTHER
            cases[key] = ScoredCase() if anew else case.model_copy(update={"level": level})
            continue
        run = ScoredRun(at=at, similarity=scored.similarity, level=level, verdict=scored.verdict)
        cases[key] = case.model_copy(update={"runs": [*case.runs, run][-RUNS_KEPT:]})
    return dict(list(cases.items())[-CASES_KEPT:])
