"""The history file: the kept saves as a small JSON file that is whole at every instant (R5.1).

It is an index of the journal and is rebuilt from it, so it needs no sync. Saves that follow each other
within a short time share one replacement.
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import StorageError
from ..execution.messages import JsonObject
from .files import make_folder, read_file, real_folder, remove_file, replace_file, storage, sync_folder
from .trail import Save, Trail

SHARED_SECONDS = 0.05
VERSION = 1
_CRC_KEY = b', "crc": "'


class HistoryFile:
    """The history file of a session that is being run.

    Args:
        trail_of: the kept saves as of now.
        is_held: whether the runner still holds the session: it may not overwrite another one's file.
    """

    def __init__(
        self,
        path: Path,
        session_id: str,
        limit: int,
        trail_of: Callable[[], Trail],
        parent: JsonObject | None,
        is_held: Callable[[], bool],
    ) -> None:
        self._path = path
        self._session_id = session_id
        self._limit = limit
        self._trail_of = trail_of
        self._parent = parent
        self._is_held = is_held
        self._encoded: dict[int, str] = {}
        self._behind = False
        self._written = -math.inf

    def changed(self, *, flush: bool) -> float:
        """A save was made: replace the file, or say in how many seconds it is due.

        Args:
            flush: the file has to be up to date when this returns.
        """
        self._behind = True
        due = self._written + SHARED_SECONDS - time.monotonic()
        if flush or due <= 0:
            self.flush()
            return 0.0
        return due

    def remove_leftover(self) -> None:
        """Remove what a deleted session of that name has left, durably, before there is a journal.

        Beside a first save that a crash cuts short it would say that saves were lost.
        """
        if self._is_held() and real_folder(self._path.parent) and remove_file(self._path):
            with storage(self._path.parent, "synced"):
                sync_folder(self._path.parent)

    def flush(self) -> None:
        """Replace the file if it is behind."""
        if not self._behind or not self._is_held():
            return
        make_folder(self._path.parent)
        replace_file(self._path, self._content(), durable=False)
        self._behind = False
        self._written = time.monotonic()

    def _content(self) -> bytes:
        trail = self._trail_of()
        saves = list(trail.saves())
        kept = {}
        for save in saves:
            kept[save.seq] = self._encoded.get(save.seq) or _encode(save)
        self._encoded = kept
        last_step = trail.last_step
        return history_bytes(self._session_id, self._limit, self._parent, last_step, kept.values())


def history_bytes(
    session_id: str, limit: int, parent: JsonObject | None, last_step: int, entries: Iterable[str]
) -> bytes:
    """The file, with a checksum at its end: a power cut may leave old blocks in the midst of it.

    Args:
        last_step: the largest step of any save, kept or not.
    """
    head: JsonObject = {"version": VERSION, "sessionId": session_id, "limit": limit, "lastStep": last_step}
    if parent is not None:
        head["parent"] = parent
    lines = ",\n  ".join(entries)
    body = f"[\n  {lines}\n ]" if lines else "[]"
    text = f'{json.dumps(head)[:-1]}, "entries": {body}'.encode()
    return b'%s%s%08x"}\n' % (text, _CRC_KEY, zlib.crc32(text))


def parse_history(data: bytes) -> JsonObject:
    """The content of a history file.

    Raises:
        ValueError: it is damaged, or of a version without a checksum: the journal knows better.
    """
    text, key, crc = data.rpartition(_CRC_KEY)
    if not key or crc != b'%08x"}\n' % zlib.crc32(text):
        raise ValueError("the checksum does not hold")
    content: JsonObject = json.loads(data)
    return content


def listed_saves(path: Path, session_id: str) -> int:
    """The newest save that a history file lists; 0 if it lists none, is damaged or of another session."""
    try:
        content = parse_history(read_file(path) or b"")
        newest = content["entries"][-1]["seq"]
        is_its = content["sessionId"] == session_id and type(newest) is int
    except (ValueError, KeyError, IndexError, TypeError, RecursionError, StorageError):
        return 0
    return newest if is_its else 0


def _encode(save: Save) -> str:
    return json.dumps(save.to_json())
