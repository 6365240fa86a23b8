"""What differs between two runs: steps aligned, each difference named. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .align import Row, align
from .fields import MISSING, Change, canonical, changes
from .outcome import of_value

Step = Mapping[str, Any]
Tool = Mapping[str, Any]
Kind = Literal["same", "only-a", "only-b", "call", "arguments", "decision", "result", "text", "order"]


@dataclass(frozen=True, slots=True)
class ToolPair:
    """Two calls that belong together, or one that the other side lacks, and where they differ."""

    a: Tool | None
    b: Tool | None
    arguments: list[Change]
    results: list[Change]

    @property
    def name(self) -> str:
        return str((self.a or self.b or {}).get("name", ""))

    @property
    def kind(self) -> Kind:
        if self.a is None or self.b is None:
            return "call"
        if self.arguments:
            return "arguments"
        if not self.results:
            return "same"
        kinds = [of_value(tool.get("result")).kind for tool in (self.a, self.b)]
        return "decision" if kinds[0] != kinds[1] and "rejected" in kinds else "result"


@dataclass(frozen=True, slots=True)
class Difference:
    """Two aligned steps, numbered from 1, or one that the other side lacks.

    `kind` is the first thing that differs: the calls asked for, a call's arguments, a human's decision, a
    result, the text, or only the order of the calls. `tools` are the pairs of calls that differ.
    """

    a: int | None
    b: int | None
    kind: Kind
    tools: list[ToolPair]


def compare(a: Sequence[Step], b: Sequence[Step], diverged_at: int | None) -> list[Difference]:
    """Both runs aligned; up to `diverged_at` (1-based, None: nowhere) they are the same."""
    start = max(len(a), len(b)) if diverged_at is None else diverged_at - 1
    shared = [Row(i, i, True) for i in range(min(start, len(a), len(b)))]
    left, right = a[len(shared) :], b[len(shared) :]
    aligned = align(
        [step_key(step) for step in left],
        [step_key(step) for step in right],
        [_kin(step) for step in left],
        [_kin(step) for step in right],
    )
    offset = len(shared)
    return [_difference(a, b, row) for row in shared] + [
        _difference(a, b, Row(_plus(row.a, offset), _plus(row.b, offset), row.same)) for row in aligned
    ]


def _plus(index: int | None, offset: int) -> int | None:
    return None if index is None else index + offset


def step_key(step: Step) -> str:
    """Equal for steps that said, asked for and got the same, tool-call ids aside."""
    return canonical([step.get("text") or "", [_tool_key(tool) for tool in _tools(step)]])


def _tool_key(tool: Tool) -> str:
    result = [tool["result"]] if "result" in tool else []
    return canonical([tool.get("name"), tool.get("args"), result])


def _tools(step: Step) -> Sequence[Tool]:
    return step.get("tools") or []


def _kin(step: Step) -> tuple[str, ...]:
    return tuple(sorted(str(tool.get("name", "")) for tool in _tools(step)))


def _difference(a: Sequence[Step], b: Sequence[Step], row: Row) -> Difference:
    numbers = _plus(row.a, 1), _plus(row.b, 1)
    if row.same:
        return Difference(*numbers, "same", [])
    if row.a is None or row.b is None:
        return Difference(*numbers, "only-b" if row.a is None else "only-a", [])
    pairs = [pair for pair in _paired(a[row.a], b[row.b]) if pair.kind != "same"]
    found = {pair.kind for pair in pairs}
    if (a[row.a].get("text") or "") != (b[row.b].get("text") or ""):
        found.add("text")
    order: tuple[Kind, ...] = ("call", "arguments", "decision", "result", "text")
    kind: Kind = next((kind for kind in order if kind in found), "order")
    return Difference(*numbers, kind, pairs)


def _paired(a: Step, b: Step) -> list[ToolPair]:
    """The calls of two steps: equal ones first wherever they stand, then by name in order."""
    keys_b = Counter(_tool_key(tool) for tool in _tools(b))
    keys_a = Counter(_tool_key(tool) for tool in _tools(a))
    left = _without(_tools(a), keys_b)
    right = _without(_tools(b), keys_a)
    pairs: list[ToolPair] = []
    for tool in left:
        twin = next((other for other in right if other.get("name") == tool.get("name")), None)
        if twin is not None:
            right = [other for other in right if other is not twin]
        pairs.append(_pair(tool, twin))
    return pairs + [_pair(None, tool) for tool in right]


def _without(tools: Sequence[Tool], found: Counter[str]) -> list[Tool]:
    rest: list[Tool] = []
    for tool in tools:
        key = _tool_key(tool)
        if found[key] > 0:
            found[key] -= 1
        else:
            rest.append(tool)
    return rest


def _pair(a: Tool | None, b: Tool | None) -> ToolPair:
    if a is None or b is None:
        return ToolPair(a, b, [], [])
    return ToolPair(a, b, list(changes(a.get("args"), b.get("args"))), _result_changes(a, b))


def _result_changes(a: Tool, b: Tool) -> list[Change]:
    """Field by field, or as a whole where one call has no result or ended in another way."""
    old, new = a.get("result", MISSING), b.get("result", MISSING)
    if old is MISSING or new is MISSING:
        return [] if old is new else [Change("", old, new)]
    if of_value(old).kind != of_value(new).kind:
        return [Change("", old, new)]
    return list(changes(old, new))
