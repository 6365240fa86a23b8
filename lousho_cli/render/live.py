"""A run as it happens, on standard error."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol

from .console import Surface

_MID_TURN = ("reasoning.delta", "call.delta")
_VOIDS = ("model.retry", "model.failed")


class RunView(Protocol):
    """Shows events. `reply_shown` says that the text of the last step is on the screen already."""

    reply_shown: bool

    def handle(self, type: str, data: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


class LiveRun:
    """Shows the events of a run: a live view on a terminal, plain lines in a pipe, nothing when quiet.

    Use it as a context manager, so that the terminal is left clean however the run ends. A stream that is
    gone (a closed terminal) ends the showing, never the run.
    """

    def __init__(self, surface: Surface, *, quiet: bool = False) -> None:
        self._view = None if quiet else _view(surface)
        self._inside: dict[tuple[str, ...], list[str]] = {}

    @property
    def reply_shown(self) -> bool:
        """Whether the text of the last step is on the screen already."""
        return self._view is not None and self._view.reply_shown

    def handle(self, event: Any) -> None:
        """Show one event: an object with `type` and `data`, or a mapping with these keys."""
        if self._view is None:
            return
        mapping = isinstance(event, Mapping)
        kind = event["type"] if mapping else event.type
        data = event.get("data", event) if mapping else event.data
        path = tuple(event.get("path", ()) if mapping else getattr(event, "path", ()))
        try:
            if path:
                self._gather(path, str(kind), data or {})
            if not path or kind != "text.delta":
                self._view.handle(str(kind), data or {})
        except OSError:
            self.close()
            self._view = None

    def _gather(self, path: tuple[str, ...], kind: str, data: Mapping[str, Any]) -> None:
        """Show the text of a sub-agent's turn when it is whole: several may be writing at once."""
        if kind == "text.delta":
            self._inside.setdefault(path, []).append(str(data.get("text") or ""))
        elif kind not in _MID_TURN:
            text = "".join(self._inside.pop(path, ()))
            if kind not in _VOIDS and text and self._view is not None:
                self._view.handle("text.delta", {"text": text})

    def close(self) -> None:
        """Take the live line away. May be called again."""
        if self._view is not None:
            with suppress(OSError):
                self._view.close()

    def __enter__(self) -> LiveRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _view(surface: Surface) -> RunView:
    if surface.terminal:
        from .live_terminal import TerminalRun

        return TerminalRun(surface)
    from .live_plain import PlainRun

    return PlainRun(surface)
