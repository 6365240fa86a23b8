"""Recorded runs of a case: the model's turns, what tools answered, and the way the run took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from ..errors import CassetteError
from ..execution.redaction import Redactor
from ..execution.steps import Step, StepCall, Trajectory
from ..providers.cassette import Cassette, CassetteRun
from .answers import ToolAnswer
from .outcome import Outcome


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One recorded run of a case.

    Attributes:
        turns: the calls of its models.
        answers: what its tools answered, in order.
        trajectory: the way it took.
        delegates: whether the answers hold what sub-agents answered as a whole, and not what they did.
    """

    turns: CassetteRun
    answers: Sequence[ToolAnswer]
    trajectory: Trajectory
    delegates: bool = False


class _Data(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class _CallData(_Data):
    name: str
    args: Any


class _StepData(_Data):
    text: str = ""
    tools: list[_CallData] = Field(default_factory=list)


class _AnswerData(_Data):
    tool: str
    args: dict[str, Any]
    result: Any
    error: str | None = None
    path: list[str] = Field(default_factory=list)


class _RunData(_Data):
    """What an eval keeps with each run of a cassette."""

    finish_reason: str
    total_tokens: int
    steps: list[_StepData]
    answers: list[_AnswerData]
    delegates: bool = False


def recorded_run(
    turns: CassetteRun, answers: Sequence[ToolAnswer], outcome: Outcome, *, delegates: bool = False
) -> RecordedRun:
    """A run that was recorded, keys and tokens taken out."""
    data = _RunData(
        delegates=delegates,
        finish_reason=outcome.endings[-1],
        total_tokens=outcome.tokens,
        steps=[
            _StepData(
                text=step.text, tools=[_CallData(name=call.name, args=call.args) for call in step.tools]
            )
            for step in outcome.steps
        ],
        answers=[
            _AnswerData(
                tool=each.tool, args=each.args, result=each.result, error=each.error, path=[*each.path]
            )
            for each in answers
        ],
    )
    turns.data = Redactor().value(data.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    return _run(turns, data)


def read_recording(path: Path) -> list[RecordedRun]:
    """The recorded runs in a file; none if there is no file.

    Raises:
        CassetteError: the file is damaged, or no recording of an eval.
        StorageError: it cannot be read.
    """
    cassette = Cassette.load(path)
    return [] if cassette is None else [_read(run, path) for run in cassette.runs]


def write_recording(path: Path, runs: Sequence[RecordedRun]) -> None:
    """Put recorded runs in the place of those in the file.

    Raises:
        CassetteError: they are too large.
        StorageError: the file cannot be written.
    """
    Cassette([run.turns for run in runs]).save(path)


def trajectory_of(outcome: Outcome, *, usage: bool) -> Trajectory:
    """The way a run took, keys and tokens taken out as in a recording; with `usage` its tokens count too."""
    way = outcome.trajectory(usage=usage)
    redacted = Redactor()
    steps = [
        Step(
            redacted.text(step.text),
            tuple(StepCall(call.name, redacted.value(call.args)) for call in step.tools),
        )
        for step in way.steps
    ]
    return replace(way, steps=steps)


def _read(turns: CassetteRun, path: Path) -> RecordedRun:
    try:
        return _run(turns, _RunData.model_validate(turns.data))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(key) for key in problem["loc"])
        raise CassetteError(
            f"{path} is no recording of an eval: data.{place}: {problem['msg']}",
            hint="restore it from version control, or delete it and record it again",
        ) from error


def _run(turns: CassetteRun, data: _RunData) -> RecordedRun:
    steps = [
        Step(step.text, tuple(StepCall(call.name, call.args) for call in step.tools)) for step in data.steps
    ]
    answers = [
        ToolAnswer(each.tool, each.args, each.result, each.error, tuple(each.path)) for each in data.answers
    ]
    return RecordedRun(
        turns, answers, Trajectory(steps, data.finish_reason, data.total_tokens), data.delegates
    )
