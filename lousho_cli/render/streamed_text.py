"""Text on a terminal that may have to be taken off it again: a model's turn as far as it has come."""

from __future__ import annotations

from .console import Surface

_TAB = 8


class StreamedText:
    """What is on the screen of the turn that a model is writing."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._shown: list[str] = []
        self.column_open = False

    @property
    def is_empty(self) -> bool:
        return not self._shown

    def write(self, text: str) -> None:
        """Show more of it: escaped text, not empty."""
        self._surface.stream.write(text)
        self._surface.stream.flush()
        self._shown.append(text)
        self.column_open = not text.endswith("\n")

    def end_line(self) -> None:
        """Whatever comes next begins a line."""
        if self.column_open:
            self._surface.stream.write("\n")
            self._shown.append("\n")
        self.column_open = False

    def keep(self) -> None:
        """The turn is whole: what was shown stays."""
        self._shown.clear()

    def take_back(self) -> bool:
        """Erase it; False if it stays, as the cursor may not be moved that far."""
        rows = _rows("".join(self._shown), self._surface.width)
        self._shown.clear()
        if not self._surface.live or rows >= self._surface.height:
            self.end_line()
            self.keep()
            return False
        from rich.control import Control
        from rich.segment import ControlType

        erase = (ControlType.ERASE_IN_LINE, 2)
        up = [(ControlType.CURSOR_UP, 1), erase] * rows
        self._surface.console.control(Control(ControlType.CARRIAGE_RETURN, erase, *up))
        self.column_open = False
        return True


def _rows(text: str, width: int) -> int:
    """How many rows below its first the cursor is behind `text`, on a terminal that wraps lines."""
    from rich.cells import cell_len

    rows = 0
    for number, line in enumerate(text.split("\n")):
        column = 0
        rows += number > 0
        for char in line:
            cells = _TAB - column % _TAB if char == "\t" else cell_len(char)
            if char == "\t":
                column = min(width, column + cells)
            elif column + cells > width:
                rows, column = rows + 1, cells
            else:
                column += cells
    return rows
