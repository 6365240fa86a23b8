"""Checking everything the file store holds of one agent. Nothing is locked and nothing written.

Every byte of every journal is read each time: damage changes neither a file's size nor its time, so nothing
that was found before can stand in for looking. Many sessions are shared out to several processes.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from ..errors import StorageError
from .aside import original_name
from .check_approvals import check_approvals
from .check_session import NEWER, RESTORE, check_session
from .files import path_exists, real_folder, storage
from .findings import Problem, Progress, SessionReport, StoreReport, repair_command
from .folder import JOURNAL_SUFFIX, AgentFolder
from .ids import decode_id, encode_id
from .processes import shared_out
from .reader import load_journal
from .repair_files import RemoveTemporary, SetMode, is_stale, wrong_mode

STATE_FOLDERS = ("checkpoints", "checkpoint-history", "approvals", "locks")
SHARED_FROM = 3000
"""Sessions from which on starting processes pays."""

_CHUNK = 250
_MOST_PROCESSES = 8


def check_folder(
    folder: AgentFolder, limit: int, progress: Progress, only: Sequence[str] | None = None
) -> StoreReport:
    """What there is to say about an agent's stored data.

    Args:
        limit: how many saves of a session are kept.
        only: the ids of the sessions to check, or None for all, and for what belongs to no session.

    Raises:
        StorageError: a folder cannot be listed.
    """
    problems = [problem for name in STATE_FOLDERS if (problem := _no_folder(folder, name)) is not None]
    if problems:
        return StoreReport((), tuple(problems))
    listed = {name: _names(folder.path / name) for name in STATE_FOLDERS}
    legacy = set(folder.legacy_ids())
    stems = _stems(folder, listed, legacy)
    if only is not None:
        wanted = {encode_id(session_id) for session_id in only}
        stems, legacy = [stem for stem in stems if stem in wanted], legacy & set(only)
    sessions = [*_check_all(folder, stems, limit, progress), *_check_legacy(folder, legacy)]
    if only is None:
        known = {each.session_id: each for each in sessions}
        problems += check_approvals(folder, listed["approvals"], known)
    problems += _check_files(folder, listed, only)
    return StoreReport(tuple(sessions), tuple(problems))


def _no_folder(folder: AgentFolder, name: str) -> Problem | None:
    path = folder.path / name
    try:
        real_folder(folder.path)
        real_folder(path)
    except StorageError as error:
        return Problem("not-a-file", str(path), error.message, error.hint, None, folder.agent)
    return None


def _names(path: Path) -> list[str]:
    if not real_folder(path):
        return []
    with storage(path, "listed"):
        return sorted(os.listdir(path))


def _stems(folder: AgentFolder, listed: dict[str, list[str]], legacy: set[str]) -> list[str]:
    """The names that journals and history files have, those of older layouts aside."""
    journals = _with_suffix(listed["checkpoints"], JOURNAL_SUFFIX)
    older = set(_with_suffix(listed["checkpoints"], ".json")) | {encode_id(each) for each in legacy}
    histories = set(_with_suffix(listed["checkpoint-history"], ".json"))
    return sorted(set(journals) | histories - older)


def _with_suffix(names: Iterable[str], suffix: str) -> list[str]:
    return [name.removesuffix(suffix) for name in names if name.endswith(suffix) and name[0] != "."]


def _check_all(
    folder: AgentFolder, stems: Sequence[str], limit: int, progress: Progress
) -> list[SessionReport]:
    """The reports by name."""
    progress(0, len(stems))
    processes = min(os.cpu_count() or 1, _MOST_PROCESSES) if len(stems) >= SHARED_FROM else 1
    found: list[SessionReport] = []
    if processes > 1:
        chunks = [stems[start : start + _CHUNK] for start in range(0, len(stems), _CHUNK)]
        for reports in shared_out(partial(_check_chunk, folder, limit), chunks, processes):
            found += reports
            progress(len(found), len(stems))
        return sorted(found, key=lambda report: report.session_id)
    for stem in stems:
        found.append(check_session(folder, stem, limit))
        progress(len(found), len(stems))
    return found


def _check_chunk(folder: AgentFolder, limit: int, stems: Sequence[str]) -> list[SessionReport]:
    return [check_session(folder, stem, limit) for stem in stems]


def _check_legacy(folder: AgentFolder, legacy: Iterable[str]) -> Iterator[SessionReport]:
    for session_id in sorted(legacy):
        path = folder.legacy_checkpoint(session_id) or folder.checkpoints / f"{session_id}.json"
        try:
            state = load_journal(folder, session_id, 0).state
        except StorageError as error:
            code = "newer-version" if error.code == NEWER else "older-layout-damaged"
            problem = Problem(code, str(path), error.message, RESTORE, session_id, folder.agent)
            yield SessionReport(session_id, folder.agent, (problem,), readable=False)
            continue
        problem = Problem(
            "older-layout", str(path), "in the layout of the TypeScript SDK, which is read as it is",
            "nothing to do: its next save upgrades it", session_id, folder.agent,
        )  # fmt: skip
        waits_for = str(state.approval["id"]) if state.approval else None
        yield SessionReport(session_id, folder.agent, (problem,), state.exists, waits_for)


def _check_files(
    folder: AgentFolder, listed: dict[str, list[str]], only: Sequence[str] | None
) -> Iterator[Problem]:
    """What there is to say about files without reading them."""
    wanted = None if only is None else {encode_id(session_id) for session_id in only}
    for place, names in listed.items():
        path = folder.path / place
        if wanted is None:
            yield from _check_mode(folder, path, None)
        for name in names:
            stem = _stem_of(original_name(name) or name) if place != "approvals" else None
            if wanted is not None and stem not in wanted:
                continue
            session_id = None if stem is None else decode_id(stem) or stem
            yield from _check_mode(folder, path / name, session_id)
            yield from _check_leftover(folder, path / name, session_id)


def _stem_of(name: str) -> str | None:
    """The stem of a session's file; None for others."""
    for suffix in (JOURNAL_SUFFIX, ".json", ".lock"):
        if name.endswith(suffix) and name[0] != ".":
            return name.removesuffix(suffix)
    return None


def _check_mode(folder: AgentFolder, path: Path, session_id: str | None) -> Iterator[Problem]:
    wrong = wrong_mode(path)
    if wrong is None:
        return
    have, right = wrong
    who = "others than you may look into it" if have & 0o077 else "you cannot use it as lousho needs to"
    yield Problem(
        "permissions", str(path), f"its permissions are {have:04o}, not {right:04o}: {who}",
        f"chmod {right:o} {shlex.quote(str(path))}, or {repair_command(session_id)}",
        session_id, folder.agent, SetMode(path),
    )  # fmt: skip


def _check_leftover(folder: AgentFolder, path: Path, session_id: str | None) -> Iterator[Problem]:
    if path.name.startswith(".") and path.name.endswith(".tmp") and is_stale(path):
        yield Problem(
            "temporary-file", str(path), "a temporary file that a crash left",
            f"nothing to do: it is not read; {repair_command()} removes it",
            None, folder.agent, RemoveTemporary(path),
        )  # fmt: skip
    original = original_name(path.name)
    if original is not None and path_exists(path):
        yield Problem(
            "kept-aside", str(path), f"the damaged {original}, which a repair has kept",
            "remove it when you do not need it any more", session_id, folder.agent,
        )  # fmt: skip
