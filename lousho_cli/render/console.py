"""Where a view is shown: a terminal, or a pipe that gets plain, uncut lines without codes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_DUMB = ("dumb", "unknown")
_MARKS = {
    "ok": ("✓", "ok"),
    "failed": ("✗", "x"),
    "rejected": ("⊘", "no"),
    "unclear": ("?", "?"),
    "warning": ("!", "!"),
    "stopped": ("■", "-"),
    "call": ("→", ">"),
    "wait": ("…", "..."),
    "more": ("…", "..."),
    "change": ("→", "->"),
    "dot": ("·", "-"),
    "here": ("←", "<-"),
    "bar": ("│", "|"),
    "rule": ("─", "-"),
    "spin": ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"),
}


@dataclass
class Surface:
    """One output stream and what may be done on it. `surface_for` decides; tests set it directly.

    Attributes:
        stream: where the view goes.
        terminal: lay out for a person at a screen; otherwise plain lines, complete, one record a line.
        color: colour and weight may be used.
        live: the cursor may be moved, so a line can be redrawn.
        unicode: the encoding can carry line drawing and marks.
        fixed_width: columns, or None to ask the terminal each time.
    """

    stream: TextIO
    terminal: bool = False
    color: bool = False
    live: bool = False
    unicode: bool = True
    fixed_width: int | None = 80

    @property
    def width(self) -> int:
        """Columns of the terminal, at least 20. Plain output is never laid out by it."""
        return max(20, self.fixed_width or _terminal_width(self.stream))

    @property
    def height(self) -> int:
        """Rows of the terminal."""
        try:
            return os.get_terminal_size(self.stream.fileno()).lines or 24
        except (OSError, ValueError, AttributeError):
            return 24

    @cached_property
    def console(self) -> Console:
        """A rich console on the stream that interprets nothing in the text it is given."""
        from .terminal import TerminalConsole

        return TerminalConsole(
            file=self.stream,
            force_terminal=True,
            force_interactive=self.live,
            color_system="standard" if self.color else None,
            no_color=not self.color,
            markup=False,
            highlight=False,
            emoji=False,
            width=self.fixed_width,
            safe_box=not self.unicode,
        )

    def line(self, *fields: str) -> None:
        """Write one plain line, its fields (escaped by the caller) separated by tabs."""
        self.stream.write("\t".join(fields) + "\n")

    def mark(self, name: str) -> str:
        """A mark by name, in ASCII where the encoding cannot do better."""
        return _MARKS[name][0 if self.unicode else 1]


def surface_for(
    stream: TextIO, *, no_color: bool = False, environ: Mapping[str, str] = os.environ
) -> Surface:
    """What `stream` (stdout or stderr) is, from the stream, the environment and `--no-color`.

    `NO_COLOR` counts when it is not empty, and wins over `FORCE_COLOR`, which asks for the terminal's view
    in a pipe too. A dumb terminal gets the layout without colour and without redrawing. Characters that the
    encoding lacks are written as escapes instead of failing.
    """
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    tty = stream.isatty()
    dumb = environ.get("TERM", "").lower() in _DUMB
    forced = environ.get("FORCE_COLOR", "").lower() not in ("", "0", "false")
    forbidden = no_color or bool(environ.get("NO_COLOR"))
    wished = _columns(environ)
    return Surface(
        stream=stream,
        terminal=tty or (forced and not forbidden),
        color=not forbidden and (forced or (tty and not dumb)),
        live=tty and not dumb,
        unicode=_carries_marks(stream),
        fixed_width=wished or (None if tty else 80),
    )


def _columns(environ: Mapping[str, str]) -> int | None:
    text = environ.get("COLUMNS", "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def _terminal_width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def _carries_marks(stream: TextIO) -> bool:
    try:
        "│╰✓⠋→".encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
