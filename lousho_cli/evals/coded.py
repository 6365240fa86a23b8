"""Evals as code: conversations played from a test, and what came of them, for plain asserts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from ..errors import ConfigurationError
from ..execution.agent import Agent
from ..execution.protocols import Provider
from ..execution.steps import Step, StepCall
from ..execution.sync import run_sync
from ..execution.unset import UNSET
from ..providers.cassette import CassetteRun, slug
from ..providers.cassette_model import Tape
from ..workspace import require_workspace
from .answers import AnswerLog, Answers, RecordedAnswers, StubAnswers, answered
from .cases import Case, ToolAnswers
from .matching import holds
from .outcome import Outcome
from .playing import Player, Script
from .recordings import read_recording, recorded_run, write_recording
from .stage import player

CASSETTES = "__cassettes__"

CodeMode = Literal["live", "record", "replay"]


@runtime_checkable
class HasAgent(Protocol):
    """What `create_agent` makes."""

    @property
    def agent(self) -> Agent: ...


class EvalRun:
    """What came of a conversation. Made for asserts: what it shows of itself says what happened."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def __repr__(self) -> str:
        calls = ", ".join(f"{call.name} {call.args}" for call in self.calls) or "no calls"
        return f"<run: {calls}; {', '.join(self.endings)}; reply {self.reply!r}>"

    @property
    def reply(self) -> str:
        """The last reply."""
        return self._outcome.reply

    @property
    def steps(self) -> Sequence[Step]:
        """Every model turn, with its calls."""
        return self._outcome.steps

    @property
    def calls(self) -> list[StepCall]:
        """Every tool call, in order: `name`, `args`, `result`."""
        return self._outcome.calls

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were called, in order."""
        return [call.name for call in self.calls]

    @property
    def endings(self) -> tuple[str, ...]:
        """Why each turn's run ended: a finish reason."""
        return self._outcome.endings

    @property
    def completed(self) -> bool:
        """Whether every turn ended with an answer of the model."""
        return set(self.endings) == {"stop"}

    @property
    def tokens(self) -> int:
        """Used in all."""
        return self._outcome.tokens

    @property
    def cost_usd(self) -> float | None:
        """In all; None if it is not known."""
        return self._outcome.cost_usd

    def called(self, tool: str, **args: Any) -> list[StepCall]:
        """The calls of a tool whose arguments hold these; they may hold more, at every depth."""
        return [call for call in self.calls if call.name == tool and holds(call.args, args)]


class AgentEval:
    """Plays conversations with agents, each in a session of its own that is kept in memory.

    Args:
        file: the test's file; recordings are beside it, in `__cassettes__/<file>/<test>.json`.
        test: the test's name.
        mode: `live` asks models and runs tools, `record` keeps what they say too, `replay` plays that alone.
        prefer_recorded: without a mode, replay what is recorded.
    """

    def __init__(
        self, file: Path, test: str, mode: CodeMode | None = None, *, prefer_recorded: bool = False
    ) -> None:
        self._file = file
        self._test = test
        self._mode = mode
        self._prefer_recorded = prefer_recorded
        self._played = 0

    def __call__(
        self,
        agent: str | Agent | HasAgent,
        *turns: str,
        decisions: Mapping[str, Any] | None = None,
        business_state: Any = UNSET,
        tools: ToolAnswers | None = None,
        stubs: Sequence[Mapping[str, Any]] = (),
        workspace: str | Path | None = None,
    ) -> EvalRun:
        """Say `turns` to an agent, one after another.

        Args:
            agent: the name of an agent of the workspace, or one made with `create_agent`.
            decisions: what is decided about calls that wait for a human, by tool: "approve", "reject",
                {"edit": {...}} or {"reject": "why"}, or a list of these.
            business_state: the value the tools share.
            tools: where tools' answers come from: `live`, `recorded` or `stub`; by default they are recorded
                in a replay, else live.
            stubs: with tools="stub", mappings of `tool`, `args`, and `result` or `error`.
            workspace: the `.lousho` folder; by default the one of the test's folder or above it.

        Raises:
            AssertionError: the conversation could not be played to its end; says why.
            ConfigurationError: an argument is wrong, or the agent cannot be loaded.
            CassetteError: a recording is missing or damaged.
        """
        case = Case.model_validate(
            {
                "label": self._test,
                "input": list(turns),
                "decisions": dict(decisions or {}),
                "tools": tools,
                "stubs": list(stubs),
            }
        )
        self._played += 1
        number = f"-{self._played}" if self._played > 1 else ""
        file = self._file.parent / CASSETTES / self._file.stem / f"{slug(self._test)}{number}.json"
        script = Script([turn.text for turn in case.input], case.decisions, business_state)
        return EvalRun(_play(self._cast(agent, workspace), case, script, file, self._mode_for(file)))

    def _mode_for(self, file: Path) -> CodeMode:
        if self._mode is not None:
            return self._mode
        return "replay" if self._prefer_recorded and file.exists() else "live"

    def _cast(self, agent: str | Agent | HasAgent, workspace: str | Path | None) -> _Cast:
        session = f"eval-{slug(self._test)}"
        if isinstance(agent, str):
            folder = require_workspace(None if workspace is None else str(workspace), self._file.parent)
            return lambda answers, tape: player(
                folder, agent, session, answers, lambda live: live() if tape is None else tape.model(live)
            )
        return partial(_of_code, agent if isinstance(agent, Agent) else agent.agent, session)


class _Cast(Protocol):
    """Makes the player of a conversation."""

    def __call__(self, answers: Answers | None, tape: Tape | None) -> Player: ...


def _of_code(agent: Agent, session: str, answers: Answers | None, tape: Tape | None) -> Player:
    provider: Provider | None = agent.provider
    if provider is None:
        raise ConfigurationError(
            f"agent {agent.name!r} has no model to ask",
            code="LOUSHO_CONFIG_MISSING_PROVIDER",
            hint="make it with create_agent(provider=...)",
        )
    double = agent if answers is None else answered(agent, answers)
    return Player(double, provider if tape is None else tape.model(provider), session)


def _play(cast: _Cast, case: Case, script: Script, file: Path, mode: CodeMode) -> Outcome:
    stubs = StubAnswers(case.stubs) if case.tools == "stub" else None
    if mode == "replay":
        outcome = _replayed(cast, case, script, file, stubs)
    elif mode == "record":
        outcome = _recorded(cast, script, file, stubs)
    else:
        outcome = run_sync(lambda: cast(stubs, None).play(script))
    # What cannot be played to its end is a failed test, told like a failed assert.
    assert outcome.problem is None, f"{outcome.problem.check}: {outcome.problem.message}"
    return outcome


def _replayed(cast: _Cast, case: Case, script: Script, file: Path, stubs: Answers | None) -> Outcome:
    recorded = read_recording(file)
    assert recorded, f"nothing is recorded in {file}: run the test with --agent-evals record"
    answers = stubs
    if case.tools in (None, "recorded"):
        answers = RecordedAnswers(recorded[0].answers, nearest=False, delegates=recorded[0].delegates)
    tape = Tape(recorded[0].turns, "replay", name=f"the recording {file}")
    return run_sync(lambda: cast(answers, tape).play(script))


def _recorded(cast: _Cast, script: Script, file: Path, stubs: Answers | None) -> Outcome:
    tape, log = Tape(CassetteRun(), "record"), AnswerLog()
    outcome = run_sync(lambda: cast(stubs, tape).play(script, observer=log.observe))
    if outcome.problem is None:
        write_recording(file, [recorded_run(tape.run, log.answers, outcome)])
    return outcome
