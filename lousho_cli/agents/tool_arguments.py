"""From the model's arguments to keyword arguments of the function, or to a text that says what is wrong.

Arguments are read as pydantic reads JSON by default: "4" is a valid int, "2024-01-31" a valid date. One thing
is stricter: true and false are never numbers, so `true` for an int is refused instead of becoming 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from ..execution.tools import InvalidArgumentsError
from ..execution.values import message_of, to_json_text

Path = tuple[str | int, ...]

_MAX_PROBLEMS = 10
_MAX_SHOWN = 60
_EXPECTED = "Input should be "
_OBJECT_ERRORS = {"dataclass_type", "dict_type", "mapping_type", "model_attributes_type", "model_type"}
_FLAT = frozenset({str, int, float, type(None)})
_PREFIXES = ("Value error, ", "Assertion failed, ")


@dataclass(frozen=True, slots=True)
class Binder:
    """Validates the arguments of one tool.

    Attributes:
        tool: the tool's name, for errors.
        model: from `model_arguments`.
        schema: its JSON schema.
        names: the parameters, in the order of the model's fields.
        context: the parameter the model may not fill in, or None.
    """

    tool: str
    model: type[BaseModel]
    schema: Mapping[str, Any]
    names: tuple[str, ...]
    context: str | None = None

    def __call__(self, arguments: object) -> dict[str, Any]:
        """Keyword arguments for the function, defaults filled in, nested models built.

        Raises:
            InvalidArgumentsError: they do not fit: names each bad one, what was expected and what came.
        """
        if not isinstance(arguments, Mapping):
            raise InvalidArgumentsError(
                f"the arguments of {self.tool} must be a JSON object, got {_shown(arguments)}"
            )
        given = dict(arguments)
        try:
            problems = self._problems_of_booleans(given)
            values = self.model.model_validate(given)
        except ValidationError as error:
            problems |= self._problems_of(error, given)
        except Exception as error:
            raise InvalidArgumentsError(
                f"the arguments of {self.tool} cannot be checked: {message_of(error)}"
            ) from error
        if self.context is not None and self.context in given:
            problems[(self.context,)] = self._unknown(self.context)
        if problems:
            raise InvalidArgumentsError(
                f"invalid arguments for {self.tool}: {_joined(list(problems.values()))}"
            )
        fields = vars(values)
        bound = {name: fields[f"p{index}"] for index, name in enumerate(self.names)}
        return bound | (values.__pydantic_extra__ or {})

    def _problems_of_booleans(self, given: dict[str, Any]) -> dict[Path, str]:
        if _FLAT.issuperset(map(type, given.values())):
            return {}
        found = _booleans_as_numbers(given, self.schema, self.schema.get("$defs", {}), ())
        return {path: f"{_shown_path(path)}: expected a number, got {_shown(value)}" for path, value in found}

    def _problems_of(self, error: ValidationError, given: dict[str, Any]) -> dict[Path, str]:
        """One text for each place. The branches of a union all complain about the same one."""
        expected: dict[Path, list[str]] = {}
        texts: dict[Path, str] = {}
        for detail in error.errors(include_url=False, include_context=False):
            kind, message = detail["type"], detail["msg"]
            path = _path_in(given, detail["loc"], missing=kind == "missing")
            if kind == "missing":
                texts[path] = f"{_shown_path(path)}: required, but missing"
            elif kind == "extra_forbidden":
                texts[path] = (
                    self._unknown(str(path[0])) if len(path) == 1 else f"{_shown_path(path)}: unknown"
                )
            else:
                choices = expected.setdefault(path, [])
                text = "expected an object" if kind in _OBJECT_ERRORS else _expectation(message)
                if text not in choices:
                    choices.append(text)
                texts[path] = f"{_shown_path(path)}: {' or '.join(choices)}, got {_shown(detail['input'])}"
        return texts

    def _unknown(self, name: str) -> str:
        close = get_close_matches(name, self.names, n=1)
        if close:
            return f"unknown argument {_shown(name)}, did you mean {_shown(close[0])}?"
        return f"unknown argument {_shown(name)} (known: {', '.join(self.names) or 'none'})"


def _expectation(message: str) -> str:
    if message.startswith(_EXPECTED):
        return f"expected {message.removeprefix(_EXPECTED).partition(', got ')[0]}"
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    return message


def _path_in(given: Any, location: tuple[str | int, ...], *, missing: bool) -> Path:
    """`location` without the names of union branches and validators that pydantic puts in between."""
    path: list[str | int] = []
    value = given
    for position, step in enumerate(location):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            if not (missing and position == len(location) - 1):
                continue
        path.append(step)
    return tuple(path)


def _shown_path(path: Path) -> str:
    shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return shown.removeprefix(".") or "arguments"


def _shown(value: object) -> str:
    text = to_json_text(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _joined(problems: list[str]) -> str:
    more = len(problems) - _MAX_PROBLEMS
    return "; ".join(problems[:_MAX_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def _booleans_as_numbers(
    value: Any, schema: Any, definitions: Mapping[str, Any], path: Path
) -> Iterator[tuple[Path, bool]]:
    """Where `value` has true or false and `schema` wants a number."""
    branches = list(_branches(schema, definitions))
    if isinstance(value, bool):
        kinds = {branch.get("type") for branch in branches}
        if kinds & {"integer", "number"} and not kinds & {"boolean", None}:
            yield path, value
    elif isinstance(value, dict | list):
        found = []
        kind = "object" if isinstance(value, dict) else "array"
        for branch in branches:
            if "type" not in branch:
                return
            if branch["type"] != kind or (len(branches) > 1 and _lacks_required(value, branch)):
                continue
            found = [
                problem
                for step, item, inner in _items(value, branch)
                for problem in _booleans_as_numbers(item, inner, definitions, (*path, step))
            ]
            if not found:
                return
        yield from found


def _branches(schema: Any, definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schemas of which one must hold, references resolved."""
    if not isinstance(schema, Mapping):
        yield {}
        return
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    choices = schema.get("anyOf") or schema.get("oneOf")
    if not choices:
        yield schema
    for choice in choices or ():
        yield from _branches(choice, definitions)


def _lacks_required(value: Any, schema: Mapping[str, Any]) -> bool:
    return any(name not in value for name in schema.get("required", ()))


def _items(value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[str | int, Any, Any]]:
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name, item in value.items():
            yield name, item, properties.get(name, schema.get("additionalProperties"))
    else:
        first = schema.get("prefixItems", [])
        for index, item in enumerate(value):
            yield index, item, first[index] if index < len(first) else schema.get("items")
