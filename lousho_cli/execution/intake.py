"""Taking a run's input in: what of it is new, and what becomes of it (R3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import ConfigurationError, NothingToDoError
from .budget import Budget
from .conversation import Message, plain
from .messages import JsonObject, MessageData, calls_of, text_of
from .pairs import check_pairs, open_turn
from .state import Record, RunStart, State
from .values import clean

Input = str | Message | Mapping[str, Any] | Sequence[Message | Mapping[str, Any]] | None


def normalise(given: Input) -> list[MessageData]:
    """The input as plain messages. An empty text or list is no input.

    Raises:
        ConfigurationError: it is no message.
    """
    if given is None or given == "":
        return []
    if isinstance(given, str):
        return [{"role": "user", "content": clean(given)}]
    items: Iterable[Any] = [given] if isinstance(given, Message | Mapping) else given
    try:
        return [clean(plain(item)) for item in items]
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            f"the input is not a message: {error}",
            hint='give a text, or mappings like {"role": "user", "content": "..."}',
        ) from error


def start_run(
    state: State, given: Sequence[MessageData], *, max_steps: int, budget: Budget, agent: str,
    system: str | None, fingerprint: JsonObject, run_config: JsonObject, business_state: Any,
) -> Record:  # fmt: skip
    """The save that opens a new run of a finished (or new) session.

    Raises:
        NothingToDoError: there is nothing to send.
        ConfigurationError: the messages do not pair up.
    """
    new = _not_resent(state, given)
    if not new:
        raise NothingToDoError("there is nothing to send or to resume", hint="give a message")
    check_pairs(new, "the input")
    if system is None:
        system = _system_of(given) if not state.exists else _own_system(state, fingerprint)
    record = Record("input", "in-progress", 0, add=new, usage={}, fingerprint=fingerprint)
    record.run = RunStart(len(state.log), len(new), max_steps, budget)
    if state.seconds:
        record.seconds = 0.0
    record.run_config = run_config
    record.business_state = business_state
    if agent != state.agent:
        record.agent = agent
    if system != state.system:
        record.system = system
    return record


def queue_input(state: State, given: Sequence[MessageData]) -> Record | None:
    """The save that takes new input into an unfinished run; None if it is a retry.

    Raises:
        ConfigurationError: the messages do not pair up.
    """
    new = _new_to_run(state, _without_system(given))
    if not new:
        return None
    check_pairs(new, "the input")
    if open_turn(new):
        raise ConfigurationError(
            "the input ends in tool calls without results, and the session has an unfinished run",
            hint="send user messages, or whole turns with their results",
        )
    return Record("queue", state.status, state.step, queue=new, finish_reason=state.finish_reason)


def _own_system(state: State, fingerprint: JsonObject) -> str | None:
    """The conversation's own system message, where neither this agent nor the one before has instructions."""
    before = (state.fingerprint or {}).get("instructions")
    return state.system if before == fingerprint["instructions"] else None


def _without_system(messages: Iterable[MessageData]) -> list[MessageData]:
    return [message for message in messages if message["role"] != "system"]


def _system_of(messages: Iterable[MessageData]) -> str | None:
    texts = [text_of(message["content"]) for message in messages if message["role"] == "system"]
    return "\n\n".join(texts) or None


def _not_resent(state: State, given: Sequence[MessageData]) -> list[MessageData]:
    """The input without the whole stored conversation, if it begins with that."""
    messages = _without_system(given)
    stored = len(state.log)
    return messages[stored:] if 0 < stored == _common_prefix(state.log, messages) else messages


def _new_to_run(state: State, messages: list[MessageData]) -> list[MessageData]:
    """What an unfinished run has not been given yet.

    A caller may send only what is new, or the conversation as it knows it with the new behind: from its
    beginning or from the run's, up to wherever it saw it.
    """
    said = [m for m in (*state.run_messages(), *state.queue) if m["role"] == "user"]
    if not messages or _contains(said, messages):
        return []
    known = max(
        _known_from(state, messages, 0),
        _known_from(state, messages, state.run.index),
    )
    rest = messages[known:]
    rest = rest[_common_prefix(state.queue, rest) :]
    return [] if known and _contains(said, rest) else rest


def _known_from(state: State, messages: Sequence[MessageData], start: int) -> int:
    """How many of the messages repeat the transcript from `start` on; 0 if they do not reach the run."""
    common = _common_prefix(state.log.slice(start), messages)
    return common if start + common > state.run.index or start + common == len(state.log) else 0


def _common_prefix(known: Iterable[MessageData], messages: Sequence[MessageData]) -> int:
    count = 0
    for stored, given in zip(known, messages, strict=False):
        if not _same(stored, given):
            break
        count += 1
    return count


def _same(stored: MessageData, given: MessageData) -> bool:
    """Equal as a caller can know it: our own notes on a message do not count."""
    if stored == given:
        return True
    keys = ("role", "content", "toolCallId")
    return all((stored.get(key) or None) == (given.get(key) or None) for key in keys) and (
        [(call["id"], call["function"]) for call in calls_of(stored)]
        == [(call["id"], call["function"]) for call in calls_of(given)]
    )


def _contains(said: Sequence[MessageData], messages: Sequence[MessageData]) -> bool:
    """Whether `messages` stand in `said` one after another."""
    width = len(messages)
    return any(
        all(_same(a, b) for a, b in zip(said[start : start + width], messages, strict=True))
        for start in range(len(said) - width + 1)
    )
