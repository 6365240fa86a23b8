"""The pydantic model of a tool's arguments, and its JSON schema as the model provider gets it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from ..execution.values import to_json_text
from .tool_signature import NO_DEFAULT, Parameter, Signature, unusable

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9.\-_]")


def model_arguments(
    signature: Signature, label: str, descriptions: Mapping[str, str]
) -> tuple[type[BaseModel], dict[str, Any]]:
    """A model of the arguments, and its JSON schema: the same on every build, without made-up titles.

    The model has one field for each parameter, in order: `p0`, `p1`, ..., with the parameter's name as alias,
    because a parameter may be called `copy` or `_x` and a field may not.

    Args:
        label: what errors call the tool.
        descriptions: of parameters, used where an annotation has none of its own.

    Raises:
        ConfigurationError: pydantic or JSON schema has no form for an annotation.
    """
    try:
        model, schema = _build(signature.parameters, signature.others)
    except Exception as error:
        suspect = _suspect(signature)
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise unusable(suspect.name, suspect.annotation, label, reason) from error
    for name, property_schema in schema["properties"].items():
        if name in descriptions:
            property_schema.setdefault("description", descriptions[name])
    return model, schema


def _suspect(signature: Signature) -> Parameter:
    """The parameter because of which the whole cannot be built."""
    for parameter in signature.parameters:
        try:
            _build((parameter,), None)
        except Exception:
            return parameter
    return signature.others or signature.parameters[-1]


def _build(
    parameters: tuple[Parameter, ...], others: Parameter | None
) -> tuple[type[BaseModel], dict[str, Any]]:
    fields: dict[str, Any] = {f"p{index}": _field(parameter) for index, parameter in enumerate(parameters)}
    namespace: dict[str, Any] = {"__module__": __name__, "model_config": ConfigDict(extra="forbid")}
    if others is not None:
        namespace["model_config"] = ConfigDict(extra="allow")
        namespace["__annotations__"] = {
            "__pydantic_extra__": dict.__class_getitem__((str, others.annotation))
        }
    base: type[BaseModel] = type("Arguments", (BaseModel,), namespace)
    model: type[BaseModel] = create_model("Arguments", __base__=base, **fields)
    return model, _untitled(model.model_json_schema(schema_generator=_ToolJsonSchema))


def _field(parameter: Parameter) -> Any:
    alias = Field(alias=parameter.name, validation_alias=parameter.name)
    if isinstance(parameter.default, FieldInfo):
        return Annotated[parameter.annotation, parameter.default, alias]
    annotation: Any = Annotated[parameter.annotation, alias]
    return annotation if parameter.default is NO_DEFAULT else (annotation, parameter.default)


class _ToolJsonSchema(GenerateJsonSchema):
    """No titles for fields; defaults in a stable order, and left out if they have no JSON form."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        encoded = super().encode_default(dft)
        return sorted(encoded, key=to_json_text) if isinstance(dft, set | frozenset) else encoded


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema` without the titles that repeat the names of classes."""
    schema.pop("title", None)
    for name, definition in schema.get("$defs", {}).items():
        if _NOT_IN_NAMES.sub("_", definition.get("title", "")) in name:
            definition.pop("title", None)
    return schema
