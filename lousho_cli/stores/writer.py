"""Appending to a journal: one write and one data sync a save, and never to a file that changed hands."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..errors import SessionBusyError, StorageError
from .files import (
    UP_TO_WORKSPACE,
    create_file,
    cut_file,
    data_sync,
    full_sync,
    make_folder,
    open_regular,
    read_at,
    remove_file,
    reserve,
    storage,
    storage_error,
    sync_folder,
    write_all,
    write_at,
)

LEAST_RESERVED = 16 * 1024
MOST_RESERVED = 256 * 1024
"""How many bytes are reserved at a time behind the last save: half as many as there are, between these."""


class JournalWriter:
    """The end of one journal, held by the session's runner.

    While it is open, the file may end in zeros that are reserved for the next saves; a reader takes them for
    a torn end. Closing cuts them off; where a kill came first, the next writer does.

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
        self._name = os.fspath(path)
        self._session_id = session_id
        self._is_held = is_held
        self._end = end
        self._size = end
        self._whole = whole
        self._fd = -1
        self._device = self._inode = 0
        self._failed: OSError | None = None
        if end:
            self._open_existing()

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self._end if self._whole else self._end + 1

    def append(self, line: bytes) -> None:
        """Make one line durable.

        Raises:
            StorageError: it could not be written; the file is as it was before. After a sync that failed
                nothing is written any more: what the disk holds is known again when the file is opened anew.
            SessionBusyError: another runner took the session over; nothing was written.
        """
        data = line if self._whole else b"\n" + line
        if not self._is_held():
            raise self._taken_over()
        if self._fd < 0:
            self._create(data)
        else:
            self._add(data)
        self._end += len(data)
        self._size = max(self._size, self._end)
        self._whole = True

    def close(self) -> None:
        if self._fd < 0:
            return
        if self._size > self._end:
            # Nothing hangs on the reserved space; a file that changed hands is no longer ours to cut.
            with suppress(OSError, StorageError):
                if self._is_held() and self._is_ours():
                    cut_file(self._fd, self._end)
        fd, self._fd = self._fd, -1
        with storage(self._path, "closed"):
            os.close(fd)

    def _add(self, data: bytes) -> None:
        try:
            if self._failed is not None:
                raise self._failed
            if not self._is_ours():
                raise self._taken_over()
            if self._end + len(data) > self._size:
                more = min(max(LEAST_RESERVED, self._end // 2), MOST_RESERVED)
                reserve(self._fd, self._size, len(data) + more)
                self._size = os.fstat(self._fd).st_size
            try:
                write_at(self._fd, data, self._end)
                self._sync()
            except OSError:
                # What was not synced must not be found by a later reader as if it were.
                self._cut_back()
                raise
        except OSError as error:
            raise storage_error(self._path, "written", error) from error

    def _sync(self) -> None:
        try:
            data_sync(self._fd)
        except OSError as error:
            self._failed = error
            raise

    def _open_existing(self) -> None:
        with storage(self._path, "opened"):
            self._fd = open_regular(self._path, os.O_RDWR)
            try:
                cut_file(self._fd, self._end)
                # The runner before may have died between its write and its sync, or its sync may have failed:
                # what this one goes on from has to be on disk before anything depends on it.
                self._write_again()
                data_sync(self._fd)
                sync_folder(self._path.parent)
                self._remember()
            except BaseException:
                os.close(self._fd)
                raise

    def _write_again(self) -> None:
        """Write the last record once more. What a failed sync could not write, the system holds for written:
        a sync alone would report success and write nothing."""
        start = max(0, self._end - 1)
        while start >= LEAST_RESERVED:
            block = read_at(self._fd, start - LEAST_RESERVED, LEAST_RESERVED)
            start -= LEAST_RESERVED
            if b"\n" in block:
                start += block.rindex(b"\n") + 1
                break
        else:
            start = 0
        write_at(self._fd, read_at(self._fd, start, self._end - start), start)

    def _create(self, data: bytes) -> None:
        make_folder(self._path.parent, above=UP_TO_WORKSPACE)
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
        self._device, self._inode = status.st_dev, status.st_ino

    def _is_ours(self) -> bool:
        """Whether the file is still the one at its path, and nobody else wrote since.

        Who takes a session over cuts the file behind its last save, and writes there: the size tells, or,
        where that one too reserved as much, what stands where the next save belongs.
        """
        status = os.stat(self._name, follow_symlinks=False)
        return (
            status.st_ino == self._inode
            and status.st_dev == self._device
            and status.st_size == self._size
            and (self._size == self._end or read_at(self._fd, self._end, 1) == b"\0")
        )

    def _taken_over(self) -> SessionBusyError:
        return SessionBusyError(
            f"session {self._session_id!r} was taken over by another runner; this one stops",
            hint=f"lousho history {self._session_id} shows what the other one did",
        )

    def _cut_back(self) -> None:
        with suppress(OSError):
            cut_file(self._fd, self._end)
            self._size = self._end
