"""The base of the public records: pydantic models with the camelCase keys of the stored files.

`model_dump(mode="json", by_alias=True, exclude_none=True)` of any of them is its documented JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

R = TypeVar("R", bound="Record")


class Record(BaseModel):
    """Base of the public records."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    @classmethod
    def of(cls: type[R], value: R | Mapping[str, Any]) -> R:
        """`value` itself if it is such a record, else one validated from a mapping of the same shape."""
        return value if isinstance(value, cls) else cls.model_validate(value)
