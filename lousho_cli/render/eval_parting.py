"""Where a run of a case and its recording part: the steps of both up to there, side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .align import align
from .console import Surface
from .fields import canonical
from .fit import shorten
from .text import escape_line
from .values import json_line

_SIDE_BY_SIDE = 80
_STYLES = {"=": "dim", "-": "red", "+": "green", "!": "yellow"}

Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the picture: the number of its step where one begins, and what each side has there."""

    number: str
    committed: str | None
    current: str | None

    @property
    def same(self) -> bool:
        return self.committed == self.current


def show_parting(surface: Surface, name: str, comparison: Mapping[str, Any]) -> None:
    """Print on a terminal where the run of a case leaves its recording, and the arguments that changed."""
    parting = comparison["parting"]
    at = parting["partedAt"]
    where = f"parts at step {at}" if at else "takes the same steps"
    _say(surface, f"{escape_line(name)} {where}, similarity {comparison['similarity']:.2f}", "bold")
    rows = list(_rows(parting["committed"], parting["current"], at))
    if surface.width >= _SIDE_BY_SIDE:
        _beside(surface, rows)
    else:
        _stacked(surface, rows)
    for change in parting["changed"]:
        for field in change["fields"]:
            path = escape_line(".".join(filter(None, (change["tool"], field["path"]))))
            old, new = (_value(surface, field, side) for side in ("committed", "current"))
            _say(surface, f"  ! {path}: {old} {surface.mark('change')} {new}", _STYLES["!"])


def _rows(committed: Sequence[Step], current: Sequence[Step], at: int | None) -> Iterator[_Row]:
    last = at or max(len(committed), len(current))
    for number in range(1, last + 1):
        left, right = (_lines(steps, number) for steps in (committed, current))
        for index, (old, new) in enumerate(_facing(left, right)):
            yield _Row(str(number) if index == 0 else "", old, new)
    rest = [_rest(len(steps) - last) for steps in (committed, current)]
    if any(rest):
        yield _Row("", *rest)


def _lines(steps: Sequence[Step], number: int) -> list[str]:
    if number > len(steps):
        return []
    tools = steps[number - 1]["tools"]
    lines = [f"{escape_line(str(tool['name']))} {_arguments(tool['args'])}" for tool in tools]
    return lines or ["(answers)"]


def _arguments(value: Any) -> str:
    """Key order is no difference, so it may not look like one."""
    return json_line(json.loads(canonical(value)))


def _facing(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    names = [[line.split(" ")[0] for line in lines] for lines in (left, right)]
    for row in align(left, right, *names):
        yield None if row.a is None else left[row.a], None if row.b is None else right[row.b]


def _rest(count: int) -> str | None:
    if count <= 0:
        return None
    return f"({count} more {'step' if count == 1 else 'steps'})"


def _beside(surface: Surface, rows: Sequence[_Row]) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=0, expand=True)
    grid.add_column(width=6)
    grid.add_column(ratio=1, overflow="fold")
    grid.add_column(width=5)
    grid.add_column(ratio=1, overflow="fold")
    for row in rows:
        left = "-" if row.committed is not None and not row.same else " "
        right = "+" if row.current is not None and not row.same else " "
        grid.add_row(
            Text(f"  {row.number}", "dim"),
            Text(row.committed or "", "dim" if row.same else "red"),
            f" {left}{surface.mark('bar')}{right} ",
            Text(row.current or "", "dim" if row.same else "green"),
        )
    surface.console.print(grid)


def _stacked(surface: Surface, rows: Sequence[_Row]) -> None:
    for row in rows:
        number = f"  {row.number:<3} "
        if row.same:
            _say(surface, f"{number}= {row.committed}", _STYLES["="])
            continue
        for sign, text in (("-", row.committed), ("+", row.current)):
            if text is not None:
                _say(surface, f"{number}{sign} {text}", _STYLES[sign])


def _value(surface: Surface, field: Mapping[str, Any], side: str) -> str:
    text = json_line(field[side]) if side in field else "(none)"
    return shorten(text, max(20, surface.width), surface.mark("more"))


def _say(surface: Surface, text: str, style: str) -> None:
    from rich.text import Text

    surface.console.print(Text(text, style), soft_wrap=True)
