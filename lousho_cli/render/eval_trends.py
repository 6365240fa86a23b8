"""The view of how similar the last drift runs of each case were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .console import Surface
from .table import Cell, Column, show_table
from .text import escape_line

_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.-~=+*#"
_COLUMNS = (
    Column("EVAL"),
    Column("CASE"),
    Column("RUNS", right=True),
    Column("FROM", right=True),
    Column("TO", right=True),
    Column("TREND"),
)


def show_trends(surface: Surface, cases: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each case that has a trend: runs, the first similarity, the last, and all as a line.

    In a pipe it is `trend`, eval, case, `declining` or nothing, and the similarities, the newest last.
    """
    rows = []
    for case in cases:
        if "trend" not in case:
            continue
        values, declines = case["trend"]["similarity"], case["trend"]["declines"]
        names = escape_line(case["eval"]), escape_line(case["case"])
        if not surface.terminal:
            written = " ".join(f"{value:.3f}" for value in values)
            surface.line("trend", *names, "declining" if declines else "", written)
            continue
        line = sparkline(values, _BARS if surface.unicode else _PLAIN_BARS)
        look = "red" if declines else ""
        numbers = (str(len(values)), f"{values[0]:.3f}", f"{values[-1]:.3f}")
        shown = f"{line} declining" if declines else line
        rows.append([*map(Cell, (*names, *numbers)), Cell(shown, look)])
    if rows:
        show_table(surface, _COLUMNS, rows)


def sparkline(values: Sequence[float], bars: str) -> str:
    """Values as bars from the lowest of them to the highest; all high where they are the same."""
    low, high = min(values), max(values)
    if high == low:
        return bars[-1] * len(values)
    return "".join(bars[round((value - low) / (high - low) * (len(bars) - 1))] for value in values)


def fall(trend: Mapping[str, Any]) -> str:
    """A decline in words."""
    values = trend["similarity"]
    return f"similarity went from {values[0]:.3f} to {values[-1]:.3f} in {len(values)} runs"
