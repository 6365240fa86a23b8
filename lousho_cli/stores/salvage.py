"""What can be kept of a damaged journal. Pure: bytes in, bytes out.

Kept is what the reader accepts from the beginning, and behind it every whole record that goes on from there
without a gap, wherever it stands in the file: a record carries its number and its checksum, so records with
garbage between them, or in a wrong order, are put right. A missing record ends it: nothing is made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ..execution.messages import JsonObject
from ..execution.state import Record, State, apply, goes_on
from ..execution.unset import UNSET, Unset
from .journal import Header, parse_header, parse_record

_START = re.compile(rb'\{"(?:seq|version)":')
_END = re.compile(rb',"crc":"[0-9a-f]{8}"\}')
_TRIES = 200
"""Beginnings of a record that are tried in one line of garbage, and ends for each of them."""

FOLD_ERRORS = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, OverflowError)
"""What applying a record that has a checksum and nonsense in it may raise."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a journal: a record, a header, or garbage."""

    start: int
    end: int
    record: Record | None = None
    header: Header | None = None

    @property
    def is_garbage(self) -> bool:
        return self.record is None and self.header is None


@dataclass(frozen=True, slots=True)
class Salvage:
    """What can be kept, and what cannot.

    Attributes:
        data: the journal as it would be written anew; empty if nothing can be kept.
        header: of that journal; None if nothing can be kept.
        state: the session it holds.
        header_rebuilt: whether the first line was lost and is made from the records.
        reordered: whether records stood in the wrong order.
        garbage: byte ranges of the damaged file that are no record.
        missing: numbers of saves of which nothing is left.
        dropped: numbers of saves that are whole and cannot be kept, as something before them is missing.
    """

    data: bytes
    header: Header | None
    state: State
    header_rebuilt: bool = False
    reordered: bool = False
    garbage: tuple[tuple[int, int], ...] = ()
    missing: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()

    def kept_json(self) -> JsonObject:
        state = self.state
        return {"saves": state.seq, "step": state.step, "messages": state.message_count}

    def lost_json(self) -> JsonObject:
        return {
            "bytes": [[start, end] for start, end in self.garbage],
            "missingSaves": list(self.missing),
            "droppedSaves": list(self.dropped),
        }


@dataclass(frozen=True, slots=True)
class Known:
    """What a session's history file says of it.

    Attributes:
        newest: its newest save; 0 where nothing tells.
        parent: the save it was forked from; UNSET where nothing tells.
    """

    newest: int = 0
    parent: JsonObject | Unset | None = UNSET


NOTHING_KNOWN = Known()


def salvage(data: bytes, session_id: str, agent: str, known: Known = NOTHING_KNOWN) -> Salvage:
    """What can be kept of a journal's bytes.

    Args:
        session_id, agent: whose journal it is, for a first line that was lost.
    """
    found = list(pieces(data))
    kept = _kept_pieces(found)
    stated = next((p.header for p in found if p.header and p.header.session_id == session_id), None)
    header = stated or _rebuilt_header(found, session_id, agent, known)
    state, folded = _fold(header, [p.record for p in kept if p.record], session_id)
    kept = kept[:folded]
    seqs = {p.record.seq for p in found if p.record}
    newest = max([known.newest, state.seq, *seqs])
    beyond = range(state.seq + 1, newest + 1)
    garbage = _joined([(p.start, p.end) for p in found if p.is_garbage])
    missing = tuple(seq for seq in beyond if seq not in seqs)
    dropped = tuple(seq for seq in beyond if seq in seqs)
    if header is None or not kept or (header.parent and state.seq <= int(header.parent["seq"])):
        # Of a fork, its parent's saves alone are no session of its own.
        return Salvage(b"", None, State(session_id), False, False, garbage, missing, dropped)
    lines = b"".join(data[p.start : p.end] + b"\n" for p in kept)
    in_order = all(one.end <= other.start for one, other in pairwise(kept))
    return Salvage(
        header.line() + lines, header, state, stated is None, not in_order, garbage, missing, dropped
    )


def pieces(data: bytes) -> Iterator[Piece]:
    """The journal as a sequence of lines, and of what whole records there are inside damaged lines."""
    position = 0
    while position < len(data):
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        line = data[position:end]
        whole = _piece(line, position)
        if whole.is_garbage:
            yield from _inside(line, position)
        else:
            yield whole
        position = end + 1


def _piece(line: bytes, start: int) -> Piece:
    record = parse_record(line)
    header = parse_header(line) if record is None else None
    return Piece(start, start + len(line), record, header)


def _inside(line: bytes, offset: int) -> Iterator[Piece]:
    """The whole records in a damaged line, and the garbage around them."""
    position = 0
    for tried, start in enumerate(match.start() for match in _START.finditer(line)):
        if tried >= _TRIES:
            break
        if start < position:
            continue
        for number, end in enumerate(match.end() for match in _END.finditer(line, start)):
            if number >= _TRIES:
                break
            piece = _piece(line[start:end], offset + start)
            if not piece.is_garbage:
                if start > position:
                    yield Piece(offset + position, offset + start)
                yield piece
                position = end
                break
    if position < len(line) or not line:
        # An empty line is its line break.
        yield Piece(offset + position, offset + max(len(line), 1))


def _kept_pieces(found: list[Piece]) -> list[Piece]:
    """The records that go on from one another, beginning with those the reader accepts."""
    kept: list[Piece] = []
    by_seq: dict[int, list[Piece]] = {}
    for piece in found:
        if piece.record is not None and piece.record.kind != "base":
            alike = by_seq.setdefault(piece.record.seq, [])
            if all(each.record != piece.record for each in alike):
                alike.append(piece)
    seq = 0
    for piece in found[1:] if found and found[0].header else ():
        if piece.record is None or not goes_on(State(None, seq=seq), piece.record):
            break
        kept.append(piece)
        seq = piece.record.seq
    if not kept:
        kept = [piece for piece in found if piece.record and piece.record.kind == "base"][:1]
    # Two different records of one number: two runners wrote. What follows may go on from either.
    if any(len(by_seq.get(piece.record.seq, ())) > 1 for piece in kept if piece.record):
        return kept
    newest = kept[-1].record if kept else None
    seq, fence = (newest.seq, newest.fence) if newest else (0, 0)
    while len(following := by_seq.get(seq + 1, [])) == 1:
        record = following[0].record
        if record is None or record.fence < fence:
            break
        seq, fence = record.seq, record.fence
        kept.append(following[0])
    return kept


def _rebuilt_header(found: list[Piece], session_id: str, agent: str, known: Known) -> Header | None:
    """The first line made of the records: a fork's own first one names its parent."""
    records = sorted((p.record for p in found if p.record is not None), key=lambda record: record.seq)
    if not records:
        return None
    forks = [record for record in records if record.kind in ("fork", "base") and record.parent]
    parent = known.parent if not isinstance(known.parent, Unset) else forks[-1].parent if forks else None
    made = forks[-1].at if parent and forks else records[0].at
    return Header(session_id, agent, made, parent)


def _fold(header: Header | None, records: list[Record], session_id: str) -> tuple[State, int]:
    """The session after as many of the records as can be applied, and how many those are."""
    state = State(session_id, agent=header.agent if header else "", parent=header.parent if header else None)
    for number, record in enumerate(records):
        try:
            state = apply(state, record)
        except FOLD_ERRORS:
            return state, number
    return state, len(records)


def _joined(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges of bytes, neighbours and those with only a line break between them as one."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return tuple(joined)
