"""Pruning the file store: the files of a session go together, its journal first."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from ..errors import StorageError
from .approvals_reader import read_object
from .compaction import compact_journal, plan_compaction
from .files import real_folder, remove_file, storage, sync_folder
from .folder import AgentFolder
from .lease import Lease, is_running
from .pruning import Compaction, Weight
from .reader import check_folder, session_summary
from .saves_reader import read_history


class FilePruner:
    """Pruning the sessions of one agent."""

    def __init__(self, folder: AgentFolder, history_limit: int) -> None:
        self._folder = folder
        self._limit = history_limit

    def weigh(self, session_id: str) -> Weight:
        sizes = [_size(path) for path in session_files(self._folder, session_id)]
        return Weight(len(read_history(self._folder, session_id, self._limit)), sum(sizes))

    def is_running(self, session_id: str) -> bool:
        return is_running(self._folder, session_id)

    def remove(self, session_id: str, seq: int) -> bool:
        lease = Lease(self._folder, session_id)
        try:
            newest = session_summary(self._folder, session_id)
            if newest is None or newest.seq != seq:
                return False
            remove_session_files(self._folder, session_id)
            # A decision may only go once its session has: it is the truth until it is taken up.
            self._remove_approvals(session_id)
            return True
        finally:
            lease.release()

    def compact(self, session_id: str, *, dry_run: bool) -> Compaction | None:
        do = plan_compaction if dry_run else compact_journal
        return do(self._folder, session_id, self._limit)

    def _remove_approvals(self, session_id: str) -> None:
        for approval_id in self._approvals.pop(session_id, ()):
            remove_file(self._folder.request(approval_id))
            remove_file(self._folder.decision(approval_id))

    @cached_property
    def _approvals(self) -> dict[str, list[str]]:
        """The approvals that were asked for, by session."""
        found: dict[str, list[str]] = defaultdict(list)
        for approval_id in self._folder.request_ids():
            with suppress(StorageError):
                request = read_object(self._folder.request(approval_id)) or {}
                pending = request.get("pending")
                if isinstance(pending, dict) and isinstance(pending.get("sessionId"), str):
                    found[pending["sessionId"]].append(approval_id)
        return found


def session_files(folder: AgentFolder, session_id: str) -> list[Path]:
    """The files that a session's saves may be in, in the order in which they are removed.

    An older layout's come first, as they would come to life behind the journal; without both the session does
    not exist, whatever else is left.
    """
    legacy = folder.legacy_checkpoint(session_id)
    older = [] if legacy is None else [legacy, folder.legacy_history(legacy)]
    return [*older, folder.journal(session_id), folder.history(session_id)]


def remove_session_files(folder: AgentFolder, session_id: str) -> None:
    """Remove a session that the caller holds, durably."""
    check_folder(folder)
    *saves, history = session_files(folder, session_id)
    for path in saves:
        remove_file(path)
    if real_folder(folder.checkpoints):
        with storage(folder.checkpoints, "synced"):
            sync_folder(folder.checkpoints)
    remove_file(history)


def _size(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
