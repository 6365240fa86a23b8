"""Forking in the file store: the new journal is a copy of the other one's lines and a first save of its own.

Where the history file says where the save lies, the lines are copied without making objects of them. What has
to be known of the session there is folded from its last turn on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from ..errors import NotFoundError, StorageError
from ..execution.fork_stores import Forked, ForkSource
from ..execution.state import Record, State, apply
from .files import UP_TO_WORKSPACE, make_folder, open_file, remove_file, replace_file_by, storage
from .folder import AgentFolder
from .history_file import HistoryFile
from .journal import Header, ReadTail, record_line, records_before
from .journal_fold import checked_lines
from .reader import check_folder, load_journal
from .saves_reader import read_index, state_up_to
from .trail import Save, Trail, save_of

Part = bytes | memoryview

_BEGINS = ("input", "turn", "finish")
"""Before a save of these kinds no call is open and nothing is queued."""


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """A kept save to fork from.

    Attributes:
        save: what is known of it.
        near: the session after it, perhaps without the transcript before its last turn.
        source: what the fork's first save is made from.
        older: the records up to it, where no journal holds them yet.
    """

    save: Save
    near: State
    source: ForkSource
    older: tuple[Record, ...] = ()


def fork_point(folder: AgentFolder, session_id: str, seq: int, limit: int) -> ForkPoint:
    """The kept save with that seq.

    Raises:
        NotFoundError: it is not kept any more.
        StorageError: the session's file is damaged.
    """
    check_folder(folder)
    index = read_index(folder, session_id, limit)
    save = index.at(seq) if index is not None else None
    near = _state_near(folder, session_id, save) if save is not None else None
    if save is not None and near is not None:
        return _indexed(folder, session_id, limit, save, near)
    return _folded(folder, session_id, limit, seq)


def _indexed(folder: AgentFolder, session_id: str, limit: int, save: Save, near: State) -> ForkPoint:
    @cache
    def read() -> State:
        state = state_up_to(folder, session_id, save)
        return _folded(folder, session_id, limit, save.seq).near if state is None else state

    return ForkPoint(save, near, ForkSource(session_id, save.seq, save.step, near.fence, read))


def _folded(folder: AgentFolder, session_id: str, limit: int, seq: int) -> ForkPoint:
    journal = load_journal(folder, session_id, limit)
    kept = journal.trail.at(seq)
    if kept is None:
        raise NotFoundError(f"save {seq} is gone", code="LOUSHO_CHECKPOINT_NOT_FOUND")
    save, state = kept
    older = () if journal.header is not None else tuple(each for each in journal.upgrade if each.seq <= seq)
    return ForkPoint(save, state, ForkSource.of(state), older)


def _state_near(folder: AgentFolder, session_id: str, save: Save) -> State | None:
    """The session after a save, without what was before its last turn; None if that turn is not found."""
    with open_file(folder.journal(session_id)) as file:
        records = [] if file is None else _last_turn(file.read, save.end)
    if not records or records[-1].seq != save.seq or any(each.rewrite is not None for each in records):
        return None
    state = State(session_id)
    for record in records:
        state = apply(state, record)
    return state


def _last_turn(read: ReadTail, end: int) -> list[Record]:
    """The records from the last turn before `end` on; none if it is not found."""
    records = []
    for record in records_before(read, end):
        records.append(record)
        if record.kind in _BEGINS:
            return records[::-1]
    return []


def write_fork(folder: AgentFolder, limit: int, point: ForkPoint, record: Record, name: str) -> Forked:
    """Write the fork's files, all or nothing: a header of its own, the other one's lines, and its first save.

    Raises:
        StorageError: they cannot be written, or the lines to copy are damaged.
    """
    # A rewrite counts from the beginning of the transcript; what made it has read that.
    before = point.near if record.rewrite is None else point.source.read()
    after = apply(before.as_session(name), record)
    header = Header(name, folder.agent, record.at, record.parent).line()
    line = record_line(record)
    path = folder.journal(name)
    make_folder(path.parent, above=UP_TO_WORKSPACE)
    size = replace_file_by(path, _content(folder, point, header, line), durable=True)
    count = point.save.messages + after.message_count - before.message_count
    save = replace(save_of(record, after, size), messages=count)
    trail = Trail(limit, first=record.seq)
    trail.add(save, after)
    history = folder.history(name)
    try:
        HistoryFile(history, name, limit, lambda: trail, record.parent, lambda: True).changed(flush=True)
    except StorageError:
        # A fork that failed leaves nothing behind.
        remove_file(path)
        raise
    return Forked(name, record.step, _reader(folder, name, save))


def _content(
    folder: AgentFolder, point: ForkPoint, header: bytes, line: bytes
) -> Iterator[bytes | memoryview]:
    yield header
    if point.older:
        yield b"".join(map(record_line, point.older))
    else:
        yield from _copied(folder, point.source.session_id, point.save)
    yield line


def _copied(folder: AgentFolder, session_id: str, save: Save) -> Iterator[Part]:
    path = folder.journal(session_id)
    with open_file(path) as file:
        if file is None:
            raise NotFoundError(f"save {save.seq} is gone", code="LOUSHO_CHECKPOINT_NOT_FOUND")
        lines = checked_lines(file.read, save.end, save.seq)
        while True:
            try:
                with storage(path, "read"):
                    part = next(lines, None)
            except ValueError as error:
                load_journal(folder, session_id, 0)  # It says what is damaged, and what is still readable.
                raise StorageError(f"{path} changed while it was forked: {error}") from error
            if part is None:
                return
            yield part


def _reader(folder: AgentFolder, name: str, save: Save) -> Callable[[], State]:
    def read() -> State:
        state = state_up_to(folder, name, save)
        if state is None:
            raise NotFoundError(
                f"session {name!r} is no longer the fork that was made", hint="it was deleted meanwhile"
            )
        return state

    return read
