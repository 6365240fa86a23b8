"""What came of the demo model's tool calls, read from results of any shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..execution.messages import MessageData, text_of

_ANY_RESTAURANT = {"table", "restaurant", "dinner", "lunch", "dining", "tonight", "place", "food"}

_DRY = re.compile(
    r"\b(?:sun|sunny|sunshine|clear|dry|fair|fine|bright|warm|hot|mild|cloudy|clouds?|overcast)\b"
)
_WET = re.compile(
    r"\b(?:rain|shower|drizzl|storm|thunder|lightning|hail|sleet|snow|blizzard|downpour|flood|hurricane|gale|wet\b)"
)
_DENIED = re.compile(r"\b(?:no|not|without) (?:a |an |any |more |chance of )*\w+")

PLACE_KEYS = ("place", "city", "location", "town", "destination")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A tool call with what came of it. `error` is None when the tool ran."""

    tool: str
    args: Mapping[str, Any]
    result: Any
    error: str | None = None
    error_kind: str = ""
    note: str = ""

    @property
    def refused(self) -> bool:
        """Whether the tool ran and says that it did not do what it was asked."""
        result = as_mapping(self.result)
        return any(result.get(key) is False for key in ("booked", "confirmed", "success", "ok"))


def read_outcome(message: MessageData, name: str, args: Mapping[str, Any]) -> Outcome:
    """A tool message as the outcome of a call of `name` with `args`."""
    result = from_json(message["content"])
    failure = as_mapping(result)
    if not message.get("isError") and not ("error" in failure and "kind" in failure):
        return Outcome(name, args, result)
    return Outcome(
        tool=name,
        args=args,
        result=result,
        error=str(failure.get("error") or (result if isinstance(result, str) else "an unknown error")),
        error_kind=str(failure.get("kind", "")),
        note=str(failure.get("note") or ""),
    )


def options_in(result: Any) -> list[str] | None:
    """The restaurants a result lists, or None if it holds no list of a known shape."""
    if isinstance(result, Mapping):
        keys = ("tables", "options", "restaurants", "results")
        result = next((result[key] for key in keys if key in result), None)
    if not isinstance(result, list):
        return None
    names = (
        item if isinstance(item, str) else text_at(as_mapping(item), "restaurant", "name") for item in result
    )
    return [name for name in names if name]


def pick(text: str, options: Iterable[str]) -> str | None:
    """The one of `options` that `text` names: in full, by a word only it has, or by its place in the list."""
    options = list(options)
    plain = text.lower()
    for option in options:
        if option.lower() in plain:
            return option
    words = [set(re.findall(r"\w{4,}", option.lower())) - _ANY_RESTAURANT for option in options]
    said = set(re.findall(r"\w{4,}", plain))
    for i, option in enumerate(options):
        if said & words[i].difference(*words[:i], *words[i + 1 :]):
            return option
    order = re.search(r"\b(first|second|third|fourth|last) (?:one|option|table|restaurant|place)\b", plain)
    if order is None or not options:
        return None
    index = {"first": 0, "second": 1, "third": 2, "fourth": 3}.get(order[1], len(options) - 1)
    return options[index] if index < len(options) else None


def is_dry(result: Any) -> bool:
    """Whether a forecast is one to be outdoors in. One that cannot be read is not."""
    forecast = as_mapping(result)
    said = next(
        (forecast[key] for key in ("forecast", "conditions", "condition", "weather") if key in forecast),
        result,
    )
    text = said.lower() if isinstance(said, str) else json.dumps(said, ensure_ascii=False).lower()
    denied = " ".join(_DENIED.findall(text))
    text = _DENIED.sub(" ", text)
    return not _WET.search(text) and bool(
        _DRY.search(text) or (_WET.search(denied) and not _DRY.search(denied))
    )


def place_of(outcome: Outcome) -> str | None:
    """The town a call was about: as its result says, else as it was asked."""
    return text_at(as_mapping(outcome.result), *PLACE_KEYS) or text_at(outcome.args, *PLACE_KEYS)


def as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def text_at(values: Mapping[str, Any], *keys: str) -> str | None:
    """The first text that is not empty under one of `keys`."""
    return next((values[key] for key in keys if isinstance(values.get(key), str) and values[key]), None)


def from_json(content: Any) -> Any:
    """A stored result, or the arguments of a call, as a value; text that is no JSON stays text."""
    text = text_of(content)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
