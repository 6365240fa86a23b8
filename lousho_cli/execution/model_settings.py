"""Model settings as callers and files give them, and as a checkpoint keeps them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, get_args

from pydantic.alias_generators import to_camel

from ..errors import ConfigurationError
from .messages import JsonObject
from .protocols import ModelSettings, Thinking
from .values import to_json_value

_EFFORTS = get_args(get_args(Thinking)[1])


def settings_of(given: ModelSettings | Mapping[str, Any] | None) -> ModelSettings:
    """The settings that a caller gave, checked. Keys may be camelCase too, as a checkpoint has them.

    Raises:
        ConfigurationError: a key is unknown or a value impossible.
    """
    if given is None:
        return ModelSettings()
    values = _set_values(given) if isinstance(given, ModelSettings) else _known(given)
    for name, value in values.items():
        allows, expected = _CHECKS[name]
        if not allows(value):
            raise ConfigurationError(f"model_settings: {name} is {value!r}", hint=f"{name} takes {expected}")
    if "stop" in values:
        stop = values["stop"]
        values["stop"] = (stop,) if isinstance(stop, str) else tuple(stop)
    if "extra_body" in values:
        values["extra_body"] = to_json_value(dict(values["extra_body"]))
    return ModelSettings(**values)


def with_settings(base: ModelSettings, over: ModelSettings) -> ModelSettings:
    """`base` with what `over` sets."""
    return replace(base, **_set_values(over))


def settings_to_json(settings: ModelSettings) -> JsonObject:
    """What is set, as JSON."""
    return {
        to_camel(name): list(value) if isinstance(value, tuple) else value
        for name, value in _set_values(settings).items()
    }


def _set_values(settings: ModelSettings) -> dict[str, Any]:
    return {
        field.name: value
        for field in fields(settings)
        if (value := getattr(settings, field.name)) not in (None, (), {})
    }


def _known(given: Mapping[str, Any]) -> dict[str, Any]:
    known = [field.name for field in fields(ModelSettings)]
    names = {**{to_camel(name): name for name in known}, **{name: name for name in known}}
    unknown = sorted(str(key) for key in given if key not in names)
    if unknown:
        raise ConfigurationError(
            f"model_settings: unknown key {unknown[0]!r}",
            hint=f"known keys: {', '.join(known)}",
        )
    return {names[key]: value for key, value in given.items() if value is not None}


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_texts(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    )


_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (lambda value: _is_number(value) and value >= 0, "a number, 0 or more"),
    "max_tokens": (lambda value: _is_whole(value) and value >= 1, "a whole number, 1 or more"),
    "thinking": (
        lambda value: isinstance(value, bool) or value in _EFFORTS,
        f"true, false, or one of {', '.join(_EFFORTS)}",
    ),
    "tool_choice": (
        lambda value: isinstance(value, str) and bool(value),
        "auto, required, none, or the name of a tool",
    ),
    "parallel_tool_calls": (lambda value: isinstance(value, bool), "true or false"),
    "stop": (_is_texts, "a list of texts"),
    "seed": (_is_whole, "a whole number"),
    "timeout": (lambda value: _is_number(value) and value > 0, "seconds above 0"),
    "extra_body": (lambda value: isinstance(value, Mapping), "a table of fields"),
}
