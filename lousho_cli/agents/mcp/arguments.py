"""Checking a call's arguments against the JSON schema that a server gives, before the server sees them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import islice
from typing import Any

from ...execution.tools import InvalidArgumentsError

MAX_PROBLEMS = 5
MAX_CHARS = 400

Bind = Callable[[Mapping[str, Any]], dict[str, Any]]


def parameters_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as it is offered: some providers refuse one without properties, or with a dialect."""
    rest = {key: value for key, value in schema.items() if key != "$schema"}
    return {"type": "object", "properties": {}, **rest}


def binder(schema: Mapping[str, Any]) -> Bind:
    """What checks arguments against `schema`; they are passed on as they are.

    Where the schema itself is no good the server has to judge. Nothing is fetched from the network for it.
    """
    jsonschema: Any = import_module("jsonschema")
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError:
        return dict
    validator = kind(schema, registry=Registry())

    def bind(arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            problems = list(islice(validator.iter_errors(arguments), MAX_PROBLEMS))
        except Unresolvable:
            problems = []
        if problems:
            raise InvalidArgumentsError("; ".join(map(_words, problems)))
        return copy.deepcopy(dict(arguments))

    return bind


def _words(problem: Any) -> str:
    place = problem.json_path.removeprefix("$").removeprefix(".")
    message = str(problem.message)
    # It may repeat the whole value.
    short = message if len(message) <= MAX_CHARS else f"{message[:MAX_CHARS]}..."
    return f"{place}: {short}" if place else short
