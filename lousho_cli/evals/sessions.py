"""Sessions as evals: one becomes a case with a recording, or is run again as it was recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ConfigurationError
from ..execution.fingerprint import drift as changes_since
from ..execution.protocols import Provider
from ..providers.cassette import CassetteRun, slug
from ..providers.cassette_model import Tape
from ..providers.cassette_volatile import Volatile
from ..stores.files import storage
from ..workspace import agent_folder
from .answers import AnswerLog, RecordedAnswers
from .case_file import NotInTomlError, eval_file
from .cases import Decision
from .drift_rules import Strictness
from .files import EVALS_FOLDER, EvalFile, read_eval, read_evals
from .likeness import likeness
from .playing import Player, Script
from .recalled import RecalledModel
from .recordings import RecordedRun, recorded_run, trajectory_of, write_recording
from .results import CaseResult, Comparison
from .same_calls import Sameness
from .session_case import SessionCase
from .stability import stability
from .stage import player
from .turns import message_of

SESSION_EVAL = "session"
"""Stands for the eval of a session that is run again."""


@dataclass(frozen=True)
class SessionStage:
    """Where a session is played again. No tool runs: they answer as they did.

    Attributes:
        workspace: the `.lousho` folder.
        case: the session.
        volatile: regular expressions of texts that make no difference.
    """

    workspace: Path
    case: SessionCase
    volatile: Sequence[str] = ()

    async def recording(self) -> RecordedRun:
        """The session as the recording of a case, made by playing its model's turns on the agent as it is.

        Raises:
            ConfigurationError: the agent cannot go that way any more.
            SDKError: the agent cannot be loaded.
        """
        model = RecalledModel(self.case.model, self.case.model_turns)
        tape, log = Tape(CassetteRun(), "record", volatile=self.volatile), AnswerLog()
        playing = self._player(lambda _: tape.model(model), nearest=True)
        outcome = await playing.play(self._script(None), observer=log.observe)
        if outcome.problem is not None:
            raise ConfigurationError(
                f"session {self.case.session_id!r} cannot be played again: {outcome.problem.message}",
                hint="see lousho show; the agent may have changed too much",
            )
        return recorded_run(tape.run, log.answers, outcome, delegates=True)

    async def drift(self, runs: int) -> CaseResult:
        """Ask the agent's model anew and compare the way it goes with the session's.

        What waits for a human is decided as in the session; where that does not say, it is approved, as the
        tool does not run.

        Raises:
            SDKError: the agent cannot be loaded, or its model is not set up.
        """
        began = time.monotonic()
        outcomes = []
        for _ in range(runs):
            playing = self._player(lambda live: live(), nearest=True)
            outcomes.append(await playing.play(self._script(Decision(approve=True))))
        problems = [outcome.problem for outcome in outcomes if outcome.problem is not None]
        result = CaseResult(
            self.case.agent,
            SESSION_EVAL,
            self.case.session_id,
            "failed" if problems else "passed",
            tuple(problems),
            runs=1,
            seconds=time.monotonic() - began,
        )
        ended = [outcome for outcome in outcomes if outcome.problem is None]
        if not ended:
            return result
        same = Sameness(Strictness(), Volatile(self.volatile))
        new = [trajectory_of(outcome, usage=False) for outcome in ended]
        found = stability([self.case.trajectory], new, lambda old, now: likeness(old, now, same))
        changed = changes_since(self.case.fingerprint, ended[found.furthest].fingerprint or {"hash": ""})
        return replace(
            result, comparison=Comparison(found, self.case.steps, new[found.furthest].steps, changed)
        )

    def _player(self, make: Callable[[Callable[[], Provider]], Provider], *, nearest: bool) -> Player:
        answers = RecordedAnswers(self.case.answers, nearest=nearest, delegates=True)
        return player(self.workspace, self.case.agent, f"eval-{slug(self.case.session_id)}", answers, make)

    def _script(self, otherwise: Decision | None) -> Script:
        turns = [message_of(turn, self.workspace) for turn in self.case.turns]
        limits = [turn.max_steps for turn in self.case.turns]
        return Script(turns, dict(self.case.decisions), self.case.business_state, limits, otherwise)


def write_case(workspace: Path, case: SessionCase, name: str, recording: RecordedRun) -> EvalFile:
    """Write the eval file and the recording of a session.

    Raises:
        ConfigurationError: there is an eval of that name, or the session cannot be written as one.
        StorageError: a file cannot be written.
    """
    folder = agent_folder(workspace, case.agent)
    path = folder / EVALS_FOLDER / f"{slug(name)}.toml"
    if path.exists() or any(slug(each.eval.name) == slug(name) for each in read_evals(folder)):
        raise ConfigurationError(
            f"agent {case.agent!r} has an eval {slug(name)!r}", hint="give another name with --as"
        )
    try:
        text = eval_file(case, name)
    except NotInTomlError as error:
        raise ConfigurationError(
            f"session {case.session_id!r} cannot be written as an eval: {error}",
            hint="a message of its user holds null",
        ) from error
    with storage(path, "written"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    file = read_eval(path)
    write_recording(file.cassette(name), [recording])
    return file
