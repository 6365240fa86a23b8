"""A final answer that must have a shape: read, checked, and asked for once more if it has not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from ..errors import ConfigurationError
from .messages import JsonObject, MessageData, text_of
from .state import Record, State
from .values import message_of

REPAIR = "repair"
"""The key that marks a user message of the engine's own, which asks for the answer once more."""

_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*)\n\s*```", re.DOTALL)


class OutputError(Exception):
    """A text is not the answer that was asked for; says what is wrong with it."""


class OutputFormat:
    """The shape of a final answer.

    Attributes:
        schema: its JSON schema.
    """

    def __init__(self, schema: JsonObject, check: Callable[[Any], Any]) -> None:
        self.schema = schema
        self._check = check

    @classmethod
    def of(cls, value: Any) -> OutputFormat | None:
        """The shape that `value` asks for: a pydantic model or another type, or a JSON schema as a mapping.

        Raises:
            ConfigurationError: it is neither, or `jsonschema` is not installed.
        """
        if value is None or isinstance(value, cls):
            return value
        return cls._of_schema(value) if isinstance(value, Mapping) else cls._of_type(value)

    @classmethod
    def _of_type(cls, value: Any) -> OutputFormat:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(value)
            schema = adapter.json_schema()
        except PydanticUserError as error:
            raise ConfigurationError(
                f"output: {value!r} is no shape of an answer",
                hint="give a pydantic model or another type, or a JSON schema",
            ) from error
        return cls(schema, adapter.validate_python)

    @classmethod
    def _of_schema(cls, value: Mapping[str, Any]) -> OutputFormat:
        try:
            jsonschema = import_module("jsonschema")
        except ImportError as error:
            raise ConfigurationError(
                "checking an answer against a JSON schema needs the package jsonschema",
                code="LOUSHO_PEER_MISSING",
                hint="pip install 'lousho-cli[schema]'",
            ) from error
        schema = dict(value)
        kind = jsonschema.validators.validator_for(schema)
        try:
            kind.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise ConfigurationError(
                f"output is no JSON schema: {error.json_path}: {error.message}",
                hint='give one like {"type": "object", "properties": {...}}',
            ) from error
        validator = kind(schema)

        def check(answer: Any) -> Any:
            problem = jsonschema.exceptions.best_match(validator.iter_errors(answer))
            if problem is not None:
                raise OutputError(f"{problem.json_path}: {problem.message}")
            return answer

        return cls(schema, check)

    def read(self, text: str) -> Any:
        """The answer that a text is: JSON, which a Markdown code fence may surround.

        Raises:
            OutputError: it is no JSON, or does not have the shape.
        """
        fenced = _FENCE.fullmatch(text.strip())
        try:
            answer = json.loads(fenced[1] if fenced else text)
        except (ValueError, RecursionError) as error:
            raise OutputError(f"it is not JSON: {message_of(error)}") from None
        try:
            return self._check(answer)
        except ValidationError as error:
            places = (
                f"{'.'.join(str(part) for part in each['loc']) or 'the answer'}: {each['msg']}"
                for each in error.errors(include_url=False)
            )
            raise OutputError("; ".join(places)) from None

    def problem_of(self, text: str) -> str | None:
        """What is wrong with a text as the answer; None if it is one."""
        try:
            self.read(text)
        except OutputError as error:
            return str(error)
        return None


def checked_answer(state: State, record: Record, output: OutputFormat, max_steps: int) -> str | None:
    """Look at the save of a final answer before it is made; returns what is wrong with the answer.

    An answer that does not have the shape does not finish the run: the same save asks for it once more. The
    second one, or one in the last step, finishes it as `output-invalid`.

    Args:
        state: the session before that save.
        record: the save, changed in place.
    """
    if record.status != "finished" or record.finish_reason != "stop" or not record.add:
        return None
    answer = cast(JsonObject, record.add[0])
    problem = output.problem_of(text_of(answer["content"]))
    if problem is None:
        return None
    record.finish_reason = "output-invalid"
    if record.step >= max_steps or any(REPAIR in message for message in state.run_messages()):
        answer["finishReason"] = "output-invalid"
        return problem
    record.kind, record.status = "turn", "in-progress"
    record.add = [*record.add, _repair(problem)]
    return problem


def _repair(problem: str) -> MessageData:
    text = (
        f"Your answer does not have the shape that was asked for: {problem}. "
        "Answer once more, with the JSON value alone."
    )
    message: JsonObject = {"role": "user", "content": text, REPAIR: True}
    return cast(MessageData, message)
