"""What is known at a moment of a conversation, and what of it a disk must hold after a power cut."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Data = dict[str, Any]
OF_ONE_TURN = ("start", "result", "sub")


@dataclass(frozen=True)
class Saved:
    """The n-th save of a session, from 1, returned."""

    session: str
    number: int


@dataclass(frozen=True)
class Ran:
    """A tool acted for a call."""

    session: str
    call: str
    tool: str


@dataclass(frozen=True)
class Asked:
    """An agent's model was asked for its turn of that index."""

    session: str
    agent: str
    index: int


@dataclass(frozen=True)
class Decided:
    """Recording a decision returned."""

    session: str
    approval: str
    approved: bool


@dataclass(frozen=True)
class Returned:
    """The user was told that their n-th step is done."""

    step: int


Known = Sequence[object]


@dataclass(frozen=True)
class Save:
    """What a session is after a save.

    Attributes:
        checkpoint: its JSON; None after a deletion.
        history: the kept saves as `(seq, step, status, time)`, newest first.
    """

    kind: str
    checkpoint: Data | None
    history: tuple[tuple[int, int, str, str], ...]

    @cached_property
    def results(self) -> set[str]:
        return results_in(self.checkpoint)

    @cached_property
    def started(self) -> set[str]:
        return started_in(self.checkpoint)

    @cached_property
    def text(self) -> str:
        return json.dumps(self.checkpoint)


@dataclass
class Story:
    """All saves of a conversation, by session, in order.

    Attributes:
        limit: how many saves the store keeps of a session.
    """

    limit: int
    saves: dict[str, list[Save]] = field(default_factory=dict)

    def add(self, session: str, kind: str, checkpoint: Data | None, *, keep_history: bool = True) -> int:
        """Note a save, with the history that R3.1 asks for, and return its number."""
        saves = self.saves.setdefault(session, [])
        entries = list(saves[-1].history) if saves and keep_history else []
        if checkpoint is not None:
            engine = checkpoint["engine"]
            entry = (engine["seq"], checkpoint["stepIndex"], checkpoint["status"], engine["savedAt"])
            if entries and kind in OF_ONE_TURN and saves[-1].kind in OF_ONE_TURN:
                entries[0] = entry
            else:
                entries.insert(0, entry)
        saves.append(Save(kind, checkpoint, tuple(entries[: self.limit])))
        return len(saves)

    def promised(self, known: Known) -> dict[str, int]:
        """How many saves of each session had returned."""
        counts = dict.fromkeys(self.saves, 0)
        for fact in known:
            if isinstance(fact, Saved):
                counts[fact.session] = max(counts[fact.session], fact.number)
        return counts

    def up_to(self, loaded: dict[str, int]) -> Story:
        return Story(self.limit, {name: self.saves[name][:count] for name, count in loaded.items()})


def inside(value: Any) -> Iterator[Data]:
    """Every JSON object inside a value, itself included."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from inside(each)
    elif isinstance(value, list):
        for each in value:
            yield from inside(each)


def results_in(checkpoint: Data | None) -> set[str]:
    """The calls that have a result, recorded out of order or not, sub-agents' included."""
    return {each["toolCallId"] for each in inside(checkpoint) if each.get("role") == "tool"}


def started_in(checkpoint: Data | None) -> set[str]:
    """The calls that are marked as started."""
    marks = (each["marks"] for each in inside(checkpoint) if isinstance(each.get("marks"), dict))
    return {call for found in marks for call, mark in found.items() if mark.get("started")}


def turns_in(checkpoint: Data | None, agent: str, lead: str) -> int:
    """How many model turns of an agent there are."""
    if checkpoint is None:
        return 0
    where: Any = checkpoint["messages"] if agent == lead else checkpoint["engine"].get("subs", {})
    return sum(each.get("role") == "assistant" for each in inside(where))


def transcript(checkpoint: Data | None) -> list[Any] | None:
    """What a conversation is, whatever it took to get there."""
    if checkpoint is None:
        return None
    return [
        {key: message.get(key) for key in ("role", "content", "toolCallId", "isError", "toolCalls")}
        for message in checkpoint["messages"]
    ]
