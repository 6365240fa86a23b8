"""What a disk holds after a power cut, by the usual rules of file systems.

- Content that was not synced may be there, or not, or in part; a file may have its new size, with zeros or
  with what the blocks held before in place of the data. Writes to one file reach the disk in any order.
- A name (made, renamed, linked, removed) is as it was when its folder was last synced, or as at any moment
  since. Names reach the disk in any order, and independently of the content of what they name.
- What was synced stays.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, combinations
from pathlib import Path
from typing import Literal

from .file_operations import (
    Allocate,
    Change,
    CreateFile,
    FileRecording,
    Link,
    MakeFolder,
    Mark,
    Operation,
    Rename,
    SyncFile,
    SyncFolder,
    Truncate,
    Unlink,
    Write,
)

SECTOR = 512
_SMALL = 4096
_STALE = b"7"
FOLDER = -1
"""What a name says that is a folder's."""

Torn = Literal["bytes", "sectors"]


@dataclass(frozen=True)
class DiskState:
    """What is on the disk after a power cut.

    Attributes:
        cut: how many operations of the recording had been made.
        known: what was marked by then.
        folders: their paths.
        files: the contents, by path.
    """

    cut: int
    known: tuple[object, ...]
    folders: tuple[str, ...]
    files: dict[str, bytes]

    def write_to(self, root: Path) -> None:
        """Make the state real, in a folder that is empty or not there yet."""
        root.mkdir(0o700, parents=True, exist_ok=True)
        for folder in self.folders:
            (root / folder).mkdir(0o700)
        for path, content in self.files.items():
            fd = os.open(root / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(content)

    def key(self) -> bytes:
        """The same for states with the same files."""
        digest = hashlib.blake2b(repr(self.folders).encode(), digest_size=16)
        for path in sorted(self.files):
            digest.update(b"%s\0%d\0" % (path.encode(), len(self.files[path])))
            digest.update(self.files[path])
        return digest.digest()


@dataclass
class Name:
    """What a path names: at its folder's last sync, and since."""

    durable: int | None
    since: list[int | None] = field(default_factory=list)
    changed_at: int = 0

    @property
    def now(self) -> int | None:
        return self.since[-1] if self.since else self.durable

    def forms(self) -> list[int | None]:
        """What it may name after a power cut."""
        return list(dict.fromkeys([self.durable, *self.since]))


@dataclass
class Content:
    """A file's bytes: at its last sync, and what was done to them since."""

    durable: bytes = b""
    since: list[Change] = field(default_factory=list)
    changed_at: int = 0

    def now(self) -> bytes:
        return applied(self.durable, self.since)

    def forms(self, torn: Torn) -> Iterator[bytes]:
        """What it may be after a power cut, each write torn as finely as asked for."""
        for chosen in subsets(self.since):
            yield applied(self.durable, chosen)
            for position, change in enumerate(chosen):
                if isinstance(change, Write):
                    before = applied(self.durable, chosen[:position])
                    for partial in torn_writes(before, change, torn):
                        yield applied(partial, chosen[position + 1 :])


class Disk:
    """A disk, and what is only on its way to it."""

    def __init__(self, recording: FileRecording) -> None:
        self.names = {path: Name(FOLDER) for path in recording.folders}
        self.names.update({path: Name(inode) for path, inode in recording.names.items()})
        self.contents = {inode: Content(data) for inode, data in recording.contents.items()}
        self.done = 0

    def apply(self, operation: Operation) -> None:
        """One more operation, of which nothing needs to have reached the disk."""
        self.done += not isinstance(operation, Mark)
        match operation:
            case CreateFile(path, inode):
                self.contents[inode] = Content()
                self._name(path, inode)
            case MakeFolder(path):
                self._name(path, FOLDER)
            case Write() | Allocate() | Truncate():
                content = self.contents[operation.inode]
                content.since.append(operation)
                content.changed_at = self.done
            case SyncFile(inode):
                self.contents[inode] = Content(self.contents[inode].now())
            case SyncFolder(path):
                for each, name in list(self.names.items()):
                    if parent_of(each) == path:
                        self.names[each] = Name(name.now)
            case Rename(path, target):
                self._name(target, self.names[path].now)
                self._name(path, None)
            case Link(path, target):
                self._name(target, self.names[path].now)
            case Unlink(path):
                self._name(path, None)

    def _name(self, path: str, what: int | None) -> None:
        name = self.names.setdefault(path, Name(None))
        name.since.append(what)
        name.changed_at = self.done


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "."


def applied(content: bytes, changes: Iterable[Change]) -> bytes:
    """A file's content after these changes."""
    for change in changes:
        match change:
            case Write(_, offset, data):
                head = content[:offset].ljust(offset, b"\0")
                content = head + data + content[offset + len(data) :]
            case Allocate(_, size):
                content = content.ljust(size, b"\0")
            case Truncate(_, size):
                content = content[:size].ljust(size, b"\0")
    return content


def subsets(changes: list[Change]) -> Iterator[list[Change]]:
    """Which of the changes reached the disk: any; of many, the first ones, all but one, or one alone."""
    if len(changes) <= 4:
        sizes = range(len(changes) + 1)
        chosen = chain.from_iterable(combinations(range(len(changes)), size) for size in sizes)
        yield from ([changes[n] for n in each] for each in chosen)
        return
    for n in range(len(changes)):
        yield changes[:n]
        yield changes[:n] + changes[n + 1 :]
        yield [changes[n]]
    yield changes


def torn_writes(content: bytes, write: Write, torn: Torn) -> Iterator[bytes]:
    """What a write leaves of which only a part reached the disk."""
    end = write.offset + len(write.data)
    grown = content.ljust(end, b"\0")
    for reached in cuts(write, torn):
        part = Write(write.inode, write.offset, write.data[:reached])
        yield applied(content, [part])
        if end > len(content):
            yield applied(grown, [part])
    for start, stop in lost_sectors(write):
        whole = applied(content, [write])
        if grown[start:stop] == whole[start:stop]:
            # Blocks that hold these very bytes stay the file's own.
            continue
        for filler in (grown[start:stop], _STALE * (stop - start)):
            yield whole[:start] + filler + whole[stop:]


def cuts(write: Write, torn: Torn) -> list[int]:
    """After how many bytes of a write the disk may have stopped."""
    size = len(write.data)
    first = -write.offset % SECTOR
    sectors = range(first, size, SECTOR)
    if torn == "bytes" and size <= _SMALL:
        return list(range(size))
    if torn == "bytes":
        near = (edge + delta for edge in sectors for delta in (-1, 0, 1))
        return sorted({0, size - 1, *(each for each in near if 0 <= each < size)})
    return sorted({0, size - 1, *sectors})


def lost_sectors(write: Write) -> Iterator[tuple[int, int]]:
    """From where to where a write may have left out a whole sector, of which later ones are there."""
    end = write.offset + len(write.data)
    for start in range(write.offset - write.offset % SECTOR, end, SECTOR):
        yield max(start, write.offset), min(start + SECTOR, end)
