"""The lines of a journal: one JSON object each, with a checksum. `journal_fold` makes a session of them.

    {"version":1,"sessionId":"trip","agent":"concierge","createdAt":"...","crc":"1f2e3d4c"}
    {"seq":1,"at":"...","fence":1,"kind":"input","status":"in-progress","step":0,"add":[...],"crc":"..."}
    {"seq":2,...}

Lines are only appended. A line counts when its checksum holds; a bad end without a valid line behind it was
never reported as saved and is dropped (R5.5).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..execution.codec import record_from_json, record_to_json
from ..execution.messages import JsonObject
from ..execution.state import Record

VERSION = 1

_CRC_KEY = b',"crc":"'
_CRC_LENGTH = len(_CRC_KEY) + 8 + len(b'"}')
RECORD_START = b'{"seq":'
_PLAIN_KINDS = ("turn", "result")
"""The saves of each step: what they hold the engine has made JSON values of before."""
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


def seal(data: JsonObject) -> bytes:
    """One line: the object as JSON, its checksum as the last key, a line break."""
    try:
        body = _encode(data).encode()
    except UnicodeEncodeError:
        body = _encode_ascii(data).encode()
    return _sealed(body)


def record_line(record: Record) -> bytes:
    """The line of a record.

    Raises:
        ValueError, TypeError: a value that a caller gave is no JSON.
    """
    data = record_to_json(record)
    if record.kind not in _PLAIN_KINDS:
        return seal(data)
    # Several times as fast, but lenient. Not at the top: reading a journal does without pydantic.
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return _sealed(to_json(data, inf_nan_mode="strings"))
    except PydanticSerializationError:
        # Too deep for it, or half a surrogate pair.
        return seal(data)


def _sealed(body: bytes) -> bytes:
    return b'%s,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body))


def is_sealed(line: bytes) -> bool:
    """Whether a line, its break aside, has a checksum that holds."""
    crc = zlib.crc32(b"}", zlib.crc32(line[:-_CRC_LENGTH]))
    return line[-_CRC_LENGTH:] == b',"crc":"%08x"}' % crc and len(line) > _CRC_LENGTH


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


def parse_records(lines: Sequence[bytes]) -> list[Record] | None:
    """The records that many lines are, parsed in one go; None unless each of them is one."""
    if not all(map(is_sealed, lines)):
        return None
    try:
        found = json.loads(b"[%s]" % b",".join(lines))
        return [record_from_json(data) for data in found] if len(found) == len(lines) else None
    except (ValueError, RecursionError):
        return None


def ends_like_record(line: bytes) -> bool:
    """Whether a line ends as a record does, its checksum unseen."""
    return line[-_CRC_LENGTH:].startswith(_CRC_KEY)


def begins_with_record(line: bytes) -> bool:
    """Whether a whole record stands at the beginning of a line, and something else than zeros behind it.

    Zeros there are of a save that a power cut took the line break from.
    """
    if not line.startswith(RECORD_START):
        return False
    crc, position = 0, 0
    while (key := line.find(_CRC_KEY, position)) >= 0:
        crc = zlib.crc32(line[position:key], crc)
        end = key + _CRC_LENGTH
        if line[key:end] == b',"crc":"%08x"}' % zlib.crc32(b"}", crc):
            return bool(line[end:].strip(b"\0"))
        crc = zlib.crc32(line[key : key + 1], crc)
        position = key + 1
    return False


ReadTail = Callable[[int, int], bytes]


def last_record(read: ReadTail, size: int) -> Record | None:
    """The last valid record of a journal, reading only its end.

    Args:
        read: `(offset, length) -> bytes`.
        size: the file's size in bytes.
    """
    window = 16 * 1024
    while size > 0:
        start = max(0, size - window)
        block = read(start, size - start).rstrip(b"\0")
        if not block:
            # Space that a runner made ready and has not written to.
            size, window = start, min(2 * window, 1024 * 1024)
            continue
        lines = block.split(b"\n")
        for line in reversed(lines if start == 0 else lines[1:]):
            record = parse_record(line) if line.startswith(RECORD_START) else None
            if record is not None:
                return record
        if start == 0:
            return None
        window *= 8
    return None


def records_before(read: ReadTail, end: int) -> Iterator[Record]:
    """The records up to `end`, the last one first, as far back as they are valid."""
    window = 16 * 1024
    while end > 0:
        start = max(0, end - window)
        lines = read(start, end - start).split(b"\n")
        if lines.pop():
            return
        whole = lines if start == 0 else lines[1:]
        for line in reversed(whole):
            record = parse_record(line) if line.startswith(RECORD_START) else None
            if record is None:
                return
            yield record
            end -= len(line) + 1
        window = 16 * 1024 if whole else 8 * window


def json_bytes(data: Any) -> bytes:
    """A small file's JSON, readable by people too."""
    return (json.dumps(data, ensure_ascii=True, indent=1, allow_nan=False) + "\n").encode()
