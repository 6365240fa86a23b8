"""The rich console that the terminal views print with."""

from __future__ import annotations

from rich.console import Console


class TerminalConsole(Console):
    """A console that lets its caller hear that the reader is gone, instead of ending the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
