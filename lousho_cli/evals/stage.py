"""How a case is run in each mode: where the model's turns and the tools' answers come from, what is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..execution.protocols import Provider
from ..loading import load_from_workspace
from ..providers.cassette import CassetteRun, slug
from ..providers.cassette_model import Tape
from .answers import AnswerLog, Answers, RecordedAnswers, StubAnswers, answered
from .checks import Verdict, judge
from .outcome import Failure, Outcome
from .playing import Player, Script
from .recordings import RecordedRun, read_recording, recorded_run, smallest_drift, write_recording
from .results import CaseResult, Mode
from .selection import Chosen


@dataclass(frozen=True)
class Stage:
    """Where cases are run.

    Attributes:
        workspace: the `.lousho` folder.
        mode: `run` asks the model and runs the tools; `record` keeps what they say; `replay` asks neither;
            `drift` asks the model and compares the way it goes with the recorded one.
        prefer_recorded: `run` replays a case that has a recording.
        runs: how many runs `record` keeps.
        usage: tokens are compared too.
        volatile: regular expressions of texts that make no difference to a recording.
    """

    workspace: Path
    mode: Mode
    prefer_recorded: bool = False
    runs: int = 1
    usage: bool = False
    volatile: Sequence[str] = ()

    async def run(self, chosen: Chosen, script: Script) -> CaseResult:
        """Run one case.

        Raises:
            SDKError: the agent cannot be loaded, its model is not set up, or the recording is damaged.
        """
        began = time.monotonic()
        result = await self._run(chosen, script)
        return replace(result, seconds=time.monotonic() - began)

    async def _run(self, chosen: Chosen, script: Script) -> CaseResult:
        file = chosen.file.cassette(chosen.case.label)
        recorded = read_recording(file)
        if self.mode == "record":
            return await self._record(chosen, script, recorded, file)
        if self.mode == "drift":
            return await self._drift(chosen, script, recorded)
        if self.mode == "replay" or (self.prefer_recorded and recorded):
            return await self._replay(chosen, script, recorded)
        return await self._live(chosen, script, recorded)

    async def _live(self, chosen: Chosen, script: Script, recorded: Sequence[RecordedRun]) -> CaseResult:
        if chosen.case.tools == "recorded" and not recorded:
            nothing = Failure(
                "tools", "its tools answer as recorded, and nothing is recorded: lousho eval --record"
            )
            return _result(chosen, [Verdict((nothing,))])
        answers = _answers(chosen, recorded, nearest=False) if chosen.case.tools else None
        outcome = await self._player(chosen, answers).play(script)
        return _result(chosen, [judge(chosen.case.expect, outcome)])

    async def _record(
        self, chosen: Chosen, script: Script, before: Sequence[RecordedRun], file: Path
    ) -> CaseResult:
        """Keep runs that pass. One that does not pass leaves the earlier recording as it is."""
        kept: list[RecordedRun] = []
        outcomes: list[Outcome] = []
        answers = StubAnswers(chosen.case.stubs) if chosen.case.tools == "stub" else None
        for _ in range(self.runs):
            tape, log = Tape(CassetteRun(), "record", volatile=self.volatile), AnswerLog()
            outcome = await self._player(chosen, answers, tape).play(script, observer=log.observe)
            outcomes.append(outcome)
            if outcome.problem is None:
                kept.append(recorded_run(tape.run, log.answers, outcome))
        result = _result(chosen, [judge(chosen.case.expect, outcome) for outcome in outcomes])
        if result.status == "failed":
            return result
        write_recording(file, kept)
        changes = [smallest_drift(before, outcome, usage=self.usage) for outcome in outcomes]
        return replace(result, drift=max(changes, key=len), compared=bool(before), runs=len(kept))

    async def _replay(self, chosen: Chosen, script: Script, recorded: Sequence[RecordedRun]) -> CaseResult:
        if not recorded:
            return _not_recorded(chosen)
        verdicts, drifts = [], []
        for run in recorded:
            tape = Tape(run.turns, "replay", name=f"the recording of {chosen.name}", volatile=self.volatile)
            answers = _answers(chosen, [run], nearest=False)
            outcome = await self._player(chosen, answers, tape).play(script)
            verdicts.append(judge(chosen.case.expect, outcome))
            if outcome.problem is None:
                drifts.append(smallest_drift([run], outcome, usage=self.usage))
        result = replace(_result(chosen, verdicts), compared=True, runs=len(recorded))
        return replace(result, drift=max(drifts, key=len, default=()))

    async def _drift(self, chosen: Chosen, script: Script, recorded: Sequence[RecordedRun]) -> CaseResult:
        if not recorded:
            return _not_recorded(chosen)
        answers = _answers(chosen, recorded, nearest=True)
        outcome = await self._player(chosen, answers).play(script)
        result = replace(_result(chosen, [judge(chosen.case.expect, outcome)]), runs=len(recorded))
        if outcome.problem is not None:
            return result
        return replace(result, drift=smallest_drift(recorded, outcome, usage=self.usage), compared=True)

    def _player(self, chosen: Chosen, answers: Answers | None, tape: Tape | None = None) -> Player:
        """The agent, loaded anew: no case sees what another left in its tools' modules."""
        ready = load_from_workspace(self.workspace, chosen.agent, make_provider=partial(_model, tape))
        return Player(
            ready.agent if answers is None else answered(ready.agent, answers),
            ready.provider,
            f"eval-{slug(chosen.file.eval.name)}-{slug(chosen.case.label)}",
            ready.settings.tool_concurrency,
        )


def _model(tape: Tape | None, live: Callable[[], Provider]) -> Provider:
    """The model that `live` looks up; in a replay it need not exist."""
    return live() if tape is None else tape.model(live)


def _answers(chosen: Chosen, recorded: Sequence[RecordedRun], *, nearest: bool) -> Answers | None:
    """What answers in the place of the tools: the case's stubs, or its recording; None for the tools."""
    if chosen.case.tools == "live":
        return None
    if chosen.case.tools == "stub":
        return StubAnswers(chosen.case.stubs)
    return RecordedAnswers([each for run in recorded for each in run.answers], nearest=nearest)


def _not_recorded(chosen: Chosen) -> CaseResult:
    return CaseResult(chosen.agent, chosen.file.eval.name, chosen.case.label, "skipped")


def _result(chosen: Chosen, verdicts: Sequence[Verdict]) -> CaseResult:
    """The verdicts on one or several runs of a case as one result."""
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    failures = _numbered([verdict.failures for verdict in verdicts])
    return CaseResult(
        chosen.agent,
        chosen.file.eval.name,
        chosen.case.label,
        "failed" if failures else "passed",
        failures,
        _numbered([verdict.warnings for verdict in verdicts]),
        min(scores) if scores else None,
    )


def _numbered(found: Sequence[Sequence[Failure]]) -> tuple[Failure, ...]:
    """Failures of several runs, each with the number of its run."""
    if len(found) == 1:
        return tuple(found[0])
    return tuple(
        replace(each, message=f"run {number}: {each.message}")
        for number, failures in enumerate(found, 1)
        for each in failures
    )
