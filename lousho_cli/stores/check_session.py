"""Checking what the file store holds of one session: its journal, and its history file against it.

Nothing is locked and nothing written. The history file is read before the journal: of a session that is being
run it can only be behind then.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import ConfigurationError, StorageError
from ..execution.messages import calls_of
from ..execution.pairs import broken_pair
from ..execution.state import State
from .check_history import HistoryContent, contradicts, read_history_content
from .files import path_exists, read_file
from .findings import Problem, Remedy, SessionReport, repair_command
from .folder import JOURNAL_SUFFIX, AgentFolder
from .ids import decode_id, encode_id
from .journal import Header, parse_header
from .journal_fold import Journal, read_journal
from .lease import is_running
from .repair import RebuildHistory, RepairJournal
from .salvage import FOLD_ERRORS, Salvage, salvage

NEWER = "LOUSHO_CHECKPOINT_VERSION"
A_FOLDER = "a folder"
RESTORE = "restore it from a copy"
_HISTORY_FIX = "nothing to do: the next save rebuilds it"


def check_session(folder: AgentFolder, name: str, limit: int) -> SessionReport:
    """What there is to say about the files of one name.

    Args:
        name: the stem that the journal and the history file share.
        limit: how many saves of a session are kept.
    """
    return _SessionCheck(folder, name, limit).report()


@dataclass
class _SessionCheck:
    folder: AgentFolder
    name: str
    limit: int

    @property
    def path(self) -> Path:
        return self.folder.checkpoints / f"{self.name}{JOURNAL_SUFFIX}"

    @property
    def history_path(self) -> Path:
        return self.folder.path / "checkpoint-history" / f"{self.name}.json"

    @cached_property
    def history(self) -> HistoryContent:
        return read_history_content(self.history_path)

    def report(self) -> SessionReport:
        misplaced = not_a_file(self.history_path)
        history = self.history
        try:
            data = None if not_a_file(self.path) else read_file(self.path)
        except StorageError as error:
            problem = self.problem("unreadable", self.path, error.message, error.hint)
            return self._report([problem], exists=False, readable=False)
        if data is None:
            found = [] if misplaced is None else [self._misplaced(self.history_path, misplaced)]
            return self._report([*found, *self._without_journal(history)], exists=False, readable=False)
        self._header = parse_header(data.split(b"\n", 1)[0])
        found = [] if misplaced is None else [self._misplaced(self.history_path, misplaced)]
        return self._of_journal(data, found)

    _header: Header | None = None
    _read_again = False

    @cached_property
    def session_id(self) -> str | None:
        """The id that the files' name stands for; None where nothing tells."""
        decoded = decode_id(self.name)
        if decoded is not None:
            return decoded
        for inside in (self._header.session_id if self._header else None, self.history.session_id):
            if inside is not None and _encodes_to(inside, self.name):
                return inside
        return None

    @cached_property
    def running(self) -> bool:
        return self.session_id is not None and is_running(self.folder, self.session_id)

    def problem(self, code: str, path: Path, message: str, fix: str, remedy: Remedy | None = None) -> Problem:
        return Problem(code, str(path), message, fix, self.shown_id, self.folder.agent, remedy)

    @property
    def shown_id(self) -> str:
        return self.session_id or self.name

    def _report(
        self, problems: list[Problem], *, exists: bool, readable: bool = True, waits_for: str | None = None
    ) -> SessionReport:
        return SessionReport(
            self.shown_id, self.folder.agent, tuple(problems), exists, waits_for, readable, self.running
        )

    def _without_journal(self, history: HistoryContent) -> Iterator[Problem]:
        kind = not_a_file(self.path)
        if kind is not None:
            yield self._misplaced(self.path, kind)
        elif history.condition not in ("missing", "older-layout") and not self.running:
            saves = f" of {len(history.entries)} saves" if history.entries else ""
            yield self.problem(
                "history-without-journal", self.history_path,
                f"a history file{saves} whose journal is gone: a deletion that was cut short, or a lost file",
                f"if the session is missed, restore {self.path} from a copy; if not, remove the history file",
            )  # fmt: skip

    def _misplaced(self, path: Path, kind: str) -> Problem:
        replaceable = path == self.history_path and kind != A_FOLDER and path_exists(self.path)
        return self.problem(
            "not-a-file", path, f"{kind} is in the place of a file; it is not followed or read",
            "put the real file there, or take it away", self._rebuild() if replaceable else None,
        )  # fmt: skip

    def _of_journal(self, data: bytes, found: list[Problem]) -> SessionReport:
        session_id = self.session_id
        header = self._header
        if header is not None and header.session_id != session_id:
            found.append(self._wrong_session(header))
            return self._report(found, exists=False, readable=False)
        try:
            journal = read_journal(self.path, data, self.shown_id, self.limit)
        except StorageError as error:
            if self.running and not self._read_again:
                # Saves were written while it was read: a later one may be seen without an earlier one.
                self._read_again = True
                return self.report()
            code = "newer-version" if error.code == NEWER else "journal-damaged"
            problem = self._damaged(data) if code == "journal-damaged" else None
            found.append(problem or self.problem(code, self.path, error.message, error.hint))
            return self._report(found, exists=True, readable=False)
        except FOLD_ERRORS:
            found.append(self._damaged(data))
            return self._report(found, exists=True, readable=False)
        found += self._of_whole(journal, data)
        state = journal.state
        waits_for = str(state.approval["id"]) if state.exists and state.approval else None
        return self._report(found, exists=state.exists, waits_for=waits_for)

    def _wrong_session(self, header: Header) -> Problem:
        try:
            target = self.folder.journal(header.session_id)
            taken = path_exists(target)
        except ConfigurationError:
            target, taken = None, True
        fix = RESTORE
        if target is not None and not taken:
            fix = f"rename it back: {shlex.join(['mv', str(self.path), str(target)])}"
        return self.problem(
            "wrong-session", self.path,
            f"this file holds session {header.session_id!r}, and its name says {self.shown_id!r}", fix,
        )  # fmt: skip

    def _damaged(self, data: bytes) -> Problem:
        session_id = self.session_id
        if session_id is None:
            message = "damaged, and nothing tells which session it is of"
            return self.problem("journal-damaged", self.path, message, RESTORE)
        kept = salvage(data, session_id, self.folder.agent, self.history.known_of(session_id))
        if kept.header is None:
            message = f"damaged ({describe_loss(kept)}), and nothing of it can be kept"
            return self.problem("journal-damaged", self.path, message, RESTORE)
        return self.problem(
            "journal-damaged", self.path,
            f"damaged: {describe_loss(kept)}; the saves up to {kept.state.seq} can be kept",
            f"{RESTORE}, or keep what can be kept: {repair_command(session_id)}",
            RepairJournal(self.folder, session_id, self.limit),
        )  # fmt: skip

    def _of_whole(self, journal: Journal, data: bytes) -> Iterator[Problem]:
        listed = self.history.newest if self.history.session_id == self.session_id else 0
        if journal.header is None or not journal.state.seq:
            if listed:
                yield self.problem(
                    "journal-emptied", self.path,
                    f"the journal holds no save ({len(data)} bytes), and the history file lists saves up to"
                    f" {listed}: its content is lost",
                    f"{RESTORE}; if there is none: {shlex.join(['lousho', 'delete', self.shown_id])}",
                )  # fmt: skip
            elif not self.running:
                yield self.problem(
                    "journal-unused", self.path,
                    "a crash came before its first save was on disk: there is no session",
                    "nothing to do: a run of that session replaces it",
                )  # fmt: skip
            return
        if journal.end < len(data) and not self.running:
            rest = data[journal.end :]
            what = "are of a save that was cut short" if rest.strip(b"\0\n") else "were reserved for the next"
            yield self.problem(
                "torn-end", self.path, f"{len(rest)} bytes after save {journal.state.seq} {what}",
                "nothing to do: the next run drops them",
            )  # fmt: skip
        broken = broken_place(journal.state)
        if broken is not None:
            where = shlex.join(["lousho", "history", self.shown_id])
            yield self.problem(
                "pairs-broken", self.path, f"calls and results do not pair up: {broken}",
                f"fork it from a save before that ({where} lists them), or restore it from a copy",
            )  # fmt: skip
        yield from self._of_history(journal)

    def _of_history(self, journal: Journal) -> Iterator[Problem]:
        history, newest = self.history, journal.trail.newest
        if self.running or (history.condition == "missing" and not newest):
            return
        code, message = "", ""
        if history.condition == "missing":
            code, message = "history-missing", "there is no history file"
        elif history.condition == "newer":
            code, message = "history-newer", "written by a newer version of lousho"
        elif history.condition != "whole":
            if not_a_file(self.history_path) is None:
                code, message = "history-damaged", "it cannot be read"
        elif history.session_id != self.session_id:
            code, message = "history-wrong-session", f"it is of session {history.session_id!r}"
        elif history.newest > newest:
            message = (
                f"it lists saves up to {history.newest}, and the journal ends at {newest}: the journal lost"
                " its end, or an older copy of it was put back"
            )
            fix = f"restore {self.path} from a newer copy, if there is one; else the next save rebuilds this"
            yield self.problem("history-ahead", self.history_path, message, fix, self._rebuild())
        elif history.newest < newest and history.limit and self.limit:
            code = "history-behind"
            message = f"it ends at save {history.newest}, and the journal at {newest}"
        elif (seq := contradicts(history, journal.trail)) is not None:
            code, message = "history-damaged", f"it says of save {seq} what the journal does not"
        if code:
            yield self.problem(code, self.history_path, message, _HISTORY_FIX, self._rebuild())

    def _rebuild(self) -> RebuildHistory | None:
        return None if self.session_id is None else RebuildHistory(self.folder, self.session_id, self.limit)


def describe_loss(kept: Salvage) -> str:
    """What is wrong with a journal, in words."""
    parts = []
    if kept.garbage:
        parts.append(f"bytes {', '.join(f'{start}-{end}' for start, end in kept.garbage[:5])} are no record")
    if kept.header_rebuilt:
        parts.append("its first line is lost")
    if kept.reordered:
        parts.append("saves stand in the wrong order")
    if kept.missing:
        parts.append(f"lost: {numbers(kept.missing)}")
    if kept.dropped:
        parts.append(f"whole, but of no use without those before: {numbers(kept.dropped)}")
    return "; ".join(parts) or "saves stand there twice, or do not go on from one another"


def numbers(seqs: tuple[int, ...]) -> str:
    """Numbers of saves in words: `save 3`, `saves 3 to 5, 9`."""
    spans: list[list[int]] = []
    for seq in seqs:
        if spans and seq == spans[-1][1] + 1:
            spans[-1][1] = seq
        else:
            spans.append([seq, seq])
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in spans]
    return f"{'save' if len(seqs) == 1 else 'saves'} {', '.join(texts)}"


def broken_place(state: State) -> str | None:
    """The first place where calls and results do not pair up, in a session or in one inside it."""
    place = broken_pair(state.log)
    if place is None:
        unanswered = {call["id"] for call in state.open_calls()}
        # Marks and sub-agents' sessions stay until the whole turn is answered.
        asked = set() if state.turn is None else {call["id"] for call in calls_of(state.log[state.turn])}
        strange = [call for call in state.results if call not in unanswered]
        strange += [call for call in (*state.marks, *state.subs) if call not in asked]
        place = f"something is kept for {strange[0]!r}, which is no open call" if strange else None
    if place is not None:
        return place
    for call, sub in state.subs.items():
        place = broken_place(sub)
        if place is not None:
            return f"in the sub-agent of call {call!r}: {place}"
    return None


def not_a_file(path: Path) -> str | None:
    """What is in the place of a file, in words; None if it is one, or there is nothing."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        return None
    kinds = ((stat.S_ISLNK, "a link"), (stat.S_ISDIR, A_FOLDER), (stat.S_ISFIFO, "a pipe"))
    return next((text for test, text in kinds if test(mode)), "something that is no file")


def _encodes_to(session_id: str, name: str) -> bool:
    try:
        return encode_id(session_id) == name
    except ConfigurationError:
        return False
