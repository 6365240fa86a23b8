"""A run as it happens on a terminal: what is done stays as lines, what is waited for is one live line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from .console import Surface
from .events import WARNINGS, ending, failure_of, json_of, name_of, outcome_of, warnings_of
from .fit import shorten
from .outcome import OK
from .statusline import StatusLine
from .streamed_text import StreamedText
from .text import duration, escape, escape_line

Data = Mapping[str, Any]
Piece = tuple[str, str]


class TerminalRun:
    """Prints steps, calls and results as lines, streams the text as it comes, and says what runs now."""

    def __init__(self, surface: Surface) -> None:
        self.reply_shown = False
        self._surface = surface
        self._status = StatusLine(surface)
        self._running: dict[str, str] = {}
        self._model = ""
        self._text = StreamedText(surface)
        self._handlers: dict[str, Callable[[Data], None]] = {
            "run.start": self._run_start,
            "step.start": self._step_start,
            "text.delta": self._text_delta,
            "reasoning.delta": lambda data: self._wait(f"{self._model} is thinking"),
            "call.delta": self._call_delta,
            "model.retry": self._retry,
            "model.failed": self._failed,
            "checkpoint.saved": lambda data: self._text.keep(),
            "tool.start": self._tool_start,
            "tool.done": self._tool_done,
            "tool.error": self._tool_error,
            "approval.requested": self._approval,
            **{type: partial(self._warn, type) for type in WARNINGS},
            "run.done": self._run_done,
        }

    def handle(self, type: str, data: Data) -> None:
        handler = self._handlers.get(type)
        if handler is not None:
            handler(data)

    def close(self) -> None:
        self._status.close()
        self._text.end_line()
        self._surface.stream.flush()

    def _print(self, *pieces: Piece, tail: str = "", tail_style: str = "") -> None:
        """One line: the pieces whole, then as much of `tail` as fits the width."""
        from rich.text import Text

        self._text.end_line()
        line = Text.assemble(*pieces)
        room = max(10, self._surface.width - line.cell_len)
        line.append(shorten(tail, room, self._surface.mark("more")), tail_style)
        with self._status.above():
            self._surface.console.print(line, soft_wrap=True)

    def _wait(self, label: str) -> None:
        """Say what is waited for, on a line of its own: redrawing would take text on the same line away."""
        self._text.end_line()
        self._status.show(label)

    def _run_start(self, data: Data) -> None:
        self._model = escape_line(str(data.get("model") or "the model"))
        agent = escape_line(str(data.get("agent") or ""))
        resumed = f"{self._dot()}resumed" if data.get("resumed") else ""
        self._print((agent, "bold"), (f"{self._dot()}{self._model}{resumed}", "dim"))

    def _dot(self) -> str:
        return f" {self._surface.mark('dot')} "

    def _step_start(self, data: Data) -> None:
        self._model = escape_line(str(data.get("model") or self._model))
        self.reply_shown = False
        self._text.keep()
        self._print((f"step {data.get('step')}", "bold"), (f"{self._dot()}{self._model}", "dim"))
        self._wait(f"waiting for {self._model}")

    def _text_delta(self, data: Data) -> None:
        text = escape(str(data.get("text") or ""))
        if not text:
            return
        self._status.clear()
        self._text.write(text)
        self.reply_shown = True

    def _call_delta(self, data: Data) -> None:
        if data.get("name"):
            self._wait(f"{self._model} is writing a call of {escape_line(str(data['name']))}")

    def _retry(self, data: Data) -> None:
        taken_back = self._void()
        left = "" if taken_back else ", what it wrote is void"
        self._print((f"! {failure_of(data)}{left}", "yellow"))
        self._model = escape_line(str(data.get("next") or self._model))
        self._wait(f"waiting for {self._model}")

    def _failed(self, data: Data) -> None:
        self._void()

    def _void(self) -> bool:
        """Take what a cut turn has shown off the screen; False if something of it stays."""
        self._status.clear()
        self.reply_shown = False
        return self._text.is_empty or self._text.take_back()

    def _tool_start(self, data: Data) -> None:
        name = name_of(data)
        mark = (f"  {self._surface.mark('call')} ", "dim")
        self._print(mark, (name, "cyan"), ("  ", ""), tail=json_of(data.get("args")))
        self._running[str(data.get("toolCallId"))] = name
        self._wait_for_tools()

    def _tool_done(self, data: Data) -> None:
        seconds = data.get("seconds")
        took = f"  {duration(seconds)}" if isinstance(seconds, (int, float)) else ""
        mark = (f"  {self._surface.mark('ok')} ", OK.style)
        self._settle(data)
        self._print(mark, (name_of(data), "cyan"), (f"{took}  ", "dim"), tail=json_of(data.get("result")))

    def _tool_error(self, data: Data) -> None:
        outcome = outcome_of(data)
        reason = f": {escape_line(outcome.reason)}" if outcome.reason else ""
        mark = (f"  {self._surface.mark(outcome.mark)} ", outcome.style)
        words = escape_line(outcome.label) + reason
        self._settle(data)
        self._print(mark, (name_of(data), "cyan"), ("  ", ""), tail=words, tail_style=outcome.style)

    def _settle(self, data: Data) -> None:
        self._running.pop(str(data.get("toolCallId")), None)
        self._wait_for_tools()

    def _wait_for_tools(self) -> None:
        if self._running:
            self._wait(f"running {', '.join(self._running.values())}")
        else:
            self._status.clear()

    def _approval(self, data: Data) -> None:
        approval = data.get("approval") or {}
        doubt = " (may already have happened)" if approval.get("kind") == "interrupted" else ""
        ident = escape_line(str(approval.get("id") or ""))
        self._print(
            (f"  {self._surface.mark('wait')} ", "yellow"),
            (name_of(approval), "cyan"),
            (f"  waits for approval{doubt}  ", "yellow"),
            (ident, "bold"),
        )

    def _warn(self, type: str, data: Data) -> None:
        for warning in warnings_of(type, data):
            self._print(("! ", "yellow"), (warning, ""))

    def _run_done(self, data: Data) -> None:
        self._status.clear()
        self._running.clear()
        self._print((ending(data), "dim"))
