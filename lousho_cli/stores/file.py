"""The file store: sessions and approvals as files inside a `.lousho` folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from weakref import WeakValueDictionary

from ..execution.checkpoint import checkpoint_of, record_of
from ..execution.fork_stores import Forked, MakeRecord
from ..execution.kept import KeptSaves
from ..execution.records import Checkpoint, HistoryEntry
from ..execution.session import OpenSession, Seen, stamp
from ..execution.state import Record
from .file_approvals import FileApprovals
from .file_fork import fork_point, write_fork
from .file_session import FileSession
from .files import path_exists, real_folder, remove_file, sync_folder
from .folder import AgentFolder, agent_folder
from .journal_fold import Journal
from .lease import Lease, lease_free_name
from .memory import entry_of
from .prune_file import remove_session_files
from .reader import check_folder, is_name_taken, load_journal
from .saves_reader import read_kept


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
        # What somebody has read and still keeps.
        self._seen = WeakValueDictionary[str, Journal]()

    async def open_session(self, session_id: str) -> OpenSession:
        lease = Lease(self._folder, session_id)
        try:
            return FileSession(self._folder, session_id, self._limit, lease, self._seen.pop(session_id, None))
        except BaseException:
            lease.release()
            raise

    async def look(self, session_id: str) -> Seen:
        journal = self._seen[session_id] = self._journal(session_id)
        return Seen(journal.state, journal)

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
            remove_session_files(self._folder, session_id)
        finally:
            lease.release()

    async def history(self, session_id: str, *, limit: int | None = None) -> Sequence[HistoryEntry]:
        return [entry_of(*pair) for pair in self._journal(session_id).trail.newest_first(limit)]

    async def kept_saves(self, session_id: str) -> KeptSaves | None:
        return read_kept(self._folder, session_id, self._limit)

    async def fork_session(
        self, session_id: str, seq: int, new_session_id: str | None, make: MakeRecord
    ) -> Forked:
        point = fork_point(self._folder, session_id, seq, self._limit)
        record = stamp(make(point.source), point.source, point.source.fence)
        name, lease = lease_free_name(
            self._folder, session_id, new_session_id, lambda name: is_name_taken(self._folder, name)
        )
        try:
            return write_fork(self._folder, self._limit, point, record, name)
        finally:
            lease.release()

    def _journal(self, session_id: str) -> Journal:
        return load_journal(self._folder, session_id, self._limit)
