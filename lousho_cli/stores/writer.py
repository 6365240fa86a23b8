"""Appending to a journal: one write and one data sync a save, and never to a file that changed hands."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..errors import SessionBusyError, StorageError
from .files import (
    create_file,
    cut_file,
    data_sync,
    full_sync,
    make_folder,
    open_regular,
    remove_file,
    storage,
    sync_folder,
    write_all,
)


class JournalWriter:
    """The end of one journal, held by the session's runner.

    Args:
        path: the journal.
        session_id: for messages.
        is_held: whether the runner still holds the session.
        end: where its valid part ends, in bytes; 0 for a file to be made.
        whole: whether the valid part ends with a line break.
    """

    def __init__(
        self, path: Path, session_id: str, is_held: Callable[[], bool], end: int, whole: bool = True
    ) -> None:
        self._path = path
        self._session_id = session_id
        self._is_held = is_held
        self._end = end
        self._whole = whole
        self._fd = -1
        self._inode = (0, 0)
        if end:
            self._open_existing()

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self._end if self._whole else self._end + 1

    def append(self, line: bytes) -> None:
        """Make one line durable.

        Raises:
            StorageError: it could not be written; the file is as it was before.
            SessionBusyError: another runner took the session over; nothing was written.
        """
        data = line if self._whole else b"\n" + line
        if not self._is_held():
            raise self._taken_over()
        if self._fd < 0:
            self._create(data)
        else:
            self._check_file()
            with storage(self._path, "written"):
                try:
                    write_all(self._fd, data)
                    data_sync(self._fd)
                except OSError:
                    # What was not synced must not be found by a later reader as if it were.
                    self._cut_back()
                    raise
        self._end += len(data)
        self._whole = True

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with storage(self._path, "closed"):
                os.close(fd)

    def _open_existing(self) -> None:
        with storage(self._path, "opened"):
            self._fd = open_regular(self._path, os.O_RDWR)
            try:
                cut_file(self._fd, self._end)
                # The runner before may have died between its write and its sync: what this one goes on from
                # has to be on disk before anything depends on it.
                data_sync(self._fd)
                sync_folder(self._path.parent)
                self._remember()
            except BaseException:
                os.close(self._fd)
                raise

    def _create(self, data: bytes) -> None:
        make_folder(self._path.parent)
        with storage(self._path, "written"):
            # A leftover here holds no valid save: a crash came before its first one was on disk.
            remove_file(self._path)
            fd = create_file(self._path)
            try:
                write_all(fd, data)
                full_sync(fd)
                sync_folder(self._path.parent)
            except OSError:
                os.close(fd)
                with suppress(StorageError):
                    remove_file(self._path)
                raise
            self._fd = fd
            self._remember()

    def _remember(self) -> None:
        status = os.fstat(self._fd)
        self._inode = (status.st_dev, status.st_ino)

    def _check_file(self) -> None:
        """Refuse to write where somebody else wrote since, or where the file is no longer ours."""
        with storage(self._path, "written"):
            status = os.stat(self._path, follow_symlinks=False)
        if (status.st_dev, status.st_ino) != self._inode or status.st_size != self._end:
            raise self._taken_over()

    def _taken_over(self) -> SessionBusyError:
        return SessionBusyError(
            f"session {self._session_id!r} was taken over by another runner; this one stops",
            hint=f"lousho history {self._session_id} shows what the other one did",
        )

    def _cut_back(self) -> None:
        with suppress(OSError):
            cut_file(self._fd, self._end)
