"""Holding what was seen against what was expected: every check that does not hold, in words. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..execution.steps import StepCall, parsed
from ..execution.values import to_json_value
from ..render.fields import MISSING
from .cases import Checks, Expectations, ExpectedCall, ExpectedReply
from .matching import closest, holds, lacking
from .outcome import Failure, Outcome

_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checks of a case found.

    Attributes:
        failures: gates that do not hold.
        warnings: soft checks that do not hold.
        score: the share of the soft checks that hold, 0 to 1; None without soft checks.
    """

    failures: tuple[Failure, ...]
    warnings: tuple[Failure, ...] = ()
    score: float | None = None


def judge(expected: Expectations, outcome: Outcome) -> Verdict:
    """Hold an outcome against the gates and the soft checks of its case."""
    if outcome.problem is not None:
        return Verdict((outcome.problem,))
    failures = tuple(failure for found in results(expected, outcome) for failure in found)
    soft = expected.soft
    if soft is None:
        return Verdict(failures)
    found = results(soft, outcome)
    warnings = tuple(failure for each in found for failure in each)
    score = sum(not each for each in found) / len(found) if found else 1.0
    if score < soft.threshold:
        said = "; ".join(each.message for each in warnings)
        low = f"{score:.2f} of the soft checks hold, wanted {soft.threshold:g}: {said}"
        failures = (*failures, Failure("soft", low))
    return Verdict(failures, warnings, score)


def results(expected: Checks, outcome: Outcome) -> list[list[Failure]]:
    """For each check that is made, what is wrong: nothing where it holds."""
    found = [list(_called(each, outcome)) for each in expected.called]
    found += [list(_not_called(tool, outcome)) for tool in expected.not_called]
    found += [list(_output(path, value, outcome)) for path, value in expected.output.items()]
    for key, check in _SINGLE.items():
        wanted = getattr(expected, key)
        if wanted is not None and wanted != ():
            found.append([Failure(key, message) for message in check(wanted, outcome)])
    return found


def shown_call(call: StepCall) -> str:
    """A call as it is written in messages: its tool and its arguments."""
    return f"{call.name} {shown(call.args)}"


def shown(value: Any) -> str:
    """A JSON value in a message, its beginning if it is long."""
    text = "missing" if value is MISSING else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def first_difference(seen: Any, expected: Any) -> str:
    """The first field in which `seen` lacks what is expected, in words."""
    change = next(lacking(seen, expected))
    return f"{change.path or 'the value'} is {shown(change.new)}, wanted {shown(change.old)}"


def _completed(wanted: bool, outcome: Outcome) -> Iterator[str]:
    completed = all(ending == "stop" for ending in outcome.endings)
    if completed != wanted:
        word = "completed" if wanted else "not completed"
        yield f"wanted {word}, but the run ended with {outcome.endings[-1]!r}"


def _called(expected: ExpectedCall, outcome: Outcome) -> Iterator[Failure]:
    args = to_json_value(expected.args)
    matching = [each for each in outcome.calls if each.name == expected.tool and holds(each.args, args)]
    wanted = expected.tool + (f" {shown(args)}" if args else "")
    if expected.times is None:
        if not matching:
            yield Failure("called", f"{wanted} was not called; {_nearest(expected.tool, args, outcome)}")
    elif len(matching) != expected.times:
        seen = f"; {_nearest(expected.tool, args, outcome)}" if not matching else ""
        message = f"{wanted} was called {len(matching)} times, wanted {expected.times}{seen}"
        yield Failure("called", message)


def _nearest(tool: str, args: Any, outcome: Outcome) -> str:
    near = closest(outcome.calls, tool, args)
    if near is None:
        return f"called were: {_names(outcome.calls)}"
    return f"the closest call is {shown_call(near)}: {first_difference(near.args, args)}"


def _names(calls: Sequence[StepCall]) -> str:
    return " > ".join(call.name for call in calls) or "no tools"


def _not_called(tool: str, outcome: Outcome) -> Iterator[Failure]:
    for call in outcome.calls:
        if call.name == tool:
            yield Failure("not_called", f"{tool} must not be called, but was: {shown_call(call)}")
            return


def _order(wanted: Sequence[str], outcome: Outcome) -> Iterator[str]:
    names = iter(call.name for call in outcome.calls)
    for tool in wanted:
        if tool not in names:
            yield f"wanted {' > '.join(wanted)}; {tool} is missing in its place: {_names(outcome.calls)}"
            return


def _at_most(what: str) -> Callable[[float, float | None], Iterator[str]]:
    def check(limit: float, seen: float | None) -> Iterator[str]:
        if seen is None:
            yield f"wanted at most {limit:g} {what}, but how many were used is not known"
        elif seen > limit:
            yield f"wanted at most {limit:g} {what}, but {seen:g} were used"

    return check


_STEPS, _TOKENS, _COST = _at_most("steps"), _at_most("tokens"), _at_most("US dollars")


def _reply(wanted: ExpectedReply, outcome: Outcome) -> Iterator[str]:
    reply = shown(outcome.reply)
    for text in wanted.includes:
        if text not in outcome.reply:
            yield f"the reply does not include {shown(text)}: {reply}"
    if wanted.matches is not None and not re.search(wanted.matches, outcome.reply):
        yield f"the reply does not match {wanted.matches}: {reply}"
    if wanted.equals is not None and outcome.reply != wanted.equals:
        yield f"the reply is {reply}, wanted {shown(wanted.equals)}"


def _output(path: str, wanted: Any, outcome: Outcome) -> Iterator[Failure]:
    value: Any = parsed(outcome.reply)
    for key in path.split("."):
        if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            yield Failure("output", f"the output has no {path}: {shown(outcome.reply)}")
            return
    expected = to_json_value(wanted)
    if not holds(value, expected):
        yield Failure("output", f"in the output, at {path}: {first_difference(value, expected)}")


_SINGLE: dict[str, Callable[[Any, Outcome], Iterator[str]]] = {
    "completed": _completed,
    "order": _order,
    "max_steps": lambda limit, outcome: _STEPS(limit, len(outcome.steps)),
    "max_tokens": lambda limit, outcome: _TOKENS(limit, outcome.tokens),
    "max_cost_usd": lambda limit, outcome: _COST(limit, outcome.cost_usd),
    "reply": _reply,
}
