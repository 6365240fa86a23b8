"""A session as a case: what was said, what was decided, what tools answered, and the way it took. Pure.

An open end (calls without results, a message without an answer) is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigurationError
from ..execution.entry import DEFAULT_MAX_STEPS
from ..execution.messages import JsonObject, MessageData, calls_of
from ..execution.state import State
from ..execution.steps import Step, Trajectory, parsed, steps_of
from ..execution.unset import UNSET
from .answers import ToolAnswer
from .cases import Decision, Turn

_ANSWERED = ("stop", "length", "content-filter")


@dataclass(frozen=True)
class SessionCase:
    """A session as a case.

    Attributes:
        session_id, agent: whose.
        turns: what was said.
        decisions: what was decided about calls that waited for a human, in order, by tool.
        business_state: the value the tools shared at the start; UNSET where it is not kept.
        model: the model's id.
        model_turns: what it said, as messages.
        answers: of the tools, in order; of sub-agents what they answered as a whole.
        steps: the way it took.
        ended: why its last run ended; None where the end is left out.
        left_out: how many model turns were left out at its open end.
        fingerprint: of the agent it was made with; None if there is none.
    """

    session_id: str
    agent: str
    turns: Sequence[Turn]
    decisions: Mapping[str, Sequence[Decision]]
    business_state: Any
    model: str
    model_turns: Sequence[JsonObject]
    answers: Sequence[ToolAnswer]
    steps: Sequence[Step]
    ended: str | None
    left_out: int
    fingerprint: JsonObject | None

    @property
    def is_completed(self) -> bool:
        """Whether every turn ended with an answer of the model."""
        return self.ended == "stop" and all(turn.max_steps is None for turn in self.turns)

    @property
    def trajectory(self) -> Trajectory:
        return Trajectory(self.steps, self.ended)


def session_case(state: State, business_state: Any = UNSET) -> SessionCase:
    """A session as a case.

    Args:
        business_state: the value its tools shared at the start; UNSET where that is not kept.

    Raises:
        ConfigurationError: nothing in it has been finished.
    """
    runs = list(_runs([dict(message) for message in state.log]))
    finished = [run for run in runs if run.said]
    if not finished:
        raise ConfigurationError(
            f"no model turn of session {state.session_id!r} has been finished",
            hint="let it run first: lousho resume",
        )
    messages: list[Any] = [message for run in finished for message in run.messages]
    is_whole = not any(run.left_out for run in runs) and len(finished) == len(runs)
    fingerprint = state.fingerprint or {}
    return SessionCase(
        session_id=str(state.session_id),
        agent=state.agent,
        turns=[run.turn() for run in finished],
        decisions=_decisions(messages),
        business_state=business_state,
        model=str(fingerprint.get("model") or "unknown"),
        model_turns=[message for message in messages if message["role"] == "assistant"],
        answers=list(_answers(messages)),
        steps=list(steps_of(messages)),
        ended=state.finish_reason if is_whole and state.finish_reason in _ANSWERED else None,
        left_out=sum(run.left_out for run in runs),
        fingerprint=state.fingerprint,
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """What was said in a row, and what the model and the tools made of it.

    Attributes:
        said: finished model turns with their results.
        left_out: how many model turns were not finished.
    """

    given: list[JsonObject]
    said: list[JsonObject]
    left_out: int

    @property
    def messages(self) -> list[JsonObject]:
        return [*self.given, *self.said]

    def turn(self) -> Turn:
        """What was said, with the number of steps where the model did not answer in the end, or late."""
        turns = [message for message in self.said if message["role"] == "assistant"]
        cut = bool(calls_of(turns[-1]))  # type: ignore[arg-type]
        limit = len(turns) if cut or len(turns) > DEFAULT_MAX_STEPS else None
        content = self.given[0]["content"] if self.given else ""
        if len(self.given) == 1 and isinstance(content, str) and content:
            return Turn(text=content, max_steps=limit)
        return Turn(messages=tuple(self.given), max_steps=limit)


def _runs(messages: Sequence[JsonObject]) -> Iterator[_Run]:
    """The transcript cut before each message of the user that follows a model turn."""
    given: list[JsonObject] = []
    said: list[JsonObject] = []
    for message in messages:
        if message["role"] in ("user", "system") and said:
            yield _finished(given, said)
            given, said = [], []
        (given if message["role"] in ("user", "system") else said).append(message)
    if given or said:
        yield _finished(given, said)


def _finished(given: list[JsonObject], said: list[JsonObject]) -> _Run:
    """A run without its last model turn where calls of it have no result."""
    last = next((i for i in range(len(said) - 1, -1, -1) if said[i]["role"] == "assistant"), None)
    if last is None:
        return _Run(given, [], 0)
    answered = {message.get("toolCallId") for message in said[last + 1 :]}
    is_open = any(call["id"] not in answered for call in calls_of(said[last]))  # type: ignore[arg-type]
    return _Run(given, said[:last] if is_open else said, int(is_open))


def _results(messages: Sequence[MessageData]) -> Iterator[tuple[str, Any, MessageData]]:
    """Each call with its result: the tool's name, the arguments it ran with, the result."""
    asked: dict[str, tuple[str, Any]] = {}
    for message in messages:
        if message["role"] == "assistant":
            # Ids are unique in a session, but not in transcripts from elsewhere.
            asked = {c["id"]: (c["function"]["name"], c["function"]["arguments"]) for c in calls_of(message)}
        elif message["role"] == "tool" and message.get("toolCallId") in asked:
            name, arguments = asked[message["toolCallId"]]
            grant = message.get("approval")
            edited = isinstance(grant, Mapping) and grant.get("edited")
            yield name, grant["arguments"] if edited else parsed(arguments or "{}"), message  # type: ignore[index]


def _answers(messages: Sequence[MessageData]) -> Iterator[ToolAnswer]:
    for name, args, message in _results(messages):
        result, kind = parsed(message["content"]), None
        if message.get("isError"):
            result = result if isinstance(result, dict) else {"error": str(result)}
            kind = str(result.get("kind", "tool-error"))
        if isinstance(args, dict):
            yield ToolAnswer(name, args, result, kind)


def _decisions(messages: Sequence[MessageData]) -> dict[str, list[Decision]]:
    found: dict[str, list[Decision]] = {}
    for name, args, message in _results(messages):
        grant = message.get("approval")
        if isinstance(grant, Mapping):
            result = parsed(message["content"])
            kind = result.get("kind") if isinstance(result, dict) and message.get("isError") else None
            edited = args if grant.get("edited") else None
            decision = Decision(approve=True, arguments=edited)
            if kind == "rejected":
                decision = Decision(approve=False, note=result.get("note"))
            found.setdefault(name, []).append(decision)
    return found
