"""Lists of records: aligned columns on a terminal, tab-separated lines in a pipe; ids are whole in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .console import Surface

_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table on a terminal.

    Attributes:
        title: its heading.
        right: align to the right, for numbers.
        wraps: free text that may go over several lines; other columns are never broken.
        clips: free text of which the beginning is enough.
    """

    title: str
    right: bool = False
    wraps: bool = False
    clips: bool = False

    @property
    def flexible(self) -> bool:
        return self.wraps or self.clips


@dataclass(frozen=True, slots=True)
class Cell:
    """What a row has in a column: escaped text of one line, and how it looks."""

    text: str
    style: str = ""


def show_table(surface: Surface, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    """Print rows on a terminal: as columns where they fit, else as a block of lines for each row."""
    widths = _widths(columns, rows)
    free = surface.width - sum(
        width + _GAP for column, width in zip(columns, widths, strict=True) if not column.flexible
    )
    needed = sum(
        _least(row_column, column) + _GAP
        for column, row_column in zip(columns, zip(*rows, strict=True), strict=True)
        if column.flexible
    )
    if free >= needed:
        _as_columns(surface, columns, rows)
    else:
        _as_blocks(surface, columns, rows)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[int]:
    from rich.cells import cell_len

    return [
        max([cell_len(column.title), *(cell_len(row[index].text) for row in rows)])
        for index, column in enumerate(columns)
    ]


def _least(cells: Sequence[Cell], column: Column) -> int:
    """The columns a flexible column needs: its longest word if it wraps, as that may be an id."""
    from rich.cells import cell_len

    words = (word for cell in cells for word in cell.text.split(" ")) if column.wraps else ()
    return max([16, *(cell_len(word) for word in words)])


def _as_columns(surface: Surface, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not column.wraps,
            overflow="fold",
        )
    room = _clip_room(surface, columns, rows)
    for row in rows:
        table.add_row(
            *(
                Text(_clipped(surface, cell.text, room) if column.clips else cell.text, cell.style)
                for column, cell in zip(columns, row, strict=True)
            )
        )
    surface.console.print(table)


def _clip_room(surface: Surface, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> int:
    widths = _widths(columns, rows)
    others = sum(w + _GAP for c, w in zip(columns, widths, strict=True) if not c.clips)
    return max(1, surface.width - others - _GAP)


def _clipped(surface: Surface, text: str, width: int) -> str:
    from .fit import shorten

    return shorten(text, width, surface.mark("more"))


def _as_blocks(surface: Surface, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    """The first whole column as the heading. What may not be broken is left to the terminal to break."""
    from rich.text import Text

    head = next(i for i, column in enumerate(columns) if not column.flexible)
    label_width = max(len(column.title) for column in columns) + _GAP
    for number, row in enumerate(rows):
        if number:
            surface.console.print()
        heading = (f"{columns[head].title} ", "dim"), (row[head].text, f"bold {row[head].style}".strip())
        surface.console.print(Text.assemble(*heading), soft_wrap=True)
        for index, (column, cell) in enumerate(zip(columns, row, strict=True)):
            if index != head and cell.text:
                label = "  " + column.title.ljust(label_width)
                _labelled(surface, label, column, cell)


def _labelled(surface: Surface, label: str, column: Column, cell: Cell) -> None:
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    room = surface.width - len(label)
    if column.wraps and all(cell_len(word) <= room for word in cell.text.split(" ")):
        grid = Table.grid()
        grid.add_row(Text(label, "dim"), Text(cell.text, cell.style))
        surface.console.print(grid)
        return
    text = _clipped(surface, cell.text, max(16, room)) if column.clips else cell.text
    surface.console.print(Text.assemble((label, "dim"), (text, cell.style)), soft_wrap=True)
