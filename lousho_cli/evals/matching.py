"""Partial deep match of JSON values: what is expected is held by what is seen, which may hold more. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..execution.steps import StepCall
from ..render.fields import MISSING, Change, canonical


def holds(seen: Any, expected: Any) -> bool:
    """Whether `seen` holds what is `expected`."""
    return next(lacking(seen, expected), None) is None


def lacking(seen: Any, expected: Any, path: str = "") -> Iterator[Change]:
    """The fields in which `seen` does not hold what is expected: path, expected, seen.

    Objects may have further keys; lists have the same length; 1 and 1.0 are the same, 1 and true are not.
    """
    if isinstance(expected, dict) and isinstance(seen, dict):
        for key, value in expected.items():
            inner = f"{path}.{key}" if path else str(key)
            if key in seen:
                yield from lacking(seen[key], value, inner)
            else:
                yield Change(inner, value, MISSING)
    elif isinstance(expected, list) and isinstance(seen, list) and len(expected) == len(seen):
        for index, (value, each) in enumerate(zip(expected, seen, strict=True)):
            yield from lacking(each, value, f"{path}[{index}]")
    elif not _same(seen, expected):
        yield Change(path, expected, seen)


def closest(calls: Sequence[StepCall], tool: str, args: Any) -> StepCall | None:
    """The call of that tool whose arguments lack least of `args`, the first of equals; None without one."""
    same_tool = [call for call in calls if call.name == tool]
    return min(same_tool, key=lambda call: sum(1 for _ in lacking(call.args, args)), default=None)


def _same(seen: Any, expected: Any) -> bool:
    if _is_number(seen) and _is_number(expected):
        return bool(seen == expected)
    return canonical(seen) == canonical(expected)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
