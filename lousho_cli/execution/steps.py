"""What a run did, step by step, and where two runs part, as plain values (R3.11).

`trajectory` makes the public records of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .messages import JsonObject, MessageData, calls_of, text_of
from .unset import UNSET

_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class StepCall:
    """One tool call of a step.

    Attributes:
        name: the tool's name.
        args: the arguments as a JSON value; the text the model sent where it is no JSON.
        result: likewise; UNSET while the call has none.
    """

    name: str
    args: Any
    result: Any = UNSET

    def to_json(self) -> JsonObject:
        data: JsonObject = {"name": self.name, "args": self.args}
        if self.result is not UNSET:
            data["result"] = self.result
        return data


@dataclass(frozen=True, slots=True)
class Step:
    """One model turn: what it said and the tools it used."""

    text: str
    tools: tuple[StepCall, ...]

    def to_json(self) -> JsonObject:
        return {"text": self.text, "tools": [tool.to_json() for tool in self.tools]}


class Difference(NamedTuple):
    """One field of two runs that differs, in words: how it was committed, how it is."""

    field: str
    committed: str
    current: str


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A run to compare.

    Attributes:
        steps: one for each model turn of the transcript.
        ended: as `ending` says; None for a bare transcript.
        tokens: used in all; None if they do not count.
    """

    steps: Sequence[Step]
    ended: str | None = None
    tokens: int | None = None


def ending(status: str, finish_reason: str | None) -> str:
    """Why a run ended, or its status while it has not: the reason of a model turn in between is no end."""
    if finish_reason is not None and (status == "finished" or finish_reason == "aborted"):
        return finish_reason
    return status


def steps_of(messages: Iterable[MessageData]) -> Iterator[Step]:
    """The steps of a transcript, one for each model turn."""
    turn: MessageData | None = None
    results: dict[str, MessageData] = {}
    for message in messages:
        if message["role"] == "assistant":
            if turn is not None:
                yield _step(turn, results)
            turn, results = message, {}
        elif message["role"] == "tool":
            results[str(message.get("toolCallId"))] = message
    if turn is not None:
        yield _step(turn, results)


def diverged_at(a: Sequence[Step], b: Sequence[Step]) -> int | None:
    """The number (from 1) of the first step that differs, tool-call ids aside; None if none does."""
    for number, (one, other) in enumerate(zip(a, b, strict=False), 1):
        if _key(one) != _key(other):
            return number
    return None if len(a) == len(b) else min(len(a), len(b)) + 1


def drift(a: Trajectory, b: Trajectory) -> list[Difference]:
    """What differs between two runs as wholes, `a` being the one committed to."""
    calls_a, calls_b = ([tool for step in run.steps for tool in step.tools] for run in (a, b))
    found = [*_tools(calls_a, calls_b), *_arguments(calls_a, calls_b)]
    if len(a.steps) != len(b.steps):
        found.append(Difference("steps", str(len(a.steps)), str(len(b.steps))))
    if a.ended is not None and b.ended is not None and a.ended != b.ended:
        found.append(Difference("finishReason", a.ended, b.ended))
    if a.tokens is not None and b.tokens is not None and a.tokens != b.tokens:
        found.append(Difference("usage", str(a.tokens), str(b.tokens)))
    return found


def parsed(text: Any) -> Any:
    """The JSON value that a text is, or the text itself.

    NaN and the infinities are no JSON. A value nested more than 200 levels deep stays text.
    """
    if not isinstance(text, str):
        return text
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return text
    return text if _too_deep(value) else value


def _step(turn: MessageData, results: Mapping[str, MessageData]) -> Step:
    return Step(
        text_of(turn["content"]),
        tuple(
            StepCall(
                call["function"]["name"],
                parsed(call["function"]["arguments"]),
                parsed(results[call["id"]]["content"]) if call["id"] in results else UNSET,
            )
            for call in calls_of(turn)
        ),
    )


def _key(step: Step) -> str:
    """Equal for equal steps: JSON tells 1 from true and from 1.0, which Python does not."""
    return json.dumps(step.to_json(), sort_keys=True)


def _tools(a: Sequence[StepCall], b: Sequence[StepCall]) -> Iterator[Difference]:
    names_a, names_b = ([tool.name for tool in tools] for tools in (a, b))
    if names_a != names_b:
        yield Difference("tools", " > ".join(names_a), " > ".join(names_b))


def _arguments(a: Sequence[StepCall], b: Sequence[StepCall]) -> Iterator[Difference]:
    """Calls with other arguments, as far as both runs made the same calls."""
    for one, other in zip(a, b, strict=False):
        if one.name != other.name:
            return
        before, now = shown_call(one), shown_call(other)
        if before != now:
            yield Difference("args", before, now)


def shown_call(tool: StepCall) -> str:
    """A call as runs are compared in words: `lookup_order {"orderId":"42"}`."""
    args = json.dumps(tool.args, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    try:
        args.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which no record can hold, as the escape it was sent as.
        args = json.dumps(tool.args, sort_keys=True, separators=(",", ":"))
    return f"{tool.name} {args}"


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large for a float")
    return number


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
