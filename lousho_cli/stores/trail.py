"""The kept saves of a session: which saves share an entry, and which a limit drops (R3.1, R3.21)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

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
        failed: those of them whose result is an error.
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
    failed: tuple[str, ...] = ()

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
        if self.failed:
            data["failed"] = list(self.failed)
        return data


def save_of(record: Record, state: State, end: int = 0) -> Save:
    """What a record, and the state after it, say of the save."""
    return Save(
        seq=record.seq,
        step=record.step,
        status=record.status,
        at=record.at,
        kind=record.kind,
        messages=state.message_count,
        end=end,
        tools=_tools(record, state),
        finish_reason=record.finish_reason,
        approval_id=str(record.approval["id"]) if record.approval else None,
        note=_note(record),
        failed=_failed(record),
    )


def _note(record: Record) -> str | None:
    if record.kind != "decision":
        return None
    for sub in (record.subs or {}).values():
        return _note(sub)
    for mark in (record.marks or {}).values():
        if mark.grant is not None:
            return f"approved by {mark.grant.by}"
    for message in (record.results or {}).values():
        approval = message.get("approval")
        if isinstance(approval, dict):
            verb = "result supplied" if approval.get("approved") else "rejected"
            return f"{verb} by {approval.get('by')}"
    return None


def _tools(record: Record, state: State) -> tuple[str, ...]:
    if record.approval:
        return (str(record.approval.get("toolName", "")),)
    if record.results:
        return tuple(str(message.get("toolName", "")) for message in record.results.values())
    if record.kind == "turn" and record.add:
        return tuple(call["function"]["name"] for call in calls_of(record.add[-1]))
    if record.marks:
        return tuple(c["function"]["name"] for c in state.open_calls() if c["id"] in record.marks)
    return ()


def _failed(record: Record) -> tuple[str, ...]:
    results = (record.results or {}).values()
    return tuple(str(message.get("toolName", "")) for message in results if message.get("isError"))


def _joined(absorbed: Save, save: Save) -> Save:
    """A save in the place of an earlier one of its turn: it tells of both."""
    if absorbed.kind != "result":
        return save
    kind = save.kind if save.kind == "result" else absorbed.kind
    tools = (*absorbed.tools, *(save.tools if save.kind == "result" else ()))
    return replace(save, kind=kind, tools=tools, failed=(*absorbed.failed, *save.failed))


def _share_entry(earlier: str, later: str) -> bool:
    """Whether two saves that follow each other are told as one."""
    return later in _OF_ONE_TURN and earlier in _OF_ONE_TURN


class Trail:
    """The newest saves, oldest first, each with its state.

    Args:
        limit: how many are kept.
        first: the seq of the session's own first save; earlier ones are its parent's.
    """

    def __init__(self, limit: int, first: int = 1) -> None:
        self.first = first
        self.newest = 0
        self.last_step = -1
        self._kept: deque[tuple[Save, State]] = deque(maxlen=limit)

    def add(self, save: Save, state: State) -> None:
        """Keep a save; results of one turn share the newest one's entry."""
        if save.kind == "delete":
            return
        self.newest = save.seq
        if save.seq < self.first:
            return
        self.last_step = max(self.last_step, save.step)
        if self._kept and _share_entry(self._kept[-1][0].kind, save.kind):
            save = _joined(self._kept.pop()[0], save)
        self._kept.append((save, state))

    def copy(self) -> Trail:
        """A trail that goes on by itself."""
        other = Trail(0, self.first)
        other.newest, other.last_step, other._kept = self.newest, self.last_step, self._kept.copy()
        return other

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
            self.newest,
            tuple((save.seq, save.step) for save, _ in self.newest_first()),
            self.first,
            self.last_step,
        )

    def at(self, seq: int) -> tuple[Save, State] | None:
        """The kept save with that seq, and its state."""
        return next((pair for pair in self._kept if pair[0].seq == seq), None)


@dataclass(frozen=True, slots=True)
class Dropped:
    """The newest save before the kept ones.

    Attributes:
        state: the session as of that save.
        end: where its record ends in the journal, in bytes; 0 in other stores.
    """

    state: State
    end: int


class Recent:
    """The newest saves as they come in: only for those that stay when somebody asks is a trail made.

    Args:
        trail: the saves before them.
        limit: how many are kept.

    Attributes:
        dropped: the newest save before those that came in and stay; None if there is none.
    """

    dropped: Dropped | None = None

    def __init__(self, trail: Trail, limit: int) -> None:
        self._trail = trail
        self._groups: deque[list[tuple[Record, State, int]]] = deque(maxlen=limit)

    def add(self, record: Record, state: State, end: int = 0) -> None:
        """Go on by one save; `end` is where its record ends, in bytes."""
        trail, groups = self._trail, self._groups
        if record.kind == "delete":
            return
        trail.newest = record.seq
        if record.seq < trail.first:
            self.dropped = Dropped(state, end)
            return
        if record.kind == "base":
            self.dropped = Dropped(state, end)
            trail.last_step = -1 if record.last_step is None else record.last_step
            return
        trail.last_step = max(trail.last_step, record.step)
        if groups and _share_entry(groups[-1][-1][0].kind, record.kind):
            groups[-1].append((record, state, end))
            return
        if len(groups) == groups.maxlen:
            _, oldest, place = groups[0][-1] if groups else (record, state, end)
            self.dropped = Dropped(oldest, place)
        groups.append([(record, state, end)])

    def trail(self) -> Trail:
        """All saves so far."""
        for group in self._groups:
            for record, state, end in group:
                self._trail.add(save_of(record, state, end), state)
        self._groups.clear()
        return self._trail
