"""Answers of tools that are not run: from a recording, or from the stubs of a case."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..errors import PropagatingToolError
from ..execution.agent import Agent
from ..execution.delegates import with_delegates
from ..execution.events import Event
from ..execution.messages import JsonObject
from ..execution.steps import StepCall
from ..execution.tools import InvalidArgumentsError, KnownFailure, Tool, ToolRegistry
from ..execution.toolsets import OpenToolset, Toolset
from ..execution.values import to_json_value
from ..render.fields import canonical
from .cases import Stub
from .checks import first_difference, shown
from .matching import closest, holds

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A call of a tool and what came of it.

    Attributes:
        tool: its name.
        args: what it ran with, as JSON.
        result: what it returned as JSON, or the error result.
        error: the kind of the error; None for a result.
        path: the sub-agents, outermost first, that made the call; empty for the agent itself.
    """

    tool: str
    args: JsonObject
    result: Any
    error: str | None = None
    path: Path = ()


class Answers(Protocol):
    """What answers in the place of tools.

    Attributes:
        for_delegates: whether in the place of sub-agents too.
    """

    for_delegates: bool

    def answer(self, path: Path, tool: Tool, args: JsonObject) -> Any:
        """The result of a call; raises what the call fails with."""
        ...


class AnswerLog:
    """An observer that keeps what came of every call of a run, in the order of their ends.

    Attributes:
        answers: those so far.
    """

    def __init__(self) -> None:
        self.answers: list[ToolAnswer] = []
        self._started: dict[tuple[Path, str], JsonObject] = {}

    def observe(self, event: Event) -> None:
        data = event.data
        if event.type == "tool.start":
            self._started[event.path, data["toolCallId"]] = json.loads(data["args"])
        elif event.type in ("tool.done", "tool.error"):
            # A call that was refused never started, and the engine will refuse it again.
            args = self._started.pop((event.path, data["toolCallId"]), None)
            if args is not None:
                result, kind = json.loads(data["result"]), data.get("kind")
                self.answers.append(ToolAnswer(data["toolName"], args, result, kind, event.path))


class RecordedAnswers:
    """Answers from a recording, each used once, in their order: by agent, tool and arguments.

    Args:
        recorded: what was recorded.
        delegates: whether they hold what sub-agents answered as a whole: these do not run then.
        nearest: whether a call that was never recorded gets the answer of the closest call of its tool, used
            or not, instead of ending the run. A tool that was never called gets that of another with the very
            same arguments, as it may have a new name; else its call fails, and the run goes on.
    """

    def __init__(self, recorded: Iterable[ToolAnswer], *, nearest: bool, delegates: bool = False) -> None:
        self.for_delegates = delegates
        self._left = list(recorded)
        self._all = list(self._left)
        self._nearest = nearest

    def answer(self, path: Path, tool: Tool, args: JsonObject) -> Any:
        found = _exact(self._left, path, tool, args)
        if found is not None:
            self._left.remove(found)
        elif self._nearest:
            found = _exact(self._all, path, tool, args) or self._closest(path, tool, args)
            found = found or self._renamed(path, tool, args)
        if found is None and self._nearest:
            raise KnownFailure("not-run", self._missing(path, tool, args))
        if found is None:
            raise PropagatingToolError(self._missing(path, tool, args), code="LOUSHO_EVALS_NO_ANSWER")
        if found.error is not None:
            raise KnownFailure(found.error, str(found.result.get("error", "")), found.result.get("note"))
        return found.result

    def _closest(self, path: Path, tool: Tool, args: JsonObject) -> ToolAnswer | None:
        candidates = [each for each in self._all if (each.path, each.tool) == (path, tool.name)]
        near = closest([StepCall(each.tool, each.args) for each in candidates], tool.name, args)
        return next((each for each in candidates if near is not None and each.args is near.args), None)

    def _renamed(self, path: Path, tool: Tool, args: JsonObject) -> ToolAnswer | None:
        wanted = canonical(args)
        fitting = (each for each in self._left if each.path == path and canonical(each.args) == wanted)
        return next(fitting, None)

    def _missing(self, path: Path, tool: Tool, args: JsonObject) -> str:
        call = f"{tool.name} {shown(args)}"
        near = self._closest(path, tool, args)
        if near is None:
            recorded = " > ".join(each.tool for each in self._all) or "no calls"
            return f"no answer is recorded for {call}; recorded are: {recorded}"
        if canonical(near.args) == canonical(args):
            return f"{call} was called more often than it was recorded"
        return (
            f"no answer is recorded for {call}; the closest recorded call is {near.tool} {shown(near.args)}: "
            f"{_difference(args, near.args)}"
        )


class StubAnswers:
    """Answers from the stubs of a case: the first whose arguments the call's hold."""

    for_delegates = False

    def __init__(self, stubs: Sequence[Stub]) -> None:
        self._stubs = stubs

    def answer(self, path: Path, tool: Tool, args: JsonObject) -> Any:
        for stub in self._stubs:
            if stub.tool == tool.name and holds(args, to_json_value(stub.args)):
                if stub.error is not None:
                    raise KnownFailure("tool-error", stub.error)
                return stub.result
        raise PropagatingToolError(self._missing(tool, args), code="LOUSHO_EVALS_NO_ANSWER")

    def _missing(self, tool: Tool, args: JsonObject) -> str:
        call = f"{tool.name} {shown(args)}"
        wanted = [to_json_value(stub.args) for stub in self._stubs if stub.tool == tool.name]
        if not wanted:
            names = ", ".join(dict.fromkeys(stub.tool for stub in self._stubs)) or "none"
            return f"no stub answers {call}; there are stubs for: {names}"
        return f"no stub answers {call}: {first_difference(args, wanted[0])}"


def answered(agent: Agent, answers: Answers, path: Path = ()) -> Agent:
    """The agent with tools of the same names and arguments that `answers` answers for, sub-agents' too."""
    assert isinstance(agent.tools, ToolRegistry)
    double = copy.copy(agent)
    double.toolsets = tuple(_AnsweredToolset(each, answers, path) for each in agent.toolsets)
    if answers.for_delegates:
        every = with_delegates(agent.tools, agent)
        double.tools = ToolRegistry(_answered(tool, answers, path) for tool in every)
        double.subagents = ()
        return double
    double.tools = ToolRegistry(_answered(tool, answers, path) for tool in agent.tools)
    double.subagents = tuple(answered(sub, answers, (*path, sub.name)) for sub in agent.subagents)
    return double


class _AnsweredToolset:
    """A toolset that is opened for what it offers; `answers` answers for its tools."""

    def __init__(self, toolset: Toolset, answers: Answers, path: Path) -> None:
        self._toolset = toolset
        self._answers = answers
        self._path = path

    async def open(self) -> OpenToolset:
        opened = await self._toolset.open()
        return _AnsweredTools(opened, [_answered(tool, self._answers, self._path) for tool in opened.tools])


@dataclass(frozen=True)
class _AnsweredTools:
    opened: OpenToolset
    tools: Sequence[Tool]

    async def close(self) -> None:
        await self.opened.close()


def _answered(tool: Tool, answers: Answers, path: Path) -> Tool:
    async def answer(**kwargs: Any) -> Any:
        return answers.answer(path, tool, to_json_value(kwargs))

    return replace(tool, function=answer, is_async=True, context_parameter=None, timeout=None, delegate=None)


def _exact(answers: Iterable[ToolAnswer], path: Path, tool: Tool, args: JsonObject) -> ToolAnswer | None:
    """The first answer to that very call. What was recorded before a parameter got a default counts too."""
    wanted = canonical(args)
    for each in answers:
        if (each.path, each.tool) != (path, tool.name):
            continue
        if canonical(each.args) == wanted or _as_called_now(tool, each.args) == wanted:
            return each
    return None


def _as_called_now(tool: Tool, args: JsonObject) -> str | None:
    try:
        return canonical(to_json_value(tool.bind(args)))
    except InvalidArgumentsError:
        return None


def _difference(now: JsonObject, recorded: JsonObject) -> str:
    from ..render.fields import MISSING, changes

    change = next(changes(recorded, now))
    old, new = (shown(side) if side is not MISSING else "missing" for side in (change.old, change.new))
    return f"{change.path} is {new}, recorded was {old}"
