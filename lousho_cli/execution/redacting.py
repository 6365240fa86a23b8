"""A session and its events without secrets: what is saved, what is told and what a resume sees agree.

Taken out of: inputs, results and their errors, a model's text, the business state. Left as they are: the
arguments of calls, since what was approved is what runs; what carries a signature; instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

from ..errors import SDKError
from .events import Event, Observer
from .messages import MessageData
from .protocols import Provider
from .redaction import Redaction, Redactor
from .session import OpenSession
from .state import Record, State
from .tracing import Tracing
from .unset import UNSET

_TOLD = ("text", "result", "error")


def redactor_for(providers: Iterable[Provider], redaction: Redaction | None) -> Redactor | None:
    """What takes secrets out of a run: the providers' own keys always, the usual ones where it is asked for.

    None where there is nothing to look for.
    """
    secrets = [secret for provider in providers for secret in getattr(provider, "secrets", ())]
    if redaction is None and not secrets:
        return None
    return Redactor(redaction=redaction, secrets=secrets, usual=redaction is not None)


class RedactedSession:
    """A session of which nothing is saved before secrets are taken out.

    Args:
        tell: told how many values were taken out of a save, and in which step.
    """

    def __init__(self, session: OpenSession, redactor: Redactor, tell: Observer | None) -> None:
        self.fence = session.fence
        self.suspends = session.suspends
        self._session = session
        self._redactor = redactor
        self._tell = tell

    @property
    def state(self) -> State:
        return self._session.state

    @state.setter
    def state(self, state: State) -> None:
        self._session.state = state

    async def save(self, record: Record) -> State:
        before = self._redactor.count
        _redact(record, self._redactor)
        count = self._redactor.count - before
        state = await self._session.save(record)
        if count and self._tell is not None:
            data = {"step": record.step, "count": count}
            answer = self._tell(Event("content.redacted", state.session_id, data))
            if answer is not None:
                await answer
        return state

    async def close(self) -> None:
        await self._session.close()


def redacted_observer(observer: Observer | None, redactor: Redactor) -> Observer | None:
    """`observer`, which hears of no secret."""
    if observer is None:
        return None

    def redacted(event: Event) -> Any:
        told = {name: redactor.value(event.data[name]) for name in _TOLD if name in event.data}
        if told:
            event = Event(event.type, event.session_id, {**event.data, **told}, event.path)
        return observer(event)

    return redacted


def redacted_tracing(tracing: Tracing | None, redactor: Redactor) -> Tracing | None:
    """`tracing`, which is told of no secret."""
    if tracing is None:
        return None
    observe = redacted_observer(tracing.observe, redactor)
    return replace(tracing, observe=cast("Callable[[Event], None]", observe))


def redacted_messages(messages: list[MessageData], redactor: Redactor) -> list[MessageData]:
    """An input without secrets, in new messages."""
    return [_message(message, redactor) for message in messages]


def redact_error(error: SDKError, redactor: Redactor) -> None:
    """Take secrets out of what an error says."""
    error.args = tuple(redactor.plain(arg) if isinstance(arg, str) else arg for arg in error.args)
    error.hint = redactor.plain(error.hint)


def _redact(record: Record, redactor: Redactor) -> None:
    if record.add:
        record.add = redacted_messages(record.add, redactor)
    if record.queue:
        record.queue = redacted_messages(record.queue, redactor)
    if record.results:
        record.results = {call: _message(message, redactor) for call, message in record.results.items()}
    if record.business_state is not UNSET:
        record.business_state = redactor.value(record.business_state)
    for sub in (record.subs or {}).values():
        _redact(sub, redactor)


def _message(message: MessageData, redactor: Redactor) -> MessageData:
    before = redactor.count
    changed: MessageData = {**message, "content": redactor.value(message["content"])}
    if isinstance(message.get("reasoning"), str) and "providerParts" not in message:
        changed["reasoning"] = redactor.value(message["reasoning"])
    if redactor.count == before:
        return message
    changed["redacted"] = redactor.count - before + message.get("redacted", 0)
    return changed
