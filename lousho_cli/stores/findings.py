"""What a check of stored data finds, and what a repair of it did."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ..execution.messages import JsonObject

Severity = Literal["error", "warning", "notice"]
Outcome = Literal["repaired", "planned", "unneeded", "skipped", "failed"]
Progress = Callable[[int, int], None]
"""Called with how many sessions are checked, and how many there are."""

SEVERITIES: Mapping[str, Severity] = {
    "journal-damaged": "error",
    "journal-emptied": "error",
    "wrong-session": "error",
    "newer-version": "error",
    "not-a-file": "error",
    "unreadable": "error",
    "pairs-broken": "error",
    "approval-damaged": "error",
    "older-layout-damaged": "error",
    "database-damaged": "error",
    "value-damaged": "error",
    "history-ahead": "warning",
    "history-without-journal": "warning",
    "permissions": "warning",
    "torn-end": "notice",
    "journal-unused": "notice",
    "history-missing": "notice",
    "history-behind": "notice",
    "history-damaged": "notice",
    "history-wrong-session": "notice",
    "history-newer": "notice",
    "older-layout": "notice",
    "request-damaged": "notice",
    "request-orphan": "notice",
    "decision-orphan": "notice",
    "temporary-file": "notice",
    "kept-aside": "notice",
}
"""Every code of a problem. An error needs a human or a repair; a warning should be looked at; a notice is
harmless."""


@dataclass(frozen=True, slots=True)
class Mended:
    """What a repair did, or would do.

    Attributes:
        outcome: `unneeded` where nothing was wrong (any more); nothing was changed then.
        message: what was done, would be done, or why not.
        path: what it was about.
        aside: where the damaged original is kept, or None.
        kept, lost: what the repaired session holds and what it lacks; shapes as in `Salvage`.
    """

    outcome: Outcome
    message: str
    path: str
    session_id: str | None = None
    agent: str | None = None
    aside: str | None = None
    kept: JsonObject | None = None
    lost: JsonObject | None = None

    def to_json(self) -> JsonObject:
        data: JsonObject = {"outcome": self.outcome, "path": self.path, "message": self.message}
        optional = {
            "sessionId": self.session_id, "agent": self.agent, "aside": self.aside,
            "kept": self.kept, "lost": self.lost,
        }  # fmt: skip
        return data | {key: value for key, value in optional.items() if value is not None}


class Remedy(Protocol):
    """How one problem is repaired. It looks again before it changes anything."""

    def apply(self, *, dry_run: bool) -> Mended:
        """Repair it, or say what would be done.

        Raises:
            SessionBusyError: its session is being run.
            StorageError: it cannot be written; what was there still is.
        """
        ...


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong, or worth knowing, about stored data.

    Attributes:
        code: one of `SEVERITIES`.
        path: the file, or the key of a key-value store.
        fix: what to do about it.
        remedy: how `--repair` mends it; None where a human has to.
    """

    code: str
    path: str
    message: str
    fix: str
    session_id: str | None = None
    agent: str | None = None
    remedy: Remedy | None = field(default=None, repr=False)

    @property
    def severity(self) -> Severity:
        return SEVERITIES[self.code]

    def to_json(self) -> JsonObject:
        data: JsonObject = {"code": self.code, "severity": self.severity, "path": self.path}
        if self.session_id is not None:
            data["sessionId"] = self.session_id
        if self.agent is not None:
            data["agent"] = self.agent
        return {**data, "message": self.message, "fix": self.fix}


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What the check of one session found.

    Attributes:
        exists: whether there is a session, and not just something left of one.
        waits_for: the id of the approval it waits for, or None.
        readable: whether it could be read to its end.
        running: whether a live process holds it.
    """

    session_id: str
    agent: str
    problems: tuple[Problem, ...] = ()
    exists: bool = True
    waits_for: str | None = None
    readable: bool = True
    running: bool = False


@dataclass(frozen=True, slots=True)
class StoreReport:
    """What the check of one place found: its sessions, and what belongs to none of them."""

    sessions: tuple[SessionReport, ...] = ()
    problems: tuple[Problem, ...] = ()


def repair_command(session_id: str | None = None) -> str:
    """The command line that repairs a session, or everything."""
    words = ["lousho", "doctor", "--repair"]
    if session_id is not None:
        words += ["--", session_id] if session_id.startswith("-") else [session_id]
    return shlex.join(words)
