"""Whether a store gave back what it was given, and if not, what it changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..execution.checkpoint import ENGINE_KEY
from ..execution.messages import JsonObject
from ..execution.record import Record
from ..execution.records import Checkpoint

_NUMBERED_BY_STORES = ("seq", "savedAt", "fence")
_SHOWN, _LISTED = 120, 10


def json_of(record: Record) -> JsonObject:
    """The documented JSON of a record."""
    return record.model_dump(mode="json", by_alias=True, exclude_none=True)


def content_of(checkpoint: Checkpoint | Mapping[str, Any]) -> JsonObject:
    """What a store has to keep of a checkpoint: all of it, but for the number and the time of the save."""
    data = json_of(Checkpoint.of(checkpoint))
    engine = data.get(ENGINE_KEY)
    if isinstance(engine, dict):
        data[ENGINE_KEY] = {key: value for key, value in engine.items() if key not in _NUMBERED_BY_STORES}
    return data


def check_same(found: Checkpoint | Mapping[str, Any] | None, saved: Checkpoint) -> None:
    """Fail unless a store gave back the checkpoint that was saved; says what is lost or changed."""
    __tracebackhide__ = True
    assert found is not None, "the checkpoint that was saved is not there"
    check_equal(content_of(found), content_of(saved))


def check_equal(found: Any, given: Any) -> None:
    """Fail unless two JSON values are the same, types included; says where they differ.

    A comparison of long texts by pytest itself may take minutes.
    """
    __tracebackhide__ = True
    places = list(differences(given, found))
    more = f"\n... and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    if places:
        raise AssertionError("the store changed what it was given:\n" + "\n".join(places[:_LISTED]) + more)


def differences(given: Any, found: Any, place: str = "") -> Iterator[str]:
    """Where two JSON values differ, a line each."""
    if isinstance(given, dict) and isinstance(found, dict):
        for key in {**given, **found}:
            inner = f"{place}.{key}" if place else str(key)
            if key not in found:
                yield f"{inner} is lost; given was {_shown(given[key])}"
            elif key not in given:
                yield f"{inner} was not given, and is {_shown(found[key])}"
            else:
                yield from differences(given[key], found[key], inner)
    elif isinstance(given, list) and isinstance(found, list):
        if len(given) != len(found):
            yield f"{place} has {len(found)} items; given were {len(given)}"
        for index, (one, other) in enumerate(zip(given, found, strict=False)):
            yield from differences(one, other, f"{place}[{index}]")
    elif type(given) is not type(found) or given != found:
        yield f"{place} is {_shown(found)}; given was {_shown(given)}"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
