"""A session is the fold of its journal's lines: reading all of them, and telling a torn end from damage."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import StorageError
from ..execution.state import Record, State, apply, goes_on
from .garbage import paused
from .journal import (
    RECORD_START,
    VERSION,
    Header,
    begins_with_record,
    ends_like_record,
    is_sealed,
    parse_header,
    parse_record,
    parse_records,
)
from .trail import Dropped, Recent, Trail

_GLUED_TRIES = 16
_BASE = re.compile(rb'\{"seq":([0-9]{1,15}),"at":"[^"]*","fence":[0-9]+,"kind":"base",')
_BLOCK_BYTES = 256 * 1024
_HEADER_BYTES = 4096


@dataclass
class Journal:
    """What a journal says.

    Attributes:
        header: None if the file holds nothing valid: there is no session.
        trail: the kept saves with their states.
        end: where the valid part ends, in bytes; what follows is torn.
        whole: whether the valid part ends with a line break.
        upgrade: records of an older layout that the journal has to begin with.
        dropped: the newest save before the kept ones; None if there is none.
    """

    header: Header | None
    state: State
    trail: Trail
    end: int
    whole: bool = True
    upgrade: tuple[Record, ...] = ()
    dropped: Dropped | None = None


ReadAt = Callable[[int, int], bytes]
"""`(offset, length) -> bytes`, fewer bytes only at the end."""


def read_journal(path: Path, data: bytes, session_id: str, limit: int) -> Journal:
    """`fold_journal` of a journal's bytes."""
    return fold_journal(path, lambda offset, length: data[offset : offset + length], session_id, limit)


def fold_journal(path: Path, read: ReadAt, session_id: str, limit: int) -> Journal:
    """Fold a journal, reading it once from beginning to end.

    Args:
        path: for error messages.
        session_id: the id the file must be about.
        limit: how many saves are kept.

    Raises:
        StorageError: it was written by a newer version, is damaged, or is about another session.
    """
    first, start = next(_lines(read, 0, _HEADER_BYTES), (b"", 0))
    _check_version(path, first)
    header = parse_header(first)
    if header is None:
        if _valid_follows(read, 0):
            raise _damaged(path, session_id, 0, State(session_id))
        return Journal(None, State(session_id), Trail(limit), 0)
    if header.session_id != session_id:
        raise StorageError(
            f"{path} claims to be session {header.session_id!r}, not {session_id!r}",
            code="LOUSHO_SESSION_FILE_CORRUPT",
            hint="rename it back, or restore it from a copy",
        )
    return _fold(path, read, start, header, limit)


def _fold(path: Path, read: ReadAt, position: int, header: Header, limit: int) -> Journal:
    parent = header.parent
    recent = Recent(Trail(limit, int(parent["seq"]) + 1 if parent else 1), limit)
    state = State(header.session_id, agent=header.agent, parent=parent)
    with paused():
        going_on = True
        while going_on:
            going_on = False
            for record, following in _records(read, position):
                if record is not None and goes_on(state, record):
                    state = apply(state, record)
                    recent.add(record, state, following)
                    position = following
                    continue
                if record is None and not _valid_follows(read, position):
                    break
                if record is not None or not _is_written(read, position):
                    raise _damaged(path, header.session_id, position, state)
                going_on = True
                break
    trail = recent.trail()
    if parent is not None and state.seq < trail.first:
        # Cut before its own first save was on disk: there is no fork.
        return Journal(None, State(header.session_id), Trail(limit), 0)
    whole = read(position - 1, 1) == b"\n"
    return Journal(header, state, trail, position, whole, dropped=recent.dropped)


def checked_lines(read: ReadAt, end: int, newest: int) -> Iterator[memoryview]:
    """A journal's records up to `end` as they are, some at a time, each line's checksum and place verified.

    Args:
        newest: the seq of the last of them.

    Raises:
        ValueError: a line is damaged, or they are not the records from the first, or a base, to that one.
    """
    _, position = next(_lines(read, 0, _HEADER_BYTES))
    seq, length = 0, _BLOCK_BYTES
    while position < end:
        block = read(position, min(length, end - position))
        lines = block.split(b"\n")
        rest = lines.pop()
        if not lines and position + len(block) == end:
            # The last line lacks its break.
            lines, block, rest = [block], block + b"\n", b""
        elif not lines and len(block) < length:
            break
        for line in lines:
            base = _BASE.match(line) if seq == 0 else None
            seq = int(base[1]) if base else seq + 1
            if not (line.startswith(b'{"seq":%d,' % seq) and is_sealed(line)):
                raise ValueError(f"record {seq} is damaged")
        length = _BLOCK_BYTES if lines else 4 * length
        position += len(block) - len(rest)
        yield memoryview(block)[: len(block) - len(rest)]
    if seq != newest:
        raise ValueError(f"{seq} whole records, not {newest}")


def _records(read: ReadAt, position: int) -> Iterator[tuple[Record | None, int]]:
    """The lines from `position` on, as records, each with the place where the next one begins.

    None stands for a line that is none.
    """
    for lines, ended in _blocks(read, position):
        records: Sequence[Record | None] = parse_records(lines) or [parse_record(line) for line in lines]
        for line, record in zip(lines, records, strict=True):
            position += len(line) + 1
            yield record, position if ended else position - 1


def _lines(read: ReadAt, position: int, block: int = _BLOCK_BYTES) -> Iterator[tuple[bytes, int]]:
    """The lines from `position` on without their breaks, each with the place where the next one begins."""
    for lines, ended in _blocks(read, position, block):
        for line in lines:
            position += len(line) + 1
            yield line, position if ended else position - 1


def _blocks(read: ReadAt, position: int, length: int = _BLOCK_BYTES) -> Iterator[tuple[list[bytes], bool]]:
    """Whole lines, some at a time, so that a long file is never held as a whole.

    The second value is false for a last line without a break.
    """
    while block := read(position, length):
        lines = block.split(b"\n")
        rest = lines.pop()
        if lines:
            yield lines, True
            position += len(block) - len(rest)
            length = _BLOCK_BYTES
        elif len(block) < length:
            yield [block], False
            return
        else:
            length *= 4


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


def _is_written(read: ReadAt, position: int) -> bool:
    """Whether the line at `position` is a record, looked at once more.

    A runner may have written it, and others behind it, since the first look.
    """
    line, _ = next(_lines(read, position), (b"", 0))
    return parse_record(line) is not None


def _valid_follows(read: ReadAt, position: int) -> bool:
    """Whether a valid record stands anywhere behind the start of the bad line at `position`."""
    return any(_holds_record(line) for line, _ in _lines(read, position))


def _holds_record(line: bytes) -> bool:
    """Whether a line is a record, or is garbage before or behind a whole record."""
    if begins_with_record(line):
        return True
    end = len(line)
    for _ in range(_GLUED_TRIES):
        start = line.rfind(RECORD_START, 0, end)
        if start < 0:
            return False
        if is_sealed(line[start:]):
            return True
        end = start
    # Too many places to look at one by one. What ends like a record is taken for one: better damage that is
    # reported than a save that is lost.
    return ends_like_record(line)


def _damaged(path: Path, session_id: str, position: int, state: State) -> StorageError:
    readable = f"saves up to {state.seq} (step {state.step})" if state.seq else "no saves"
    return StorageError(
        f"the journal of session {session_id!r} is damaged at byte {position}: {path}; "
        f"{readable} before that are readable, and valid saves follow",
        code="LOUSHO_SESSION_FILE_CORRUPT",
        hint="restore the file from a copy; it was not changed",
    )
