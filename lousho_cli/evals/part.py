"""The base of the tables of an eval file, and the kinds of values they hold."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError


def listed(value: object) -> object:
    """One text where a list of texts may stand."""
    return [value] if isinstance(value, str) else value


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("it takes a number")
    return value


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(listed)]
Count = Annotated[int, BeforeValidator(_number), Field(ge=0)]
Amount = Annotated[float, BeforeValidator(_number), Field(ge=0, allow_inf_nan=False)]


class Part(BaseModel):
    """Base of the tables of an eval file. An unknown key is an error that names the likely one."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)
    read_before: ClassVar[tuple[str, ...]] = ()
    """Keys that the reader of the file has dealt with, for the hint."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            for key in values:
                if key not in cls.model_fields:
                    raise _unknown_key(str(key), [*cls.model_fields, *cls.read_before])
        return values


def _unknown_key(key: str, known: list[str]) -> PydanticCustomError:
    close = get_close_matches(key, known, n=1)
    hint = f"known keys: {', '.join(known)}"
    if close:
        hint = f"did you mean {close[0]!r}? {hint}"
    return PydanticCustomError("unknown_key", "unknown key {key}", {"key": key, "hint": hint})
