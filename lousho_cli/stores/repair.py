"""Repairing the files of a session: under its lock, on a copy first, the damaged original kept aside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import StorageError
from .aside import keep_aside
from .check_history import HistoryContent, contradicts, read_history_content
from .files import move_over, read_file, storage, sync_folder, write_temporary
from .findings import Mended
from .folder import AgentFolder
from .history_file import HistoryFile
from .journal_fold import Journal, read_journal
from .lease import Lease
from .reader import read_journal_file
from .salvage import FOLD_ERRORS, Salvage, salvage


@dataclass(frozen=True, slots=True)
class RepairJournal:
    """Put what can be kept of a damaged journal in its place."""

    folder: AgentFolder
    session_id: str
    limit: int

    def apply(self, *, dry_run: bool) -> Mended:
        path = self.folder.journal(self.session_id)
        if dry_run:
            kept = self._salvage()
            return _mended(self, path, "planned", "would keep " + _kept(kept), kept)
        with _held(self.folder, self.session_id):
            data = read_journal_file(self.folder, self.session_id)
            if data is None or self._opens(path, data) is not None:
                return _mended(self, path, "unneeded", "it is whole")
            kept = self._salvage()
            if kept.header is None:
                return _mended(self, path, "failed", "nothing of it can be kept", kept)
            aside = self._swap(path, kept)
            journal = self._opens(path, kept.data)
            assert journal is not None
            _write_history(self.folder, self.session_id, self.limit, journal)
        return _mended(self, path, "repaired", "kept " + _kept(kept), kept, aside)

    def _salvage(self) -> Salvage:
        data = read_journal_file(self.folder, self.session_id) or b""
        known = read_history_content(self.folder.history(self.session_id)).known_of(self.session_id)
        return salvage(data, self.session_id, self.folder.agent, known)

    def _opens(self, path: Path, data: bytes) -> Journal | None:
        """The session that these bytes are; None if they are damaged."""
        try:
            return read_journal(path, data, self.session_id, self.limit)
        except FOLD_ERRORS:
            return None
        except StorageError as error:
            if error.code == StorageError.default_code or error.code == "LOUSHO_CHECKPOINT_VERSION":
                raise
            return None

    def _swap(self, path: Path, kept: Salvage) -> Path:
        """Replace the journal. A crash at any instant leaves the original or the repaired one, whole."""
        with storage(path, "repaired"):
            copy = write_temporary(path, kept.data, durable=True)
            try:
                self._verify(copy, kept)
                aside = keep_aside(path)
                move_over(copy, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(copy)
                raise
            sync_folder(path.parent)
        return aside

    def _verify(self, copy: Path, kept: Salvage) -> None:
        """See that what was written opens and is the session it should be."""
        journal = self._opens(copy, read_file(copy) or b"")
        if journal is None or journal.state.seq != kept.state.seq or journal.state.log != kept.state.log:
            original = self.folder.journal(self.session_id)
            raise StorageError(
                f"the repaired copy of {original} does not open; nothing was changed",
                hint="restore the file from a copy",
            )


@dataclass(frozen=True, slots=True)
class RebuildHistory:
    """Write the history file of a session anew from its journal, which is not touched."""

    folder: AgentFolder
    session_id: str
    limit: int

    def apply(self, *, dry_run: bool) -> Mended:
        path = self.folder.history(self.session_id)
        if dry_run:
            return _mended(self, path, "planned", "would rebuild it from the journal")
        with _held(self.folder, self.session_id):
            data = read_journal_file(self.folder, self.session_id)
            if data is None:
                return _mended(self, path, "unneeded", "there is no session any more")
            journal = read_journal(self.folder.journal(self.session_id), data, self.session_id, self.limit)
            if journal.header is None or self._is_right(read_history_content(path), journal):
                return _mended(self, path, "unneeded", "it is up to date")
            _write_history(self.folder, self.session_id, self.limit, journal)
        return _mended(self, path, "repaired", f"rebuilt, {len(journal.trail)} saves")

    def _is_right(self, history: HistoryContent, journal: Journal) -> bool:
        return (
            history.condition == "whole"
            and history.session_id == self.session_id
            and history.newest == journal.trail.newest
            and contradicts(history, journal.trail) is None
        )


@contextmanager
def _held(folder: AgentFolder, session_id: str) -> Iterator[None]:
    lease = Lease(folder, session_id)
    try:
        yield
    finally:
        lease.release()


def _write_history(folder: AgentFolder, session_id: str, limit: int, journal: Journal) -> None:
    parent = journal.header.parent if journal.header else None
    file = HistoryFile(
        folder.history(session_id), session_id, limit, lambda: journal.trail, parent, lambda: True
    )
    file.changed(flush=True)


def _kept(kept: Salvage) -> str:
    state = kept.state
    text = f"the saves up to {state.seq}, step {state.step}, {state.message_count} messages"
    if kept.header_rebuilt:
        text += "; its first line is made anew"
    if kept.missing or kept.dropped:
        text += "; a resume does again what the lost saves had recorded"
    return text


def _mended(
    remedy: RepairJournal | RebuildHistory,
    path: Path,
    outcome: Literal["repaired", "planned", "unneeded", "failed"],
    message: str,
    kept: Salvage | None = None,
    aside: Path | None = None,
) -> Mended:
    return Mended(
        outcome, message, str(path), remedy.session_id, remedy.folder.agent,
        None if aside is None else str(aside),
        None if kept is None else kept.kept_json(),
        None if kept is None else kept.lost_json(),
    )  # fmt: skip
