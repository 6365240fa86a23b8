"""Aligned steps of two runs: side by side where there is room, else one under the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .align import align
from .comparison import Difference, Step
from .console import Surface
from .fields import MISSING, Change
from .fit import shorten, shorten_pair
from .outcome import of_value
from .text import escape_line
from .values import json_line

if TYPE_CHECKING:
    from rich.text import Text

_SIDE_BY_SIDE = 100
_TITLES = {"call": "other calls", "order": "same calls in another order"}
_STYLES = {"-": "red", "+": "green", "!": "yellow", "~": "bold", "=": "dim", " ": ""}


@dataclass(frozen=True, slots=True)
class StepViews:
    """The steps of both runs and how to show them: `full` shows same steps and long values too."""

    surface: Surface
    a: Sequence[Step]
    b: Sequence[Step]
    full: bool

    def show(self, differences: Sequence[Difference]) -> None:
        for same, group in groupby(differences, lambda difference: difference.kind == "same"):
            if not same:
                for difference in group:
                    self._changed(difference)
            elif self.full:
                for difference in group:
                    self._shared(difference)
            else:
                self.say(f"= {_same(list(group))}")

    def say(self, text: str, style: str | None = None) -> None:
        """One line, coloured by its first character unless a style is given."""
        if not self.surface.terminal:
            self.surface.line(text)
            return
        from rich.text import Text

        look = _STYLES.get(text[:1], "") if style is None else style
        self.surface.console.print(Text(text, look), soft_wrap=True)

    def _shared(self, difference: Difference) -> None:
        self.say(f"= {_numbers([difference])}")
        for line in step_lines(self.a[(difference.a or 1) - 1]):
            self.say(f"    {line}", "dim")

    def _changed(self, difference: Difference) -> None:
        left, right = self._lines(self.a, difference.a), self._lines(self.b, difference.b)
        if difference.kind in ("only-a", "only-b"):
            sign = "-" if difference.kind == "only-a" else "+"
            self.say(f"{sign} step {difference.a or difference.b}")
            for line in left + right:
                self.say(f"{sign}   {line}")
            return
        title = _TITLES.get(difference.kind, difference.kind)
        self.say(f"~ {_numbers([difference])}: {title}")
        if self.surface.terminal and self.surface.width >= _SIDE_BY_SIDE:
            self._beside(left, right)
        else:
            self._stacked(left, right)
        for line in self._field_lines(difference):
            self.say(line)

    def _lines(self, steps: Sequence[Step], number: int | None) -> list[str]:
        if number is None:
            return []
        lines = step_lines(steps[number - 1])
        if self.full or not self.surface.terminal:
            return lines
        room = 2 * self.surface.width
        return [shorten(line, room, self.surface.mark("more")) for line in lines]

    def _stacked(self, left: Sequence[str], right: Sequence[str]) -> None:
        added: list[str] = []
        for row in _facing(left, right):
            if row[0] == row[1]:
                self._flush(added)
                self.say(f"    {row[0]}")
                continue
            if row[0] is not None:
                self.say(f"-   {row[0]}")
            if row[1] is not None:
                added.append(row[1])
        self._flush(added)

    def _flush(self, added: list[str]) -> None:
        for line in added:
            self.say(f"+   {line}")
        added.clear()

    def _beside(self, left: Sequence[str], right: Sequence[str]) -> None:
        from rich.table import Table

        grid = Table.grid(padding=0, expand=True)
        grid.add_column(width=4)
        grid.add_column(ratio=1, overflow="fold")
        grid.add_column(width=5)
        grid.add_column(ratio=1, overflow="fold")
        for a, b in _facing(left, right):
            changed = a != b
            gutter = self._gutter(a is not None and changed, b is not None and changed)
            grid.add_row("", _side(a, "red", changed), gutter, _side(b, "green", changed))
        self.surface.console.print(grid)

    def _gutter(self, minus: bool, plus: bool) -> str:
        return f" {'-' if minus else ' '}{self.surface.mark('bar')}{'+' if plus else ' '} "

    def _field_lines(self, difference: Difference) -> Iterator[str]:
        for pair in difference.tools:
            if pair.a is None or pair.b is None:
                continue
            name = escape_line(pair.name)
            for part, found in (("args", pair.arguments), ("result", pair.results)):
                for change in found:
                    yield self._field_line(f"{name} {part}", change)

    def _field_line(self, subject: str, change: Change) -> str:
        old, new = _shown(change.old), _shown(change.new)
        if self.surface.terminal and not self.full:
            room = max(30, self.surface.width)
            old, new = shorten_pair(old, new, room, self.surface.mark("more"))
        path = escape_line(change.path)
        joint = "" if not path or path.startswith("[") else "."
        arrow = self.surface.mark("change") if self.surface.terminal else "->"
        return f"!   {subject}{joint}{path}: {old} {arrow} {new}"


def step_lines(step: Step) -> list[str]:
    """A step as lines: its text, then each call and what came of it."""
    text = str(step.get("text") or "")
    lines = [escape_line(line) for line in text.split("\n")] if text else []
    for tool in step.get("tools") or []:
        lines.append(f"{escape_line(str(tool.get('name', '')))} {json_line(tool.get('args'))}")
        lines.append(f"  {_result(tool)}")
    return lines


def _result(tool: Mapping[str, Any]) -> str:
    if "result" not in tool:
        return "no result yet"
    outcome = of_value(tool["result"])
    if outcome.mark == "ok":
        return f"ok {json_line(tool['result'])}"
    return f"{outcome.label}: {escape_line(outcome.reason)}"


def _facing(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Lines that belong side by side: equal ones, then those that start with the same word."""
    words = [[line.lstrip().split(" ")[0] for line in lines] for lines in (left, right)]
    for row in align(left, right, words[0], words[1]):
        yield (
            None if row.a is None else left[row.a],
            None if row.b is None else right[row.b],
        )


def _side(line: str | None, style: str, changed: bool) -> Text:
    from rich.text import Text

    return Text(line or "", style if changed else "", overflow="fold")


def _shown(value: Any) -> str:
    return MISSING.value if value is MISSING else json_line(value)


def _same(group: Sequence[Difference]) -> str:
    return f"{_numbers(group)} {'is' if len(group) == 1 else 'are'} the same"


def _numbers(group: Sequence[Difference]) -> str:
    first, last = group[0], group[-1]
    word = "step" if first is last else "steps"
    a = _range(first.a, last.a)
    b = _range(first.b, last.b)
    return f"{word} {a}" if a == b else f"{word} {a} / {b}"


def _range(first: int | None, last: int | None) -> str:
    return str(first) if first == last else f"{first}-{last}"
