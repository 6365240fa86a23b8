"""Why a cassette has no answer: the first difference to the recorded request that comes closest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..execution.messages import JsonObject
from .canonical_json import canonical_json
from .cassette import RecordedCall
from .cassette_request import CanonicalRequest

_NOTHING = object()
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two requests part.

    Attributes:
        path: the place in the request: `messages[3].content.status`.
        recorded: what the recorded request has there, as JSON text, cut to be read; `nothing` if it ends.
        asked: what the request asked has there.
    """

    path: str
    recorded: str
    asked: str


def closest(calls: Sequence[RecordedCall], asked: CanonicalRequest) -> int:
    """The index of the call whose request shares the most with `asked`: messages, then terms, then length."""
    shared: dict[int, tuple[int, int]] = {}
    messages = asked.all_messages()
    best, best_rank = 0, (-1, False, 0)
    for index, call in enumerate(calls):
        same, length = _shared(call.request, messages, shared)
        rank = (same, call.request.same_terms(asked), -abs(length - len(messages)))
        if rank > best_rank:
            best, best_rank = index, rank
    return best


def _shared(
    request: CanonicalRequest, messages: list[JsonObject], known: dict[int, tuple[int, int]]
) -> tuple[int, int]:
    """How many messages a request has in common with these from the start, and how many it has."""
    same, length = known[id(request.base)] if request.base is not None else (0, 0)
    if same == length:
        for mine, theirs in zip(request.messages, messages[length:], strict=False):
            if not _same(mine, theirs):
                break
            same += 1
    known[id(request)] = same, length + len(request.messages)
    return known[id(request)]


def first_difference(recorded: CanonicalRequest, asked: CanonicalRequest) -> Difference | None:
    """Where two requests part first: in the messages, else in the tools, else in the settings."""
    return (
        difference(recorded.all_messages(), asked.all_messages(), "messages")
        or difference(_by_name(recorded.tools), _by_name(asked.tools), "tools")
        or difference(recorded.settings, asked.settings, "settings")
    )


def _by_name(tools: list[JsonObject]) -> JsonObject:
    return {str(tool.get("name")): tool.get("parameters") for tool in tools}


def difference(recorded: Any, asked: Any, path: str) -> Difference | None:
    """Where two JSON values part first; `path` is where they stand."""
    while not _same(recorded, asked):
        if isinstance(recorded, dict) and isinstance(asked, dict):
            keys = [*recorded, *(key for key in asked if key not in recorded)]
            pairs = [(f"{path}.{key}", recorded.get(key, _NOTHING), asked.get(key, _NOTHING)) for key in keys]
        elif isinstance(recorded, list) and isinstance(asked, list):
            pairs = [
                (f"{path}[{n}]", _item(recorded, n), _item(asked, n))
                for n in range(max(len(recorded), len(asked)))
            ]
        else:
            return Difference(path, _text(recorded), _text(asked))
        path, recorded, asked = next(pair for pair in pairs if not _same(pair[1], pair[2]))
    return None


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else _NOTHING


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if a is _NOTHING or b is _NOTHING:
        return False
    return canonical_json(a) == canonical_json(b)


def _text(value: Any) -> str:
    if value is _NOTHING:
        return "nothing"
    text = canonical_json(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
