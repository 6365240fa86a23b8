"""Whether calls and results of a transcript pair up (R3.5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import ConfigurationError
from .messages import MessageData, calls_of


def broken_pair(messages: Iterable[MessageData]) -> str | None:
    """The first place where results do not directly follow their turn in call order, in words; None if there is none.

    A last turn whose calls have no results yet, or only the first of them, is whole.
    """  # noqa: E501
    expected: list[str] = []
    position = 0
    for position, message in enumerate(messages, 1):
        if message["role"] == "tool":
            call = message.get("toolCallId")
            if not expected:
                return f"message {position}: a result for {call!r}, but no call waits for one"
            if call != expected[0]:
                return f"message {position}: a result for {call!r}, expected one for {expected[0]!r}"
            expected.pop(0)
            continue
        if expected:
            return f"message {position}: call {expected[0]!r} has no result before it"
        if message["role"] == "assistant":
            expected = [call["id"] for call in calls_of(message)]
            if len(set(expected)) != len(expected):
                return f"message {position}: two calls of one turn share an id"
    return None


def check_pairs(messages: Iterable[MessageData], what: str) -> None:
    """Raise a ConfigurationError naming the place if calls and results of `messages` do not pair up."""
    place = broken_pair(messages)
    if place is not None:
        raise ConfigurationError(
            f"{what} breaks the pairing of calls and results: {place}",
            hint="each call needs exactly one result, in call order, directly after its turn",
        )


def open_turn(messages: Sequence[MessageData]) -> bool:
    """Whether whole messages end in a turn that lacks results."""
    answered = 0
    for message in reversed(messages):
        if message["role"] == "tool":
            answered += 1
        else:
            return len(calls_of(message)) > answered
    return False
