"""The kept saves of a session: which saves share an entry, and which a limit drops (R3.1, R3.21)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from ..execution.kept import KeptSaves
from ..execution.messages import JsonObject, calls_of
from ..execution.state import Record, State

_OF_ONE_TURN = ("start", "result", "sub")


@dataclass(frozen=True, slots=True)
class Save:
    """What is known of a kept save without its checkpoint.

    Attributes:
        seq, step, status, at, kind: of its record.
        messages: how many messages the transcript had, the system message included.
        end: where its record ends in the journal, in bytes; 0 in other stores.
        tools: the tools it is about: called, answered, or waiting for a decision.
        finish_reason, approval_id: as in the checkpoint.
        note: who decided what, for a decision.
    """

    seq: int
    step: int
    status: str
    at: str
    kind: str
    messages: int
    end: int = 0
    tools: tuple[str, ...] = ()
    finish_reason: str | None = None
    approval_id: str | None = None
    note: str | None = None

    def to_json(self) -> JsonObject:
        data: JsonObject = {
            "seq": self.seq, "step": self.step, "status": self.status, "savedAt": self.at,
            "event": self.kind, "messages": self.messages, "end": self.end,
        }  # fmt: skip
        if self.tools:
            data["tools"] = list(self.tools)
        if self.finish_reason is not None:
            data["finishReason"] = self.finish_reason
        if self.approval_id is not None:
            data["approvalId"] = self.approval_id
        if self.note is not None:
            data["note"] = self.note
        return data


def save_of(record: Record, state: State, end: int = 0) -> Save:
    approval = record.approval
    return Save(
        record.seq, record.step, record.status, record.at, record.kind, state.message_count, end,
        _tools(record), record.finish_reason, str(approval["id"]) if approval else None,
        _note(record),
    )  # fmt: skip


def _note(record: Record) -> str | None:
    if record.kind != "decision":
        return None
    for mark in (record.marks or {}).values():
        if mark.grant is not None:
            return f"approved by {mark.grant.by}"
    for message in (record.results or {}).values():
        approval = message.get("approval")
        if isinstance(approval, dict):
            verb = "result supplied" if approval.get("approved") else "rejected"
            return f"{verb} by {approval.get('by')}"
    return None


def _tools(record: Record) -> tuple[str, ...]:
    if record.approval:
        return (str(record.approval.get("toolName", "")),)
    if record.results:
        return tuple(str(message.get("toolName", "")) for message in record.results.values())
    if record.kind == "turn" and record.add:
        return tuple(call["function"]["name"] for call in calls_of(record.add[-1]))
    return ()


class Trail:
    """The newest saves, oldest first, each with its state.

    Args:
        limit: how many are kept.
        first: the seq of the session's own first save; earlier ones are its parent's.
    """

    def __init__(self, limit: int, first: int = 1) -> None:
        self.first = first
        self.newest = 0
        self._kept: deque[tuple[Save, State]] = deque(maxlen=limit)

    def add(self, save: Save, state: State) -> None:
        """Keep a save; results of one turn share the newest one's entry."""
        self.newest = save.seq
        if save.seq < self.first or save.kind == "delete":
            return
        if self._kept and save.kind in _OF_ONE_TURN and self._kept[-1][0].kind in _OF_ONE_TURN:
            self._kept.pop()
        self._kept.append((save, state))

    def __len__(self) -> int:
        return len(self._kept)

    def newest_first(self, limit: int | None = None) -> Iterator[tuple[Save, State]]:
        kept = reversed(self._kept)
        return kept if limit is None else (pair for pair, _ in zip(kept, range(limit), strict=False))

    def saves(self) -> Iterator[Save]:
        """Oldest first."""
        return (save for save, _ in self._kept)

    def kept_saves(self) -> KeptSaves:
        return KeptSaves(
            self.newest, tuple((save.seq, save.step) for save, _ in self.newest_first()), self.first
        )

    def at(self, seq: int) -> tuple[Save, State] | None:
        """The kept save with that seq, and its state."""
        return next((pair for pair in self._kept if pair[0].seq == seq), None)
