"""The journal: one JSON object a line, each with a checksum; the session is the fold of its lines.

    {"version":1,"sessionId":"trip","agent":"concierge","createdAt":"...","crc":"1f2e3d4c"}
    {"seq":1,"at":"...","fence":1,"kind":"input","status":"in-progress","step":0,"add":[...],"crc":"..."}
    {"seq":2,...}

Lines are only appended. A line counts when its checksum holds; a bad end without a valid line behind it was
never reported as saved and is dropped (R5.5).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import StorageError
from ..execution.codec import record_from_json, record_to_json
from ..execution.messages import JsonObject
from ..execution.state import Record, State, apply
from .trail import Trail, save_of

VERSION = 1

_CRC_KEY = b',"crc":"'
_CRC_LENGTH = len(_CRC_KEY) + 8 + len(b'"}')
_RECORD_START = b'{"seq":'
_GLUED_TRIES = 16
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True)
class Header:
    """The first line: what the file is."""

    session_id: str
    agent: str
    created_at: str
    parent: JsonObject | None = None

    def line(self) -> bytes:
        data: JsonObject = {
            "version": VERSION, "sessionId": self.session_id, "agent": self.agent,
            "createdAt": self.created_at,
        }  # fmt: skip
        if self.parent is not None:
            data["parent"] = self.parent
        return seal(data)


@dataclass
class Journal:
    """What a journal says.

    Attributes:
        header: None if the file holds nothing valid: there is no session.
        trail: the kept saves with their states.
        end: where the valid part ends, in bytes; what follows is torn.
        whole: whether the valid part ends with a line break.
        upgrade: records of an older layout that the journal has to begin with.
    """

    header: Header | None
    state: State
    trail: Trail
    end: int
    whole: bool = True
    upgrade: tuple[Record, ...] = ()


def seal(data: JsonObject) -> bytes:
    """One line: the object as JSON, its checksum as the last key, a line break."""
    try:
        body = _encode(data).encode()
    except UnicodeEncodeError:
        body = _encode_ascii(data).encode()
    return b'%s,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body))


def record_line(record: Record) -> bytes:
    return seal(record_to_json(record))


def is_sealed(line: bytes | memoryview) -> bool:
    """Whether a line, its break aside, has a checksum that holds."""
    if len(line) <= _CRC_LENGTH or bytes(line[-2:]) != b'"}':
        return False
    tail = bytes(line[-_CRC_LENGTH:])
    if not tail.startswith(_CRC_KEY):
        return False
    crc = zlib.crc32(b"}", zlib.crc32(line[:-_CRC_LENGTH]))
    return tail[len(_CRC_KEY) : -2] == b"%08x" % crc


def read_journal(path: Path, data: bytes, session_id: str, limit: int) -> Journal:
    """Fold a journal's bytes.

    Args:
        path: for error messages.
        session_id: the id the file must be about.
        limit: how many saves are kept.

    Raises:
        StorageError: it was written by a newer version, is damaged, or is about another session.
    """
    first, start = _line(data, 0)
    _check_version(path, first)
    header = parse_header(first)
    if header is None:
        if _valid_follows(data, 0):
            raise _damaged(path, session_id, 0, State(session_id))
        return Journal(None, State(session_id), Trail(limit), 0)
    if header.session_id != session_id:
        raise StorageError(
            f"{path} claims to be session {header.session_id!r}, not {session_id!r}",
            code="LOUSHO_SESSION_FILE_CORRUPT",
            hint="rename it back, or restore it from a copy",
        )
    return _fold(path, data, start, header, limit)


def _fold(path: Path, data: bytes, position: int, header: Header, limit: int) -> Journal:
    parent = header.parent
    trail = Trail(limit, int(parent["seq"]) + 1 if parent else 1)
    state = State(header.session_id, agent=header.agent, parent=parent)
    while position < len(data):
        line, following = _line(data, position)
        record = parse_record(line)
        if record is None or record.seq != state.seq + 1:
            if record is not None or _valid_follows(data, position):
                raise _damaged(path, header.session_id, position, state)
            break
        state = apply(state, record)
        trail.add(save_of(record, state, following), state)
        position = following
    if parent is not None and state.seq < trail.first:
        # Cut before its own first save was on disk: there is no fork.
        return Journal(None, State(header.session_id), Trail(limit), 0)
    return Journal(header, state, trail, position, data[position - 1 : position] == b"\n")


def parse_header(line: bytes) -> Header | None:
    """The header that a line is, or None."""
    if not is_sealed(line):
        return None
    try:
        data = json.loads(line)
        if data["version"] != VERSION or isinstance(data["version"], bool):
            return None
        parent = data.get("parent")
        if parent is not None:
            parent = {**parent, "seq": int(parent["seq"]), "sessionId": str(parent["sessionId"])}
        return Header(
            str(data["sessionId"]), str(data.get("agent", "")), str(data.get("createdAt", "")), parent
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def parse_record(line: bytes) -> Record | None:
    """The record that a line is, or None."""
    if not is_sealed(line):
        return None
    try:
        return record_from_json(json.loads(line))
    except (ValueError, RecursionError):
        return None


def _line(data: bytes, position: int) -> tuple[bytes, int]:
    """The line at `position` without its break, and where the next one begins."""
    end = data.find(b"\n", position)
    if end < 0:
        return data[position:], len(data)
    return data[position:end], end + 1


def _check_version(path: Path, line: bytes) -> None:
    """Refuse newer data before anything else is judged."""
    try:
        version = json.loads(line)["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        raise StorageError(
            f"{path} has version {version}, and this lousho reads up to version {VERSION}",
            code="LOUSHO_CHECKPOINT_VERSION",
            hint="use a newer lousho; the file was not changed",
        )


def _valid_follows(data: bytes, position: int) -> bool:
    """Whether a valid record stands anywhere behind the start of the bad line at `position`."""
    while position < len(data):
        line, following = _line(data, position)
        if _holds_record(line):
            return True
        position = following
    return False


def _holds_record(line: bytes) -> bool:
    """Whether a line is a record, or is garbage that a whole record was appended to."""
    end = len(line)
    for _ in range(_GLUED_TRIES):
        start = line.rfind(_RECORD_START, 0, end)
        if start < 0:
            return False
        if is_sealed(line[start:]):
            return True
        end = start
    # Too many places to look at one by one. What ends like a record is taken for one: better damage that is
    # reported than a save that is lost.
    return line[-_CRC_LENGTH:].startswith(_CRC_KEY)


def _damaged(path: Path, session_id: str, position: int, state: State) -> StorageError:
    readable = f"saves up to {state.seq} (step {state.step})" if state.seq else "no saves"
    return StorageError(
        f"the journal of session {session_id!r} is damaged at byte {position}: {path}; "
        f"{readable} before that are readable, and valid saves follow",
        code="LOUSHO_SESSION_FILE_CORRUPT",
        hint="restore the file from a copy; it was not changed",
    )


ReadTail = Callable[[int, int], bytes]


def last_record(read: ReadTail, size: int) -> Record | None:
    """The last valid record of a journal, reading only its end.

    Args:
        read: `(offset, length) -> bytes`.
        size: the file's size in bytes.
    """
    window = 16 * 1024
    while True:
        start = max(0, size - window)
        lines = read(start, size - start).split(b"\n")
        candidates = lines if start == 0 else lines[1:]
        for line in reversed(candidates):
            record = parse_record(line) if line.startswith(_RECORD_START) else None
            if record is not None:
                return record
        if start == 0:
            return None
        window *= 8


def json_bytes(data: Any) -> bytes:
    """A small file's JSON, readable by people too."""
    return (json.dumps(data, ensure_ascii=True, indent=1, allow_nan=False) + "\n").encode()
