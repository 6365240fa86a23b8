"""What a check of the set-up finds; what it finds in stored data is in `stores/findings.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import SDKError
from ..execution.messages import JsonObject

Area = Literal["installation", "terminal", "workspace", "agents", "store"]
Status = Literal["ok", "absent", "notice", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        status: `absent` is something that may be missing, `skipped` what could not be looked at.
        fix: what to do, or an empty text.
        error: what is wrong, where something is.
    """

    area: Area
    name: str
    status: Status
    message: str
    fix: str = ""
    error: SDKError | None = None

    @classmethod
    def failed(cls, area: Area, name: str, error: SDKError) -> Check:
        return cls(area, name, "error", error.message, error.hint, error)

    def to_json(self) -> JsonObject:
        data: JsonObject = {
            "area": self.area, "name": self.name, "status": self.status, "message": self.message,
        }  # fmt: skip
        if self.error is not None:
            data["code"] = self.error.code
        return {**data, "fix": self.fix} if self.fix else data
