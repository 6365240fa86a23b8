"""The pydantic model of a tool's arguments, and its JSON schema as the model provider gets it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from ..execution.values import to_json_text
from .tool_signature import NO_DEFAULT, Parameter, Signature, unusable


def arguments_model(signature: Signature, label: str) -> type[BaseModel]:
    """A model with one field for each parameter, in order: `p0`, `p1`, ..., with the parameter's name as alias.

    Fields are not named like the parameters, because a parameter may be called `copy` or `_x`.

    Raises:
        ConfigurationError: pydantic or JSON schema has no form for an annotation.
    """
    try:
        return _model(signature.parameters, signature.others)
    except Exception as error:
        for parameter in signature.parameters:
            _try(parameter, (parameter,), None, label)
        if signature.others is not None:
            _try(signature.others, (), signature.others, label)
        raise unusable("?", "?", label, _first_line(error)) from error


def arguments_schema(model: type[BaseModel], descriptions: Mapping[str, str]) -> dict[str, Any]:
    """The JSON schema of the arguments: the same on every build, without made-up titles.

    Args:
        descriptions: of parameters, used where an annotation has none of its own.
    """
    schema = model.model_json_schema(schema_generator=_ToolJsonSchema)
    for name, property_schema in schema["properties"].items():
        if name in descriptions:
            property_schema.setdefault("description", descriptions[name])
    return schema


def _try(suspect: Parameter, parameters: tuple[Parameter, ...], others: Parameter | None, label: str) -> None:
    try:
        _model(parameters, others)
    except Exception as error:
        raise unusable(suspect.name, suspect.annotation, label, _first_line(error)) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _model(parameters: tuple[Parameter, ...], others: Parameter | None) -> type[BaseModel]:
    fields: dict[str, Any] = {f"p{index}": _field(parameter) for index, parameter in enumerate(parameters)}
    namespace: dict[str, Any] = {"__module__": __name__, "model_config": ConfigDict(extra="forbid")}
    if others is not None:
        namespace["model_config"] = ConfigDict(extra="allow")
        namespace["__annotations__"] = {"__pydantic_extra__": dict[str, others.annotation]}  # type: ignore[name-defined]
    base = type("Arguments", (BaseModel,), namespace)
    model = create_model("Arguments", __base__=base, **fields)
    arguments_schema(model, {})
    return model


def _field(parameter: Parameter) -> tuple[Any, Any]:
    alias = Field(alias=parameter.name, validation_alias=parameter.name)
    if isinstance(parameter.default, FieldInfo):
        return Annotated[parameter.annotation, parameter.default, alias], ...
    default = ... if parameter.default is NO_DEFAULT else parameter.default
    return Annotated[parameter.annotation, alias], default


class _ToolJsonSchema(GenerateJsonSchema):
    """JSON schema without titles made from names, and with defaults in a stable order or not at all."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        encoded = super().encode_default(dft)
        return sorted(encoded, key=to_json_text) if isinstance(dft, set | frozenset) else encoded

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return _untitled(super().model_schema(schema), schema)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _untitled(super().dataclass_schema(schema), schema)

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return _untitled(super().typed_dict_schema(schema), schema)

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        return _untitled(super().enum_schema(schema), schema)


def _untitled(json_schema: JsonSchemaValue, schema: Mapping[str, Any]) -> JsonSchemaValue:
    if json_schema.get("title") == getattr(schema.get("cls"), "__name__", None):
        json_schema.pop("title", None)
    return json_schema
