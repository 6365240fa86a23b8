"""Guarantees broken on purpose: what each would break in the store, and which check must see it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from lousho_cli.stores import (
    compaction,
    file,
    file_approvals,
    file_fork,
    file_session,
    files,
    journal,
    lease,
    prune_file,
    saves_reader,
    writer,
)
from lousho_cli.stores.files import sync_folder
from lousho_cli.stores.trail import Trail

Patch = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Mutation:
    """One guarantee less.

    Attributes:
        name: the guarantee that is broken.
        scenario: the conversation that shows it.
        patches: what breaks it.
        seen_by: the check that must fail, or either of two, whichever state comes first.
        slow: whether many states have to be looked at before one shows it.
    """

    name: str
    scenario: str
    patches: tuple[Patch, ...]
    seen_by: str
    slow: bool = False

    def made(self) -> AbstractContextManager[object]:
        stack = ExitStack()
        for patch in self.patches:
            stack.enter_context(patch())
        return stack


def _patch(target: Any, name: str, value: Any) -> Patch:
    return lambda: mock.patch.object(target, name, value)


def _nothing(*_: object, **__: object) -> None:
    pass


async def _history_first(session: Any, record: Any) -> Any:
    """`FileSession.save`, with the history file replaced before the journal is appended to."""
    append = session._writer.append
    lines: list[bytes] = []
    with mock.patch.object(session._writer, "append", lines.append):
        state = await _SAVE(session, record)
    session._history.flush()
    append(lines[0])
    return state


_SAVE = file_session.FileSession.save
_APPEND = writer.JournalWriter.append
_REPLACE = files.replace_file
_REPLACE_BY = files.replace_file_by
_WRITE_TEMPORARY = files.write_temporary
_ADD = Trail.add


def _late_decision(self: Any, line: bytes) -> None:
    """`JournalWriter.append`, with a decision written along with what came of it."""
    held = self.__dict__.setdefault("held", [])
    held.append(line)
    if b'"kind":"decision"' not in line:
        lines = b"".join(held)
        held.clear()
        _APPEND(self, lines)


def _replaced_at_once(path: Path, data: bytes, **_: object) -> None:
    _REPLACE(path, data, durable=False)


def _forked_at_once(path: Path, parts: Iterable[bytes | memoryview], **_: object) -> int:
    return _REPLACE_BY(path, parts, durable=False)


def _not_waiting(path: Path, data: bytes, durable: bool) -> Path:
    return _WRITE_TEMPORARY(path, data, durable=False)


def _overwriting(path: Path, data: bytes) -> bool:
    _REPLACE(path, data, durable=True)
    return True


def _never_joined(self: Trail, save: Any, state: Any) -> None:
    if save.kind != "delete":
        self.newest = save.seq
        self._kept.append((save, state))


def _unsealed(line: bytes) -> bool:
    return bytes(line[-2:]) == b'"}'


def _no_cut(fd: int, size: int) -> None:
    os.lseek(fd, 0, os.SEEK_END)


async def _no_tombstone(self: Any, session_id: str, *, keep_history: bool = False) -> None:
    if not keep_history:
        await _DELETE(self, session_id)


_DELETE = file.FileCheckpoints.delete


def _only_folder(*names: str) -> Callable[[Path], None]:
    """`sync_folder` that forgets the folders of these names."""

    def sync(folder: Path) -> None:
        if folder.name not in names:
            sync_folder(folder)

    return sync


def _folders_forgotten(*names: str) -> tuple[Patch, ...]:
    modules: Iterable[Any] = (files, writer, file, prune_file)
    return tuple(_patch(module, "sync_folder", _only_folder(*names)) for module in modules)


TOOL = "a run with a tool"
APPROVAL = "an approval between calls"

MUTATIONS = (
    Mutation("a save waits for the disk", TOOL, (_patch(writer, "data_sync", _nothing),), "saves"),
    Mutation(
        "a new journal waits for the disk",
        TOOL,
        (_patch(writer, "full_sync", _nothing),),
        "opens or saves",
        slow=True,
    ),
    Mutation(
        "the journal is appended to before the history file is replaced",
        TOOL,
        (_patch(file_session.FileSession, "save", _history_first),),
        "index",
    ),
    Mutation("the folder of a new journal is synced", TOOL, _folders_forgotten("checkpoints"), "saves"),
    Mutation("the folder of a new folder is synced", TOOL, _folders_forgotten("bot"), "saves"),
    Mutation(
        "the folder of a decision is synced",
        "two deciders",
        _folders_forgotten("approvals"),
        "decisions",
        slow=True,
    ),
    Mutation(
        "a decision's data is on the disk before its name",
        "two deciders",
        (_patch(files, "full_sync", _nothing),),
        "approvals",
    ),
    Mutation(
        "a decision is recorded before its call runs",
        APPROVAL,
        (_patch(writer.JournalWriter, "append", _late_decision),),
        "saves",
        slow=True,
    ),
    Mutation(
        "the first of two decisions counts",
        "two deciders",
        (_patch(file_approvals, "create_once", _overwriting),),
        "plays",
    ),
    Mutation(
        "what an approval file holds is whole",
        APPROVAL,
        (_patch(file_approvals, "replace_file", _replaced_at_once),),
        "approvals",
    ),
    Mutation(
        "a record counts only with its checksum",
        "a long text",
        (_patch(journal, "is_sealed", _unsealed),),
        "opens or saves",
        slow=True,
    ),
    Mutation(
        "a torn end is cut off before the next record",
        TOOL,
        (_patch(writer, "cut_file", _no_cut),),
        "goes on",
    ),
    Mutation(
        "the history file counts only with its checksum",
        "many saves",
        (_patch(saves_reader, "parse_history", json.loads),),
        "history shown",
        slow=True,
    ),
    Mutation(
        "the results of a turn share an entry of the history",
        "calls that may not be repeated",
        (_patch(Trail, "add", _never_joined),),
        "history",
    ),
    Mutation(
        "a fork waits for the disk",
        "forks, and the deletion of their parent",
        (_patch(file_fork, "replace_file_by", _forked_at_once),),
        "saves",
        slow=True,
    ),
    Mutation(
        "a deletion waits for the disk",
        "a deletion, and the name taken again",
        (_patch(prune_file, "sync_folder", _nothing),),
        "saves",
        slow=True,
    ),
    Mutation(
        "a compacted journal is on the disk before it replaces the other one",
        "a compacted journal, between runs and before an approval",
        (_patch(compaction, "write_temporary", _not_waiting),),
        "opens or saves",
        slow=True,
    ),
    Mutation(
        "a deletion that keeps the history leaves a tombstone",
        "a deletion that keeps the history",
        (_patch(file.FileCheckpoints, "delete", _no_tombstone),),
        "plays",
    ),
    Mutation(
        "a runner that lost its session is refused",
        "a runner that lost its session",
        (
            _patch(writer.JournalWriter, "_is_ours", lambda self: True),
            _patch(lease.Lease, "is_held", property(lambda self: True)),
        ),
        "plays",
    ),
)
