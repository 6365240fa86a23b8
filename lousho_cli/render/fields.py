"""Where two JSON values differ, field by field. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

from .align import common_subsequence

_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*")
_DEEPEST = 50


class Missing(Enum):
    """A field that one side does not have."""

    MISSING = "(none)"


MISSING: Final = Missing.MISSING


class Change(NamedTuple):
    """A field that differs: its path (`party.size`, `tables[2]`, empty for the whole value), old and new."""

    path: str
    old: Any
    new: Any


def canonical(value: Any) -> str:
    """JSON text that is equal for equal values: neither key order nor spacing counts."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def changes(old: Any, new: Any) -> Iterator[Change]:
    """The smallest fields that differ. Lists of unlike length are aligned first.

    Two texts that both hold a JSON object or array are compared by what they hold. Fields nested more than
    50 levels deep are reported as one.
    """
    inner_old, inner_new = _held(old), _held(new)
    if inner_old is None or inner_new is None:
        inner_old, inner_new = old, new
    found = list(_changes(inner_old, inner_new, "", 0))
    return iter(found or ([] if canonical(old) == canonical(new) else [Change("", old, new)]))


def _held(text: Any) -> Any:
    """The object or array in a text, None if there is none."""
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _changes(old: Any, new: Any, path: str, depth: int) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict) and depth < _DEEPEST:
        for key in dict.fromkeys([*old, *new]):
            inner = _joined(path, str(key))
            yield from _pair(old.get(key, MISSING), new.get(key, MISSING), inner, depth)
    elif isinstance(old, list) and isinstance(new, list) and depth < _DEEPEST:
        yield from _in_lists(old, new, path, depth)
    elif canonical(old) != canonical(new):
        yield Change(path, old, new)


def _pair(old: Any, new: Any, path: str, depth: int) -> Iterator[Change]:
    if old is MISSING or new is MISSING:
        yield Change(path, old, new)
    else:
        yield from _changes(old, new, path, depth + 1)


def _in_lists(old: list[Any], new: list[Any], path: str, depth: int) -> Iterator[Change]:
    if len(old) == len(new):
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from _pair(a, b, f"{path}[{index}]", depth)
        return
    kept = common_subsequence([canonical(x) for x in old], [canonical(x) for x in new])
    kept_old, kept_new = {i for i, _ in kept}, {j for _, j in kept}
    for index, value in enumerate(old):
        if index not in kept_old:
            yield Change(f"{path}[{index}]", value, MISSING)
    for index, value in enumerate(new):
        if index not in kept_new:
            yield Change(f"{path}[{index}]", MISSING, value)


def _joined(path: str, key: str) -> str:
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key
