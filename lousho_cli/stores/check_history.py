"""A history file as a check sees it: readable or not, whose, and how far it goes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import StorageError
from ..execution.unset import UNSET
from .files import path_exists, read_file
from .history_file import VERSION
from .salvage import Known
from .trail import Trail

Condition = Literal["missing", "whole", "damaged", "newer", "older-layout"]


@dataclass(frozen=True)
class HistoryContent:
    """What a history file says.

    Attributes:
        condition: `older-layout` is the TypeScript SDK's; what is not `whole` says nothing below.
        session_id: whose it claims to be.
        limit: how many saves it was to keep.
        entries: its saves, oldest first.
        parent: the save its session was forked from, or None.
    """

    condition: Condition
    session_id: str | None = None
    limit: int = 0
    entries: tuple[Mapping[str, Any], ...] = ()
    parent: Mapping[str, Any] | None = None

    @property
    def newest(self) -> int:
        """The newest save it lists; 0 if none."""
        return int(self.entries[-1]["seq"]) if self.entries else 0

    def known_of(self, session_id: str | None) -> Known:
        """What it says for sure of a session."""
        if self.condition != "whole" or self.session_id != session_id:
            return Known()
        return Known(self.newest, None if self.parent is None else dict(self.parent))


def read_history_content(path: Path) -> HistoryContent:
    """What a history file says; never raises: one that cannot be read is `damaged`."""
    try:
        data = read_file(path)
    except StorageError:
        return HistoryContent("damaged")
    if data is None:
        return HistoryContent("damaged" if path_exists(path) else "missing")
    try:
        content = json.loads(data)
        if isinstance(content, list):
            return HistoryContent("older-layout")
        version = content["version"]
        if isinstance(version, int) and version > VERSION:
            return HistoryContent("newer")
        entries = tuple(content["entries"])
        for entry in entries:
            int(entry["seq"]), int(entry["step"]), str(entry["status"]), str(entry["savedAt"])
        parent = content.get("parent")
        if parent is not None:
            parent = {**parent, "seq": int(parent["seq"]), "sessionId": str(parent["sessionId"])}
        return HistoryContent("whole", str(content["sessionId"]), int(content["limit"]), entries, parent)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return HistoryContent("damaged")


def contradicts(history: HistoryContent, trail: Trail) -> int | None:
    """The first save of which a history file says something else than the journal; None if there is none."""
    listed = {entry["seq"]: entry for entry in history.entries}
    for save in trail.saves():
        entry = listed.get(save.seq)
        known = (save.step, save.status, save.at, save.messages)
        if entry is not None and known != tuple(
            entry.get(key, UNSET) for key in ("step", "status", "savedAt", "messages")
        ):
            return save.seq
    return None
