"""The view of a session with its forks, drawn like a commit graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .console import Surface
from .family import Lane, Stretch, families
from .history import STATUS_STYLE
from .text import escape_line

Piece = tuple[str, str]
Line = list[Piece]
Item = Stretch | Lane | str

_ROOM_FOR_TEXT = 48
_LONGEST_PLAIN_STRETCH = 4
_UNICODE = {"node": "● ", "gone": "○ ", "lane": "│ ", "fork": "├─", "last": "╰─", "end": "╰ ", "here": "←"}
_ASCII = {"node": "* ", "gone": "o ", "lane": "| ", "fork": "|-", "last": "`-", "end": "` ", "here": "<-"}


def show_graph(surface: Surface, nodes: Sequence[Mapping[str, Any]], session_id: str | None = None) -> None:
    """Print sessions as a tree: each session's steps in a lane of its own, forks leaving at their step.

    A node is `{sessionId, parent: {sessionId, seq, step?} | None, status, step, steps: [save]}`, its saves
    like the entries of the history. `session_id` is marked as the one asked for. A parent that is not among
    the nodes is shown as deleted. Trees too deep for the width go on below, at the left margin.
    """
    width = surface.width if surface.terminal else 120
    drawing = Drawing(
        _UNICODE if surface.unicode else _ASCII, session_id, max(3, (width - _ROOM_FOR_TEXT) // 2)
    )
    for line in drawing.lines(families(nodes)):
        if surface.terminal:
            from rich.text import Text

            surface.console.print(Text.assemble(*line), soft_wrap=True)
        else:
            surface.line("".join(text for text, _ in line).rstrip())


@dataclass
class Drawing:
    """Draws lanes with one set of glyphs, at most `deepest` lanes beside each other."""

    glyphs: Mapping[str, str]
    marked: str | None
    deepest: int
    below: list[Lane] = field(default_factory=list)

    def lines(self, roots: Sequence[Lane]) -> Iterator[Line]:
        pending = list(reversed(roots))
        while pending:
            lane = pending.pop()
            origin = f"of {escape_line(lane.parent_id)}" if lane.parent_id is not None else ""
            yield self._head(lane, origin)
            yield from self._lane(lane, "", 1)
            pending += reversed(self.below)
            self.below.clear()

    def _head(self, lane: Lane, origin: str = "") -> Line:
        glyph = self.glyphs["gone" if lane.deleted else "node"]
        line: Line = [(glyph, "dim" if lane.deleted else "cyan")]
        line.append((escape_line(lane.id), "dim" if lane.deleted else "bold"))
        if lane.deleted:
            return [*line, ("  deleted", "dim")]
        line.append((f"  {escape_line(lane.status)}", STATUS_STYLE.get(lane.status, "")))
        details = [f"step {lane.step}" if lane.step else ""]
        if lane.origin or origin:
            details.append(f"fork {origin} from {lane.origin}".replace("  ", " "))
        line.append(("".join(f"  {detail}" for detail in details if detail), "dim"))
        if lane.id == self.marked:
            line.append((f"  {self.glyphs['here']} this session", "bold yellow"))
        return line

    def _lane(self, lane: Lane, prefix: str, depth: int) -> Iterator[Line]:
        items = _items(lane)
        for number, item in enumerate(items):
            last = number == len(items) - 1
            if isinstance(item, Lane):
                yield [(prefix + self.glyphs["last" if last else "fork"], "dim"), *self._head(item)]
                inner = prefix + ("  " if last else self.glyphs["lane"])
                if depth < self.deepest or not _items(item):
                    yield from self._lane(item, inner, depth + 1)
                else:
                    self.below.append(item)
                    yield [(inner + self.glyphs["end"], "dim"), ("drawn below", "dim")]
            else:
                yield [(prefix + self.glyphs["end" if last else "lane"], "dim"), *_step(item)]


def _items(lane: Lane) -> list[Item]:
    """What hangs on a lane, in order; long stretches of steps without forks are counted."""
    items: list[Item] = list(lane.early)
    quiet: list[Stretch] = []
    for stretch in lane.stretches:
        quiet.append(stretch)
        if stretch.forks:
            items += _counted(quiet)
            items += stretch.forks
            quiet = []
    return items + _counted(quiet)


def _counted(quiet: Sequence[Stretch]) -> list[Item]:
    if len(quiet) <= _LONGEST_PLAIN_STRETCH:
        return list(quiet)
    return [quiet[0], f"{len(quiet) - 2} more steps", quiet[-1]]


def _step(item: Stretch | str) -> Line:
    if isinstance(item, str):
        return [(item, "dim")]
    return [(f"{item.step}  ", "dim"), (item.text, "")]
