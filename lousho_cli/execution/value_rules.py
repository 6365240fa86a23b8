"""The rules of `values`, applied without Python's own recursion, so that depth and cycles are harmless."""

from __future__ import annotations

import base64
import json
import math
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, MappingView
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from types import GeneratorType
from typing import Any, TypeAlias
from uuid import UUID

from .value_texts import class_name, clean_text, message_of, text_form

MAX_DEPTH = 256
MAX_DIGITS = 4300
MAX_RANGE = 1_000_000
CYCLE = "<cycle>"
TOO_DEEP = "<too deep>"
UNSET_FIELD = "<unset>"

_SNAPSHOT_TRIES = 20

Steps: TypeAlias = Generator[tuple[object, int], Any, Any]
"""A container being converted: yields (child, levels deeper than itself), is sent the child's JSON value
and returns its own. Keeping these on a list instead of Python's stack is what makes depth harmless."""

ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)


def convert(value: object, max_depth: float) -> Any:
    """The JSON value of `value`, cut where containers lie more than `max_depth` deep."""
    frames: list[tuple[Steps, object, int]] = []
    on_path: set[int] = set()
    depth = 1
    while True:
        result = _open(value)
        if isinstance(result, GeneratorType):
            if id(value) in on_path:
                result = CYCLE
            elif depth > max_depth:
                result = TOO_DEEP
            else:
                frames.append((result, value, depth))
                on_path.add(id(value))
                result = None
        while frames:
            steps, owner, depth = frames[-1]
            try:
                value, levels = steps.send(result)
            except StopIteration as done:
                frames.pop()
                on_path.discard(id(owner))
                result = done.value
            else:
                depth += levels
                break
        else:
            return result


def _open(value: object) -> Any:
    """The JSON value of a scalar, or the Steps of a container. All code of the value's own runs in here."""
    try:
        rule = _EXACT.get(type(value)) or _rule_for(value)
        return rule(value)
    except Exception:
        return text_form(value)


def _rule_for(value: object) -> Callable[[Any], Any]:
    if isinstance(value, type):
        return text_form
    if isinstance(value, Enum):
        return _enum
    if isinstance(value, BaseException):
        return _exception
    if is_dataclass(value):
        return _dataclass
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return _model
    if isinstance(value, tuple) and hasattr(type(value), "_fields"):
        return _named_tuple
    for types, rule in _RULES:
        if isinstance(value, types):
            return rule
    return text_form


def _same(value: bool | None) -> bool | None:
    return value


def _integer(value: int) -> int | str:
    number = int.__int__(value)
    digits = min(MAX_DIGITS, sys.get_int_max_str_digits() or MAX_DIGITS)
    if number.bit_length() > 3 * digits and not -(10**digits) < number < 10**digits:
        return hex(number)
    return number


def _float(value: float) -> float | str:
    number = float.__float__(value)
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _text_of(value: object) -> str:
    return clean_text(str(value))


def _isoformat(value: date | time) -> str:
    return clean_text(value.isoformat())


def _bytes(value: bytes | bytearray | memoryview) -> str | dict[str, str]:
    data = bytes(value)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _enum(member: Enum) -> Any:
    return _open(member.value)


def _exception(exception: BaseException) -> dict[str, str]:
    return {"error": message_of(exception), "type": class_name(exception)}


def _range(numbers: range) -> Any:
    return text_form(numbers) if len(numbers) > MAX_RANGE else _list_steps(list(numbers))


def _list(items: Iterable[object]) -> Steps:
    return _list_steps(_snapshot(items))


def _set(items: Iterable[object]) -> Steps:
    return _set_steps(_snapshot(items))


def _mapping(mapping: Mapping[Any, object]) -> Steps:
    return _mapping_steps([(key, item) for key, item in _snapshot(mapping.items())])


def _dataclass(value: Any) -> Steps:
    return _mapping_steps([(f.name, getattr(value, f.name, UNSET_FIELD)) for f in fields(value)])


def _named_tuple(value: Any) -> Steps:
    return _mapping_steps(list(zip(type(value)._fields, value, strict=True)))


def _model(value: Any) -> Steps:
    try:
        dumped = value.model_dump(mode="python", by_alias=True, warnings=False)
    except Exception:
        return _mapping({**value.__dict__, **(value.__pydantic_extra__ or {})})
    return _mapping(dumped) if isinstance(dumped, Mapping) else _root_steps(dumped)


def _root_steps(root: object) -> Steps:
    return (yield root, 0)


def _list_steps(items: list[object]) -> Steps:
    result = []
    for item in items:
        result.append((yield item, 1))
    return result


def _set_steps(items: list[object]) -> Steps:
    result = yield from _list_steps(items)
    return sorted(result, key=encode)


def _mapping_steps(pairs: list[tuple[object, object]]) -> Steps:
    # Keys are converted as deep as they would lie in "entries": whether that is needed shows only afterwards.
    keys = []
    for key, _ in pairs:
        keys.append((yield key, 3))
    names = [key if isinstance(key, str) else encode(key) for key in keys]
    unique = len(set(names)) == len(names)
    values = []
    for _, value in pairs:
        values.append((yield value, 1 if unique else 3))
    if unique:
        return dict(zip(names, values, strict=True))
    return {"entries": [[key, value] for key, value in zip(keys, values, strict=True)]}


def _snapshot(items: Iterable[Any]) -> list[Any]:
    """A list of `items`, even if another thread changes them meanwhile."""
    for _ in range(_SNAPSHOT_TRIES):
        try:
            return list(items)
        except RuntimeError:
            continue
    return list(items)


_RULES: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (str, clean_text),
    (int, _integer),
    (float, _float),
    ((bytes, bytearray, memoryview), _bytes),
    ((Decimal, UUID, PurePath, complex), _text_of),
    ((date, time), _isoformat),
    (timedelta, timedelta.total_seconds),
    (range, _range),
    ((list, tuple, deque, MappingView), _list),
    ((set, frozenset), _set),
    (Mapping, _mapping),
)
_EXACT: dict[type, Callable[[Any], Any]] = {
    type(None): _same,
    bool: _same,
    str: clean_text,
    int: _integer,
    float: _float,
    list: _list,
    tuple: _list,
    dict: _mapping,
}


def encode(value: Any) -> str:
    """The compact JSON text of what `convert` made."""
    try:
        return ENCODER.encode(value)
    except RecursionError:
        # The caller left too little of Python's stack; a new thread has a stack of its own.
        result: list[str] = []
        thread = threading.Thread(target=lambda: result.append(ENCODER.encode(value)))
        thread.start()
        thread.join()
        return result[0]
