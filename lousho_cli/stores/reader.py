"""Reading stored sessions: no lock, no write, neither asyncio nor pydantic.

A reader sees a session up to its last whole record, also while a runner appends to it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigurationError, NotFoundError, StorageError
from ..execution.messages import JsonObject
from ..execution.state import Record, State
from .files import open_file, read_file, real_folder
from .folder import HISTORY_FOLDER, JOURNAL_SUFFIX, AgentFolder
from .history_file import listed_saves
from .ids import decode_id, encode_id
from .journal import Header, last_record, parse_header, records_before
from .journal_fold import Journal, fold_journal
from .trail import Trail

_HEADER_BYTES = 4096
_LONGEST_HEADER = 64 * 1024
_BEHIND_BYTES = 64


@dataclass(frozen=True)
class SessionSummary:
    """What a list shows of a session.

    Attributes:
        seq, step, status, at: of its newest save.
        parent: the save it was forked from, or None.
        approval: the pending approval, while it waits for one.
        problem: why its file cannot be read, or None.
    """

    session_id: str
    agent: str
    status: str
    step: int
    seq: int
    at: str
    created_at: str
    parent: JsonObject | None = None
    approval: JsonObject | None = None
    finish_reason: str | None = None
    problem: StorageError | None = None


def load_journal(folder: AgentFolder, session_id: str, limit: int) -> Journal:
    """The whole session; an empty one if there is no file."""
    check_folder(folder)
    path = folder.journal(session_id)
    with open_file(path) as file:
        if file is not None:
            return _not_emptied(path, fold_journal(path, file.read, session_id, limit))
    if folder.legacy_checkpoint(session_id) is not None:
        from .legacy import load_legacy

        legacy = load_legacy(folder, session_id, limit)
        if legacy is not None:
            return legacy
    return Journal(None, State(session_id), Trail(limit), 0)


def is_unchanged(folder: AgentFolder, session_id: str, journal: Journal) -> bool:
    """Whether a session's file still ends in the newest save of `journal`, read from it before.

    A journal is only appended to: with the same save at the same place, what is before it is the same.
    """
    state, end = journal.state, journal.end
    if journal.header is None or not journal.whole:
        return False
    check_folder(folder)
    with open_file(folder.journal(session_id)) as file:
        if file is None or file.read(end, _BEHIND_BYTES).strip(b"\0"):
            return False
        newest = next(records_before(file.read, end), None)
    known = (state.seq, state.saved_at, state.fence)
    return newest is not None and (newest.seq, newest.at, newest.fence) == known


def read_journal_file(folder: AgentFolder, session_id: str) -> bytes | None:
    """The bytes of a session's journal; None if there is none."""
    check_folder(folder)
    return read_file(folder.journal(session_id))


def check_folder(folder: AgentFolder) -> None:
    """Refuse links in place of the folders that a session's files lie in."""
    real_folder(folder.path)
    real_folder(folder.checkpoints)


def _not_emptied(journal_path: Path, journal: Journal) -> Journal:
    """Refuse a journal without any save where the history file lists saves: its content is lost.

    The history file is written after the save that it lists is on the disk, and a new session takes away what
    a deleted one has left: no crash makes such a pair.
    """
    session_id = journal.state.session_id
    if journal.state.seq or session_id is None:
        return journal
    history = (
        journal_path.parent.parent / HISTORY_FOLDER / f"{journal_path.name.removesuffix(JOURNAL_SUFFIX)}.json"
    )
    newest = listed_saves(history, session_id)
    if newest:
        raise StorageError(
            f"the journal of session {session_id!r} holds no save, and its history file lists saves up to"
            f" {newest}: its content is lost: {journal_path}",
            code="LOUSHO_SESSION_FILE_CORRUPT",
            hint=f"restore the file from a copy; if there is none, lousho delete {shlex.quote(session_id)}",
        )
    return journal


def is_name_taken(folder: AgentFolder, session_id: str) -> bool:
    """Whether any session, a deleted one with kept history included, has the name."""
    if folder.legacy_checkpoint(session_id) is not None:
        return True
    check_folder(folder)
    ends = _ends(folder.journal(session_id))
    if ends is None:
        return False
    header, record = ends
    if header is not None and record is not None:
        return not _is_unfinished_fork(header, record)
    return load_journal(folder, session_id, 0).header is not None


def session_summary(folder: AgentFolder, session_id: str) -> SessionSummary | None:
    """One session, reading only the two ends of its file; None if there is none."""
    real_folder(folder.checkpoints)
    found = summary(folder.journal(session_id), folder.agent, session_id)
    if found is not None or folder.legacy_checkpoint(session_id) is None:
        return found
    return _whole(load_journal(folder, session_id, 0), folder.agent)


def read_header(folder: AgentFolder, session_id: str) -> Header | None:
    """The first line of a session's journal; None if there is none, or it is about another session.

    Raises:
        StorageError: the file cannot be read.
    """
    with open_file(folder.journal(session_id)) as file:
        if file is None:
            return None
        header = parse_header(file.read(0, _LONGEST_HEADER).split(b"\n", 1)[0])
    return header if header is not None and header.session_id == session_id else None


def no_session(session_id: str) -> NotFoundError:
    return NotFoundError(
        f"there is no session {session_id!r}", hint="lousho sessions lists the sessions there are"
    )


def summaries(folder: AgentFolder) -> Iterator[SessionSummary]:
    """Every session of an agent, reading only the two ends of each file."""
    for path in folder.journals():
        try:
            found = summary(path, folder.agent)
        except StorageError as error:
            found = unreadable(decode_id(path.stem) or path.stem, folder.agent, error)
        if found is not None:
            yield found
    for session_id in folder.legacy_ids():
        try:
            found = _whole(load_journal(folder, session_id, 0), folder.agent)
        except StorageError as error:
            found = unreadable(session_id, folder.agent, error)
        if found is not None:
            yield found


def summary(path: Path, agent: str, session_id: str | None = None) -> SessionSummary | None:
    """The session of one journal; None if the file holds no save, or a deletion was its last.

    Raises:
        StorageError: the file cannot be read, or its last saves are damaged.
    """
    ends = _ends(path)
    if ends is None:
        return None
    header, record = ends
    if header is None or record is None or not _is_named(header, path, session_id):
        # Torn before its first save, written by a newer version, or damaged: reading all of it tells.
        known = session_id or decode_id(path.stem) or path.stem
        with open_file(path) as file:
            if file is None:
                return None
            journal = fold_journal(path, file.read, known, 0)
            return _whole(_not_emptied(path, journal), agent)
    if record.kind == "delete" or _is_unfinished_fork(header, record):
        return None
    return SessionSummary(
        header.session_id, agent, record.status, record.step, record.seq, record.at, header.created_at,
        header.parent, record.approval, record.finish_reason,
    )  # fmt: skip


def _ends(path: Path) -> tuple[Header | None, Record | None] | None:
    """The first and the last valid line of a journal; None if there is no file."""
    with open_file(path) as file:
        if file is None:
            return None
        start = file.read(0, _HEADER_BYTES)
        header = parse_header(start.split(b"\n", 1)[0])
        if file.size <= len(start):
            return header, last_record(lambda offset, length: start[offset : offset + length], len(start))
        return header, last_record(file.read, file.size)


def _is_named(header: Header, path: Path, session_id: str | None) -> bool:
    """Whether a file is about the session that its name says."""
    if session_id is not None:
        return header.session_id == session_id
    try:
        return encode_id(header.session_id) == path.stem
    except ConfigurationError:
        return False


def _is_unfinished_fork(header: Header, record: Record) -> bool:
    """Whether a fork's own first save never was on disk."""
    return header.parent is not None and record.seq <= int(header.parent["seq"])


def _whole(journal: Journal, agent: str) -> SessionSummary | None:
    """The summary of a session that was read from beginning to end."""
    state, header = journal.state, journal.header
    if not state.exists or state.session_id is None:
        return None
    return SessionSummary(
        state.session_id, agent, state.status, state.step, state.seq, state.saved_at,
        header.created_at if header else "", state.parent, state.approval, state.finish_reason,
    )  # fmt: skip


def unreadable(session_id: str, agent: str, problem: StorageError) -> SessionSummary:
    """How a session is listed that cannot be read."""
    return SessionSummary(session_id, agent, "damaged", 0, 0, "", "", problem=problem)
