"""How a case is run in each mode: where the model's turns and the tools' answers come from, what is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..execution.protocols import Provider
from ..loading import MakeProvider, load_from_workspace
from ..providers.cassette import CassetteRun, slug
from ..providers.cassette_model import Tape
from ..providers.cassette_volatile import Volatile
from .agent_changes import agent_changes
from .answers import AnswerLog, Answers, RecordedAnswers, StubAnswers, answered
from .checks import judge
from .drift_rules import Strictness, strictness
from .judging import Judge, Judgement, Meanings
from .likeness import likeness
from .outcome import Failure, Outcome
from .playing import Player, Script
from .recordings import RecordedRun, read_recording, recorded_run, trajectory_of, write_recording
from .results import CaseResult, Comparison, Mode
from .same_calls import Sameness
from .selection import Chosen
from .stability import Compare, stability
from .updating import planned


@dataclass(frozen=True, slots=True)
class _NewRun:
    """A run, its recording (None where it did not come to its end), and what a judge says of it."""

    outcome: Outcome
    recorded: RecordedRun | None
    judgements: tuple[Judgement, ...] = ()


@dataclass(frozen=True)
class Stage:
    """Where cases are run.

    Attributes:
        workspace: the `.lousho` folder.
        mode: `run` asks the model and runs the tools; `record` keeps what they say; `replay` asks neither;
            `drift` asks the model and compares the way it goes with the recorded one.
        prefer_recorded: `run` replays a case that has a recording.
        runs: how many runs `record` keeps, or `drift` compares.
        usage: tokens are compared too.
        volatile: regular expressions of texts that make no difference to a recording.
        update: `drift` works out what new runs would change in the recordings.
        judge: looks up the model that judges, for an agent; None to judge nothing.
    """

    workspace: Path
    mode: Mode
    prefer_recorded: bool = False
    runs: int = 1
    usage: bool = False
    volatile: Sequence[str] = ()
    update: bool = False
    judge: Callable[[str], Provider] | None = None

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
            return await self._drift(chosen, script, recorded, file)
        if self.mode == "replay" or (self.prefer_recorded and recorded):
            return await self._replay(chosen, script, recorded)
        return await self._live(chosen, script, recorded)

    async def _live(self, chosen: Chosen, script: Script, recorded: Sequence[RecordedRun]) -> CaseResult:
        if chosen.case.tools == "recorded" and not recorded:
            nothing = Failure(
                "tools", "its tools answer as recorded, and nothing is recorded: lousho eval --record"
            )
            return _result(chosen, [_NewRun(Outcome(problem=nothing), None)])
        answers = _answers(chosen, recorded, nearest=False) if chosen.case.tools else None
        run = _NewRun(await self._player(chosen, answers).play(script), None)
        return _result(chosen, [await self._judged(chosen, script, run)])

    async def _record(
        self, chosen: Chosen, script: Script, before: Sequence[RecordedRun], file: Path
    ) -> CaseResult:
        """Keep runs that pass. One that does not pass leaves the earlier recording as it is."""
        runs = [await self._new_run(chosen, script, _stubs(chosen)) for _ in range(self.runs)]
        result = _result(chosen, runs)
        if result.status == "failed":
            return result
        kept = [run.recorded for run in runs if run.recorded is not None]
        write_recording(file, kept)
        return replace(result, comparison=await self._comparison(chosen, before, runs), runs=len(kept))

    async def _replay(self, chosen: Chosen, script: Script, recorded: Sequence[RecordedRun]) -> CaseResult:
        if not recorded:
            return _not_recorded(chosen)
        runs, compared = [], []
        for run in recorded:
            tape = Tape(run.turns, "replay", name=f"the recording of {chosen.name}", volatile=self.volatile)
            answers = _answers(chosen, [run], nearest=False)
            outcome = await self._player(chosen, answers, tape).play(script)
            runs.append(await self._judged(chosen, script, _NewRun(outcome, run), tape))
            compared.append(await self._comparison(chosen, [run], runs[-1:]))
        worst = max(
            (each for each in compared if each is not None),
            key=lambda each: len(each.stability.likeness.drift),
            default=None,
        )
        return replace(_result(chosen, runs), comparison=worst, runs=len(recorded))

    async def _drift(
        self, chosen: Chosen, script: Script, recorded: Sequence[RecordedRun], file: Path
    ) -> CaseResult:
        if not recorded:
            return _not_recorded(chosen)
        runs = [
            await self._new_run(chosen, script, _answers(chosen, recorded, nearest=True))
            for _ in range(self.runs)
        ]
        meanings = Meanings()
        comparison = await self._comparison(chosen, recorded, runs, meanings)
        result = replace(_result(chosen, runs), comparison=comparison, runs=len(recorded))
        if not self.update or result.comparison is None or result.status == "failed":
            return result
        kept = [run.recorded for run in runs if run.recorded is not None]
        verdict = result.comparison.stability.verdict
        return replace(
            result, update=planned(file, recorded, kept, verdict, _compare(chosen, self.volatile, meanings))
        )

    async def _new_run(self, chosen: Chosen, script: Script, answers: Answers | None) -> _NewRun:
        """Ask the model anew, and keep what it and the tools say."""
        tape, log = Tape(CassetteRun(), "record", volatile=self.volatile), AnswerLog()
        outcome = await self._player(chosen, answers, tape).play(script, observer=log.observe)
        if outcome.problem is not None:
            return _NewRun(outcome, None)
        judged = await self._judged(chosen, script, _NewRun(outcome, None), tape)
        delegates = answers is not None and answers.for_delegates
        return replace(judged, recorded=recorded_run(tape.run, log.answers, outcome, delegates=delegates))

    async def _judged(
        self, chosen: Chosen, script: Script, run: _NewRun, tape: Tape | None = None
    ) -> _NewRun:
        """The run with what the judge says of it, if there is one. What it says is on the tape too."""
        rubrics = chosen.case.expect.judge
        if self.judge is None or not rubrics or run.outcome.problem is not None:
            return run
        judging = Judge(_model(tape, partial(self.judge, chosen.agent)))
        found = [await judging.judge(rubric, script.turns, run.outcome) for rubric in rubrics]
        return replace(run, judgements=tuple(found))

    async def _comparison(
        self,
        chosen: Chosen,
        recorded: Sequence[RecordedRun],
        runs: Sequence[_NewRun],
        meanings: Meanings | None = None,
    ) -> Comparison | None:
        """The runs that came to their end held against the recorded ones."""
        ended = [run for run in runs if run.outcome.problem is None and run.recorded is not None]
        if not recorded or not ended:
            return None
        new = [trajectory_of(run.outcome, usage=self.usage) for run in ended]
        meanings = meanings or Meanings()
        compare = _compare(chosen, self.volatile, meanings)
        found = stability([run.trajectory for run in recorded], new, compare)
        judging = None if self.judge is None else partial(self.judge, chosen.agent)
        while await meanings.ask(judging):
            found = stability([run.trajectory for run in recorded], new, compare)
        shown, closest = ended[found.furthest], recorded[found.closest]
        return Comparison(
            found,
            closest.trajectory.steps,
            new[found.furthest].steps,
            agent_changes(closest.turns, shown.recorded.turns) if shown.recorded is not None else (),
            _rules(chosen).described(),
        )

    def _player(self, chosen: Chosen, answers: Answers | None, tape: Tape | None = None) -> Player:
        session = f"eval-{slug(chosen.file.eval.name)}-{slug(chosen.case.label)}"
        return player(self.workspace, chosen.agent, session, answers, partial(_model, tape))


def player(
    workspace: Path, agent: str, session: str, answers: Answers | None, make_provider: MakeProvider
) -> Player:
    """An agent that plays a case, loaded anew: no case sees what another left in its tools' modules.

    Args:
        session: names the conversation, for its tools.
        answers: what answers in the place of its tools, or None.
        make_provider: makes each of its models, by a function that looks the live one up.

    Raises:
        SDKError: it cannot be loaded, or its model is not set up.
    """
    ready = load_from_workspace(workspace, agent, make_provider=make_provider)
    double = ready.agent if answers is None else answered(ready.agent, answers)
    return Player(double, ready.provider, session, ready.settings.tool_concurrency)


def _model(tape: Tape | None, live: Callable[[], Provider]) -> Provider:
    """The model that `live` looks up; in a replay it need not exist."""
    return live() if tape is None else tape.model(live)


def _answers(chosen: Chosen, recorded: Sequence[RecordedRun], *, nearest: bool) -> Answers | None:
    """What answers in the place of the tools: the case's stubs, or its recording; None for the tools."""
    if chosen.case.tools == "live":
        return None
    if chosen.case.tools == "stub":
        return StubAnswers(chosen.case.stubs)
    return RecordedAnswers(
        [each for run in recorded for each in run.answers],
        nearest=nearest,
        delegates=any(run.delegates for run in recorded),
    )


def _compare(chosen: Chosen, volatile: Sequence[str], meanings: Meanings) -> Compare:
    return partial(likeness, same=Sameness(_rules(chosen), Volatile(volatile), meanings))


def _rules(chosen: Chosen) -> Strictness:
    return strictness(chosen.file.eval.drift, chosen.case.drift)


def _stubs(chosen: Chosen) -> Answers | None:
    """What answers in the place of the tools while a case is recorded."""
    return StubAnswers(chosen.case.stubs) if chosen.case.tools == "stub" else None


def _not_recorded(chosen: Chosen) -> CaseResult:
    return CaseResult(chosen.agent, chosen.file.eval.name, chosen.case.label, "skipped")


def _result(chosen: Chosen, runs: Sequence[_NewRun]) -> CaseResult:
    """What the checks, and the judge, say of one or several runs of a case, as one result."""
    verdicts = [judge(chosen.case.expect, run.outcome) for run in runs]
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    failures = _numbered([verdict.failures for verdict in verdicts])
    judged = [[each.warning for each in run.judgements if each.warning is not None] for run in runs]
    warnings = [(*verdict.warnings, *said) for verdict, said in zip(verdicts, judged, strict=True)]
    return CaseResult(
        chosen.agent,
        chosen.file.eval.name,
        chosen.case.label,
        "failed" if failures else "passed",
        failures,
        _numbered(warnings),
        min(scores) if scores else None,
        judgements=tuple(each for run in runs for each in run.judgements),
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
