"""What a program did to the files below one folder, in order: the input of the disk model.

Paths are relative to that folder, with `/` between names. A file is known by a number, its inode, as it may
bear several names or none.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CreateFile:
    """A name for a new, empty file."""

    path: str
    inode: int


@dataclass(frozen=True, slots=True)
class MakeFolder:
    """A new folder."""

    path: str


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes into a file, which may grow."""

    inode: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Allocate:
    """Zeros up to `size` bytes, where the file is shorter."""

    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class Truncate:
    """The file ends after `size` bytes."""

    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class SyncFile:
    """The file's data and size are on the disk; not its names."""

    inode: int


@dataclass(frozen=True, slots=True)
class SyncFolder:
    """The folder's names are on the disk; not what they name."""

    path: str


@dataclass(frozen=True, slots=True)
class Rename:
    """A file bears another name, which another file may have lost by that."""

    path: str
    target: str


@dataclass(frozen=True, slots=True)
class Link:
    """A file bears one more name."""

    path: str
    target: str


@dataclass(frozen=True, slots=True)
class Unlink:
    """A name is gone."""

    path: str


@dataclass(frozen=True, slots=True)
class Mark:
    """No file operation: what the program's user knew, or had done, by then."""

    what: object


Change = Write | Allocate | Truncate
"""What changes a file's content."""

Operation = (
    CreateFile | MakeFolder | Change | SyncFile | SyncFolder | Rename | Link | Unlink | Mark
)  # fmt: skip


@dataclass
class FileRecording:
    """The operations of a program, and what was there before it.

    Attributes:
        folders: the folders that were there, by path; durable.
        names: the files that were there: inode by path; durable.
        contents: their contents, by inode.
        operations: what was done, in order.
    """

    folders: set[str] = field(default_factory=set)
    names: dict[str, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)

    def mark(self, what: object) -> None:
        """Note what holds from here on: a save returned, a tool acted."""
        self.operations.append(Mark(what))
