"""The transcript as a persistent list: many versions share one list, each knows its own length.

Appending to the newest version costs the same at any length; an older version that is appended to copies
its prefix first. Versions never change, so they can be handed out without copying.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .messages import MessageData


class Log:
    """One version of a transcript, system message aside."""

    __slots__ = ("_call_ids", "_items", "_length")

    def __init__(self, messages: Iterable[MessageData] = ()) -> None:
        self._items: list[MessageData] = list(messages)
        self._length = len(self._items)
        self._call_ids: dict[str, int] = {}
        self._register(0)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> MessageData:
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self._items[index]

    def __iter__(self) -> Iterator[MessageData]:
        return self.slice(0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Log):
            return NotImplemented
        if self._length != other._length:
            return False
        return self._items is other._items or all(a is b or a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self._length} messages>"

    def slice(self, start: int, stop: int | None = None) -> Iterator[MessageData]:
        """The messages from `start` up to `stop`, without copying."""
        stop = self._length if stop is None else min(stop, self._length)
        items = self._items
        return (items[i] for i in range(start, stop))

    def extended(self, messages: Iterable[MessageData]) -> Log:
        """This transcript with `messages` at its end."""
        base = self if len(self._items) == self._length else Log(self)
        longer = Log.__new__(Log)
        longer._items = items = base._items
        longer._call_ids = base._call_ids
        items.extend(messages)
        longer._length = len(items)
        longer._register(self._length)
        return longer

    def cut(self, length: int) -> Log:
        """The first `length` messages."""
        shorter = Log.__new__(Log)
        shorter._items = self._items
        shorter._call_ids = self._call_ids
        shorter._length = min(length, self._length)
        return shorter

    def continues(self, earlier: Log) -> bool:
        """Whether this is `earlier` and more, as far as that can be seen without looking at the messages."""
        return self._items is earlier._items and self._length >= earlier._length

    def has_call(self, call_id: str) -> bool:
        """Whether a tool call of this transcript has that id."""
        return self._call_ids.get(call_id, self._length) < self._length

    def _register(self, start: int) -> None:
        items = self._items
        for index in range(start, self._length):
            calls = items[index].get("toolCalls")
            if calls:
                for call in calls:
                    self._call_ids.setdefault(call["id"], index)
