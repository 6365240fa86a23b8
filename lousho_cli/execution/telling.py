"""Telling an observer what happens in a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .batch import Finished
from .events import Event, EventType, Observer
from .messages import MessageData, UsageData, text_of
from .session import NestedSession, OpenSession
from .state import Record, State
from .tracing import Tracing


class Teller:
    """Reports the events of one session to an observer and to a tracer, if there are any."""

    def __init__(self, session: OpenSession, observer: Observer | None, tracing: Tracing | None) -> None:
        self.is_heard = observer is not None or tracing is not None
        self._session = session
        self._observer = observer
        self._tracing = tracing

    async def tell(self, event: EventType, *, path: tuple[str, ...] = (), **data: Any) -> None:
        """Report an event. What it holds is the observer's own: changing it changes nothing of the run."""
        if not self.is_heard:
            return
        for key, value in data.items():
            if isinstance(value, (dict, list)):
                data[key] = _copied(value)
        told = Event(event, self._session.state.session_id, data, path)
        if self._tracing is not None:
            self._tracing.observe(told)
        answer = None if self._observer is None else self._observer(told)
        if answer is not None:
            await answer

    async def saved(self, state: State | None = None) -> None:
        """A save was made, by default the newest."""
        state = state or self._session.state
        seq = self._session.seq if isinstance(self._session, NestedSession) else state.seq
        await self.tell("checkpoint.saved", seq=seq, status=state.status, step=state.step)

    async def turn(self, step: int, message: MessageData, text_told: str, reasoning_told: str) -> None:
        """A model turn was recorded: tell what was not told while it was written."""
        reasoning = message.get("reasoning")
        if isinstance(reasoning, str) and not reasoning_told and reasoning:
            await self.tell("reasoning.delta", step=step, text=reasoning)
        text = text_of(message["content"])
        if text.startswith(text_told) and text != text_told:
            await self.tell("text.delta", step=step, text=text[len(text_told) :])

    async def results(self, finished: list[Finished]) -> None:
        """Calls have their results."""
        step = self._session.state.step
        for done in finished if self.is_heard else ():
            error: dict[str, Any] = {} if done.kind is None else {"kind": done.kind, "error": done.error}
            await self.tell(
                "tool.done" if done.kind is None else "tool.error",
                step=step,
                seconds=done.seconds,
                toolName=done.call.name,
                toolCallId=done.call.id,
                result=done.content,
                **error,
            )

    async def step_done(self, step: int, usage: UsageData) -> None:
        """Every call of a step has its result."""
        await self.tell("step.done", step=step, usage=usage)

    async def decided(self, record: Record, state: State, path: tuple[str, ...] = ()) -> None:
        """A decision gave calls results without running them, here or inside sub-agents."""
        for call, inner in (record.subs or {}).items():
            sub = state.subs.get(call)
            if sub is not None:
                await self.decided(inner, sub, (*path, sub.agent))
        for call_id, message in (record.results or {}).items():
            await self.tell(
                "tool.error" if message.get("isError") else "tool.done",
                path=path,
                step=state.step,
                seconds=0.0,
                toolName=message.get("toolName"),
                toolCallId=call_id,
                result=message["content"],
                **_error_of(message),
            )
        if record.results and state.turn is None:
            await self.tell("step.done", path=path, step=state.step, usage={})


def _copied(value: Any) -> Any:
    """A JSON value that shares nothing with `value`."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _error_of(message: MessageData) -> Mapping[str, Any]:
    if not message.get("isError"):
        return {}
    problem = json.loads(message["content"])
    return {"kind": problem["kind"], "error": problem["error"]}
