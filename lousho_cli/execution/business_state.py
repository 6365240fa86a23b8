"""The value that the tools of a run share, while it runs."""

from __future__ import annotations

import json
from typing import Any

from .unset import UNSET
from .values import to_json_text


class BusinessState:
    """A run's business state: one for an agent and its sub-agents.

    Args:
        stored: as the checkpoint has it.

    Attributes:
        value: what tools see. They may change it in place, so it is a copy: past saves stay as they are.
    """

    def __init__(self, stored: Any) -> None:
        self._saved = to_json_text(stored)
        self.value = json.loads(self._saved)

    def change(self) -> Any:
        """The value as JSON if it changed since it was last asked for; else UNSET."""
        text = "null" if self.value is None else to_json_text(self.value)
        if text == self._saved:
            return UNSET
        self._saved = text
        return json.loads(text)
