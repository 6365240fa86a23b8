"""The progress of a run as plain lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from .console import Surface
from .events import WARNINGS, ending, failure_of, json_of, name_of, outcome_of, warnings_of
from .text import duration, escape, escape_line

Data = Mapping[str, Any]


class PlainRun:
    """One line an event, uncut. The final text is left to standard output; earlier texts are shown."""

    reply_shown = False

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._text: list[str] = []
        self._handlers: dict[str, Callable[[Data], None]] = {
            "run.start": self._run_start,
            "step.start": self._step_start,
            "text.delta": lambda data: self._text.append(str(data.get("text") or "")),
            "model.retry": self._retry,
            "tool.start": self._tool_start,
            "tool.done": self._tool_done,
            "tool.error": self._tool_error,
            "approval.requested": self._approval,
            **{type: partial(self._warn, type) for type in WARNINGS},
            "run.done": lambda data: self._say(ending(data)),
        }

    def handle(self, type: str, data: Data) -> None:
        handler = self._handlers.get(type)
        if handler is not None:
            handler(data)

    def close(self) -> None:
        self._surface.stream.flush()

    def _say(self, text: str) -> None:
        self._surface.line(text)
        self._surface.stream.flush()

    def _run_start(self, data: Data) -> None:
        verb = "resuming" if data.get("resumed") else "running"
        agent, model = (escape_line(str(data.get(key) or "")) for key in ("agent", "model"))
        self._say(f"{verb} {agent} with {model}")

    def _step_start(self, data: Data) -> None:
        self._text.clear()
        self._say(f"step {data.get('step')}: asking {escape_line(str(data.get('model') or ''))}")

    def _retry(self, data: Data) -> None:
        self._text.clear()
        self._say(f"warning: {failure_of(data)}")

    def _tool_start(self, data: Data) -> None:
        said = "".join(self._text)
        self._text.clear()
        for line in said.split("\n") if said.strip() else ():
            self._say(f"model says: {escape(line)}")
        self._say(f"calling {name_of(data)} {json_of(data.get('args'))}")

    def _tool_done(self, data: Data) -> None:
        seconds = data.get("seconds")
        took = f" after {duration(seconds)}" if isinstance(seconds, (int, float)) else ""
        self._say(f"result of {name_of(data)}{took}: {json_of(data.get('result'))}")

    def _tool_error(self, data: Data) -> None:
        outcome = outcome_of(data)
        self._say(f"{name_of(data)} {escape_line(outcome.label)}: {escape_line(outcome.reason)}")

    def _approval(self, data: Data) -> None:
        approval = data.get("approval") or {}
        call = f"{name_of(approval)} {json_of(approval.get('args'))}"
        doubt = " (may already have happened)" if approval.get("kind") == "interrupted" else ""
        self._say(f"waits for approval {escape_line(str(approval.get('id')))}: {call}{doubt}")

    def _warn(self, type: str, data: Data) -> None:
        for warning in warnings_of(type, data):
            self._say(f"warning: {warning}")
