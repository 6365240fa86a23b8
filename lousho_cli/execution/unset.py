"""The mark of an argument that was not given, where None is a value."""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal


class Unset(Enum):
    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> Literal[False]:
        return False


UNSET: Final = Unset.UNSET
