"""The file store: sessions and approvals as files inside a `.lousho` folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import NotFoundError, StorageError
from ..execution.checkpoint import checkpoint_of, record_of
from ..execution.fork_stores import MakeRecord
from ..execution.kept import KeptSaves
from ..execution.records import Checkpoint, HistoryEntry
from ..execution.session import OpenSession, stamp
from ..execution.state import Record, State, apply
from .file_approvals import FileApprovals
from .file_session import FileSession
from .files import (
    UP_TO_WORKSPACE,
    make_folder,
    path_exists,
    real_folder,
    remove_file,
    replace_file,
    sync_folder,
)
from .folder import AgentFolder, agent_folder
from .history_file import HistoryFile
from .journal import Header, record_line
from .journal_fold import Journal
from .lease import Lease, lease_free_name
from .memory import entry_of
from .reader import check_folder, is_name_taken, load_journal, read_journal_file
from .trail import Save, Trail, save_of


class FileStore:
    """Checkpoints and approvals in files that survive crashes and power cuts.

    Args:
        path: the `.lousho` folder; made when something is saved.
        agent: whose sessions: they lie in `agents/<agent>/`.
        history_limit: how many saves of a session are kept; 0 keeps none.
    """

    def __init__(self, path: str | os.PathLike[str], agent: str = "default", history_limit: int = 50) -> None:
        folder = agent_folder(Path(path), agent)
        self.checkpoints = FileCheckpoints(folder, history_limit)
        self.approvals = FileApprovals(folder)


class FileCheckpoints:
    """The checkpoint store of a FileStore."""

    def __init__(self, folder: AgentFolder, history_limit: int) -> None:
        self._folder = folder
        self._limit = history_limit

    async def open_session(self, session_id: str) -> OpenSession:
        lease = Lease(self._folder, session_id)
        try:
            return FileSession(self._folder, session_id, self._limit, lease)
        except BaseException:
            lease.release()
            raise

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        session = await self.open_session(session_id)
        try:
            await session.save(record_of(Checkpoint.of(checkpoint)))
        finally:
            await session.close()

    async def load(self, session_id: str) -> Checkpoint | None:
        state = self._journal(session_id).state
        return checkpoint_of(state) if state.exists else None

    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        check_folder(self._folder)
        path = self._folder.journal(session_id)
        legacy = self._folder.legacy_checkpoint(session_id)
        if not path_exists(path) and legacy is None:
            # A deletion that a crash cut short may have left this behind.
            remove_file(self._folder.history(session_id))
            if real_folder(path.parent):
                sync_folder(path.parent)
            return
        if keep_history:
            session = await self.open_session(session_id)
            try:
                await session.save(Record("delete", "finished", 0))
            finally:
                await session.close()
            return
        lease = Lease(self._folder, session_id)
        try:
            # An older layout's file would come back to life behind the journal; without both the session
            # does not exist, whatever else is left.
            if legacy is not None:
                remove_file(legacy)
                remove_file(self._folder.legacy_history(legacy))
            remove_file(path)
            sync_folder(path.parent)
            remove_file(self._folder.history(session_id))
        finally:
            lease.release()

    async def history(self, session_id: str, *, limit: int | None = None) -> Sequence[HistoryEntry]:
        return [entry_of(*pair) for pair in self._journal(session_id).trail.newest_first(limit)]

    async def kept_saves(self, session_id: str) -> KeptSaves | None:
        journal = self._journal(session_id)
        known = journal.header is not None or journal.state.exists
        return journal.trail.kept_saves() if known else None

    async def fork_session(
        self, session_id: str, seq: int, new_session_id: str | None, make: MakeRecord
    ) -> State:
        source = self._journal(session_id)
        data = read_journal_file(self._folder, session_id)
        kept = source.trail.at(seq)
        if kept is None:
            raise NotFoundError(f"save {seq} is gone", code="LOUSHO_CHECKPOINT_NOT_FOUND")
        save, state = kept
        record = stamp(make(state), state, state.fence)
        name, lease = lease_free_name(
            self._folder, session_id, new_session_id, lambda name: is_name_taken(self._folder, name)
        )
        try:
            forked = apply(state.as_session(name), record)
            self._write_fork(forked, record, _lines(source, data, save))
        finally:
            lease.release()
        return forked

    def _write_fork(self, forked: State, record: Record, lines: bytes) -> None:
        """The fork's files: a header of its own, the source's lines, and its first save, all or nothing."""
        name = str(forked.session_id)
        header = Header(name, self._folder.agent, record.at, record.parent)
        data = header.line() + lines + record_line(record)
        path = self._folder.journal(name)
        make_folder(path.parent, above=UP_TO_WORKSPACE)
        replace_file(path, data, durable=True)
        trail = Trail(self._limit, first=record.seq)
        trail.add(save_of(record, forked, len(data)), forked)
        history = self._folder.history(name)
        try:
            HistoryFile(history, name, self._limit, trail, record.parent, lambda: True).changed(flush=True)
        except StorageError:
            # A fork that failed leaves nothing behind.
            remove_file(path)
            raise

    def _journal(self, session_id: str) -> Journal:
        return load_journal(self._folder, session_id, self._limit)


def _lines(source: Journal, data: bytes | None, save: Save) -> bytes:
    """The source's lines up to `save`, its header aside."""
    if source.header is None or data is None:
        return b"".join(record_line(each) for each in source.upgrade if each.seq <= save.seq)
    lines = data[data.index(b"\n") + 1 : save.end]
    return lines if lines.endswith(b"\n") else lines + b"\n"
