"""Every state in which a power cut may leave the disk, at every point of a recording.

Things (a name, a file's content) that are not synced come in forms. They are combined so: all in their oldest
or newest form, in every combination; and each in each of its forms, the others all at their oldest and all
at their newest. A write is torn at every byte at the point right after it, and at its sectors later on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

from .disk import FOLDER, Content, Disk, DiskState, Name, Torn, parent_of
from .file_operations import FileRecording, Mark

_PRODUCT = 8
_YOUNG = 2


def disk_states(recording: FileRecording, torn: Torn = "bytes") -> Iterator[DiskState]:
    """Each disk state that a power cut during the recording may leave, once.

    A state that several cuts may leave comes with the last of them: what was known then must hold.

    Args:
        torn: how finely a write is torn: at every byte, or at sector boundaries only.
    """
    seen: set[bytes] = set()
    operations = recording.operations
    for cut in range(len(operations), -1, -1):
        if cut < len(operations) and isinstance(operations[cut], Mark):
            # The disk is as it is after the mark, when more must hold.
            continue
        for state in states_at(recording, cut, torn):
            key = state.key()
            if key not in seen:
                seen.add(key)
                yield state


def states_at(recording: FileRecording, cut: int, torn: Torn = "bytes") -> Iterator[DiskState]:
    """The disk states that a power cut after the first `cut` operations may leave, some repeatedly."""
    disk = Disk(recording)
    for operation in recording.operations[:cut]:
        disk.apply(operation)
    known = tuple(each.what for each in recording.operations[:cut] if isinstance(each, Mark))
    paths = sorted(disk.names, key=lambda each: each.count("/"))
    for choice in _Choices(disk, torn).all():
        yield _state(disk, paths, cut, known, choice)


@dataclass(frozen=True)
class _Choice:
    """What some names name and some files hold, in place of what is newest."""

    names: Mapping[str, int | None]
    contents: Mapping[int, bytes]

    def but(self, other: _Choice) -> _Choice:
        return _Choice({**self.names, **other.names}, {**self.contents, **other.contents})


class _Choices:
    """The choices between the forms of what is not synced."""

    def __init__(self, disk: Disk, torn: Torn) -> None:
        self._disk = disk
        self._torn: Torn = torn
        self._names = {path: name for path, name in disk.names.items() if name.since}
        self._contents = {inode: content for inode, content in disk.contents.items() if content.since}
        self._oldest = _Choice(
            {path: name.durable for path, name in self._names.items()},
            {inode: content.durable for inode, content in self._contents.items()},
        )
        self._newest = _Choice({}, {})

    def all(self) -> Iterator[_Choice]:
        yield from self._combined()
        for path, name in self._names.items():
            yield from self._names_of(path, name)
        for inode, content in self._contents.items():
            yield from self._contents_of(inode, content)

    def _combined(self) -> Iterator[_Choice]:
        """Oldest or newest of each: in all combinations, or of very many things, up to two that differ."""
        moving = [path for path, name in self._names.items() if name.now != name.durable]
        ends = {each for name in self._disk.names.values() for each in (name.durable, name.now)}
        old: list[_Choice] = [_Choice({path: self._names[path].durable}, {}) for path in moving]
        old += [_Choice({}, {i: each.durable}) for i, each in self._contents.items() if i in ends]
        sizes = (
            range(len(old) + 1) if len(old) <= _PRODUCT else (0, 1, 2, len(old) - 2, len(old) - 1, len(old))
        )
        for size in sizes:
            for chosen in combinations(old, size):
                yield reduce(_Choice.but, chosen, self._newest)

    def _names_of(self, path: str, name: Name) -> Iterator[_Choice]:
        come_and_gone = name.durable is None and name.now is None
        if come_and_gone and name.changed_at < self._disk.done - _YOUNG:
            return
        for form in name.forms():
            chosen = _Choice({path: form}, {})
            yield self._newest.but(chosen)
            yield self._oldest.but(chosen)

    def _contents_of(self, inode: int, content: Content) -> Iterator[_Choice]:
        young = content.changed_at == self._disk.done
        named = {path: inode for path, name in self._disk.names.items() if inode in name.forms()}
        if not young and all(name.now != inode for name in self._disk.names.values()):
            return
        for form in content.forms(self._torn if young else "sectors"):
            chosen = _Choice({}, {inode: form})
            yield self._newest.but(chosen)
            yield self._oldest.but(_Choice(named, {inode: form}))


def _state(
    disk: Disk, paths: Sequence[str], cut: int, known: tuple[object, ...], choice: _Choice
) -> DiskState:
    folders: list[str] = []
    files: dict[str, bytes] = {}
    there = {"."}
    for path in paths:
        name = disk.names[path]
        what = choice.names.get(path, name.now)
        if what is None or parent_of(path) not in there:
            continue
        if what == FOLDER:
            there.add(path)
            folders.append(path)
        else:
            found = choice.contents.get(what)
            files[path] = disk.contents[what].now() if found is None else found
    return DiskState(cut, known, tuple(folders), files)
