"""Rewriting a journal of which most is garbage: saves that no history holds any more (R3.21).

The saves before the kept ones become one record, a base, which holds what they led to; the kept ones stay
as they are, byte for byte. The transcript stays whole. The number of the base says up to which save they were
dropped, so that one of them is called dropped, not unknown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

from ..errors import SessionBusyError, StorageError
from ..execution.state import State, base_of
from .check_history import read_history_content
from .files import move_over, open_file, remove_file, storage, sync_folder, write_temporary
from .folder import AgentFolder
from .history_file import HistoryFile
from .journal import record_line
from .journal_fold import Journal, ReadAt, fold_journal, read_journal
from .lease import Lease
from .pruning import Compaction
from .reader import check_folder, summary
from .trail import Dropped

MOST = 0.5
"""A journal is rewritten if that leaves at most this part of it."""


def plan_compaction(folder: AgentFolder, session_id: str, limit: int) -> Compaction | None:
    """What `compact_journal` would do, looked at without holding the session.

    Raises:
        StorageError: the journal cannot be read.
    """
    found = _look(folder, session_id, limit)
    return None if found is None else found.compaction


def compact_journal(folder: AgentFolder, session_id: str, limit: int) -> Compaction | None:
    """Rewrite a session's journal if most of it is garbage; None if it is not.

    A crash at any instant leaves the old journal or the new one, whole. Readers that have the old one open go
    on with it; a runner that lost the session without noticing finds its file replaced, and is refused.

    Args:
        limit: how many saves are kept; if the session's history file was made to hold more, as many as that.

    Raises:
        SessionBusyError: somebody runs the session.
        StorageError: the journal cannot be read or written; it is as it was.
    """
    if plan_compaction(folder, session_id, limit) is None:
        return None
    lease = Lease(folder, session_id)
    try:
        found = _look(folder, session_id, limit)
        if found is not None:
            found.swap(lease)
        return None if found is None else found.compaction
    finally:
        lease.release()


@dataclass(frozen=True)
class _Found:
    """A journal of which most is garbage.

    Attributes:
        data: the journal that takes its place.
        identity: which file it was read from.
    """

    folder: AgentFolder
    session_id: str
    limit: int
    journal: Journal
    data: bytes
    identity: tuple[int, int]
    compaction: Compaction

    def swap(self, lease: Lease) -> None:
        path = self.folder.journal(self.session_id)
        compacted = self._verified(path)
        with storage(path, "compacted"):
            temporary = write_temporary(path, self.data, durable=True)
            try:
                if not lease.is_held or _identity(path) != self.identity:
                    raise SessionBusyError(f"session {self.session_id!r} was taken over by another runner")
                move_over(temporary, path)
            except BaseException:
                with suppress(StorageError):
                    remove_file(temporary)
                raise
            sync_folder(path.parent)
        parent = self.journal.header.parent if self.journal.header else None
        index = self.folder.history(self.session_id)
        trail = compacted.trail
        history = HistoryFile(index, self.session_id, self.limit, lambda: trail, parent, lambda: True)
        history.changed(flush=True)

    def _verified(self, path: Path) -> Journal:
        """The new journal, seen to be the same session as the old one.

        Raises:
            StorageError: it is not.
        """
        new = read_journal(path, self.data, self.session_id, self.limit)
        shorter = self.compaction.before - self.compaction.after
        moved = [replace(save, end=save.end - shorter) for save in self.journal.trail.saves()]
        same = (
            _same(new.state, self.journal.state)
            and list(new.trail.saves()) == moved
            and new.trail.kept_saves() == self.journal.trail.kept_saves()
        )
        if not same:
            raise StorageError(f"the compacted copy of {path} is not the same session; nothing was changed")
        return new


def _same(one: State, other: State) -> bool:
    """Whether two states are equal in everything."""
    names = (each.name for each in fields(State) if each.name != "subs")
    return (
        all(getattr(one, name) == getattr(other, name) for name in names)
        and one.subs.keys() == other.subs.keys()
        and all(_same(sub, other.subs[call]) for call, sub in one.subs.items())
    )


def _look(folder: AgentFolder, session_id: str, limit: int) -> _Found | None:
    """A session's journal if most of it is garbage."""
    check_folder(folder)
    path = folder.journal(session_id)
    history = read_history_content(folder.history(session_id))
    if history.session_id == session_id:
        limit = max(limit, history.limit)
    newest = summary(path, folder.agent, session_id)
    if newest is not None and newest.parent is None and newest.seq <= limit:
        return None
    with open_file(path) as file:
        if file is None:
            return None
        journal = fold_journal(path, file.read, session_id, limit)
        if journal.header is None or journal.dropped is None:
            return None
        data = _compacted(journal, journal.dropped, file.read)
        if len(data) > journal.end * MOST:
            return None
        compaction = Compaction(journal.end, len(data), journal.dropped.state.seq)
        return _Found(folder, session_id, limit, journal, data, file.identity, compaction)


def _compacted(journal: Journal, dropped: Dropped, read: ReadAt) -> bytes:
    """The journal with one record in place of those up to the newest dropped one."""
    assert journal.header is not None
    last_step = journal.trail.last_step
    own = dropped.state.seq >= journal.trail.first
    base = base_of(dropped.state, last_step if own and last_step >= 0 else None)
    return journal.header.line() + record_line(base) + b"".join(_parts(read, dropped.end, journal.end))


def _parts(read: ReadAt, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        part = read(start, end - start)
        if not part:
            return
        yield part
        start += len(part)


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path, follow_symlinks=False)
    return status.st_dev, status.st_ino
