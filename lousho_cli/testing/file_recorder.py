"""Recording the file operations of a FileStore while it works on real files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..stores import files, system
from .file_operations import (
    Allocate,
    CreateFile,
    FileRecording,
    Link,
    MakeFolder,
    Operation,
    Rename,
    SyncFile,
    SyncFolder,
    Truncate,
    Unlink,
    Write,
)


@contextmanager
def record_files(root: Path) -> Iterator[FileRecording]:
    """Record what file stores in this process do below `root`, until the block ends.

    The operations are done too, except that nothing waits for the disk: a sync is recorded only. So a
    recording shows what is promised to survive, and costs no time. One block at a time.

    Not recorded: modes and times, and the lock files, whose content and presence mean nothing.

    Args:
        root: a folder; what is in it counts as durable.

    Example:
        with record_files(root) as recording:
            asyncio.run(session_with(FileStore(root)))
    """
    recorder = _Recorder(root)
    # What is recorded is a process of its own, which knows nothing yet.
    vars(files)["_synced_folders"].clear()
    real = vars(files)["os"]
    _use(recorder.double(real))
    try:
        yield recorder.recording
    finally:
        _use(real)


def _use(double: Any) -> None:
    """Let the file store make its calls to `double` in place of `os`."""
    for module in (files, system):
        setattr(module, "os", double)  # noqa: B010


Buffer = bytes | bytearray | memoryview


class _Recorder:
    """The double of `os`: each of its methods does what its namesake does, and notes it."""

    def __init__(self, root: Path) -> None:
        self.recording = FileRecording()
        self._root = Path(os.path.realpath(root))
        self._numbers = count(1)
        self._inodes: dict[tuple[int, int], int] = {}
        self._files: dict[int, str | int | None] = {}
        self._real: Any = os
        self._look()

    def _look(self) -> None:
        """Take in what is there."""
        for folder, folders, names in os.walk(self._root):
            for name in folders:
                self.recording.folders.add(Path(folder, name).relative_to(self._root).as_posix())
            for name in names:
                file = Path(folder, name)
                status = file.stat()
                inode = self._inodes.setdefault((status.st_dev, status.st_ino), next(self._numbers))
                self.recording.names[file.relative_to(self._root).as_posix()] = inode
                self.recording.contents[inode] = file.read_bytes()

    def double(self, real: Any) -> SimpleNamespace:
        """`os`, with the calls that change files replaced by ones that note what they did."""
        self._real = real
        double = SimpleNamespace(**vars(real))
        for name in (
            "open", "close", "write", "pwrite", "ftruncate", "posix_fallocate", "mkdir", "replace", "link",
            "unlink",
        ):  # fmt: skip
            setattr(double, name, getattr(self, name))
        double.rename, double.fsync, double.fdatasync = self.replace, self.sync, self.sync
        return double

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        known = os.path.lexists(path)
        fd: int = self._real.open(path, flags, mode)
        where = self._path(path)
        if where is None:
            return fd
        status = os.fstat(fd)
        key = (status.st_dev, status.st_ino)
        if stat.S_ISREG(status.st_mode) and not known:
            # The system gives numbers of removed files to new ones.
            self._inodes[key] = next(self._numbers)
            self._note(CreateFile(where, self._inodes[key]))
        elif flags & os.O_TRUNC and key in self._inodes:
            self._note(Truncate(self._inodes[key], 0))
        self._files[fd] = where if stat.S_ISDIR(status.st_mode) else self._inodes.get(key)
        return fd

    def close(self, fd: int) -> None:
        self._files.pop(fd, None)
        self._real.close(fd)

    def write(self, fd: int, data: Buffer) -> int:
        written: int = self._real.write(fd, data)
        self._wrote(fd, os.lseek(fd, 0, os.SEEK_CUR) - written, data, written)
        return written

    def pwrite(self, fd: int, data: Buffer, offset: int) -> int:
        written: int = self._real.pwrite(fd, data, offset)
        self._wrote(fd, offset, data, written)
        return written

    def _wrote(self, fd: int, offset: int, data: Buffer, written: int) -> None:
        inode = self._files.get(fd)
        if isinstance(inode, int):
            self._note(Write(inode, offset, bytes(data)[:written]))

    def ftruncate(self, fd: int, length: int) -> None:
        self._real.ftruncate(fd, length)
        inode = self._files.get(fd)
        if isinstance(inode, int):
            self._note(Truncate(inode, length))

    def posix_fallocate(self, fd: int, offset: int, length: int) -> None:
        self._real.posix_fallocate(fd, offset, length)
        inode = self._files.get(fd)
        if isinstance(inode, int):
            self._note(Allocate(inode, offset + length))

    def sync(self, fd: int) -> None:
        synced = self._files.get(fd)
        if isinstance(synced, str):
            self._note(SyncFolder(synced))
        elif synced is not None:
            self._note(SyncFile(synced))

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        self._real.mkdir(path, mode)
        where = self._path(path)
        if where is not None:
            self._note(MakeFolder(where))

    def replace(self, source: Path, target: Path) -> None:
        self._real.replace(source, target)
        before, after = self._path(source), self._path(target)
        if before is not None and after is not None:
            self._note(Rename(before, after))

    def link(self, source: Path, target: Path) -> None:
        self._real.link(source, target)
        before, after = self._path(source), self._path(target)
        if before is not None and after is not None:
            self._note(Link(before, after))

    def unlink(self, path: Path) -> None:
        self._real.unlink(path)
        where = self._path(path)
        if where is not None:
            self._note(Unlink(where))

    def _path(self, path: Path) -> str | None:
        """The path below the root, or None if it is elsewhere."""
        full = Path(os.path.realpath(path.parent), path.name)
        return full.relative_to(self._root).as_posix() if full.is_relative_to(self._root) else None

    def _note(self, operation: Operation) -> None:
        self.recording.operations.append(operation)
