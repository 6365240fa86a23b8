"""The view of two runs compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .comparison import Difference, Kind, compare
from .console import Surface
from .diff_steps import StepViews
from .text import escape_line

_KINDS: dict[Kind, str] = {
    "call": "other calls",
    "arguments": "arguments",
    "decision": "decision",
    "result": "result",
    "text": "text",
    "order": "only the order of the calls",
}


def show_diff(
    surface: Surface,
    a_name: str,
    b_name: str,
    diff: Mapping[str, Any],
    full: bool = False,
    stat: bool = False,
) -> None:
    """Print a comparison: `{"a": [step], "b": [step], "divergedAt", "drift", "common"?}`.

    A step is `{"text", "tools": [{"name", "args", "result"}]}`; a call without `result` is pending. Steps
    that are the same are counted in one line unless `full`, which also shows long values whole on a
    terminal. `stat` prints counts only. In a pipe nothing is cut and lines start with `=` same, `~` changed,
    `-` only in the first, `+` only in the second, `!` a field that changed, `#` the run as a whole.
    """
    names = escape_line(a_name), escape_line(b_name)
    a, b, diverged_at = diff.get("a") or [], diff.get("b") or [], diff.get("divergedAt")
    differences = compare(a, b, diverged_at)
    say = StepViews(surface, a, b, full).say
    say(f"--- {names[0]}", "red")
    say(f"+++ {names[1]}", "green")
    if diff.get("common"):
        say(f"common origin: {_origin(diff['common'])}", "dim")
    say(headline(differences, names, diverged_at, bool(diff.get("drift"))), "bold")
    if stat:
        for line in _counts(differences, names):
            say(line)
    elif full or diverged_at is not None:
        StepViews(surface, a, b, full).show(differences)
    for line in _drift(diff.get("drift") or []):
        say(line)


def headline(
    differences: Sequence[Difference], names: tuple[str, str], diverged_at: int | None, drifted: bool = False
) -> str:
    """Where the runs first part, and in what."""
    if diverged_at is None:
        return "no step differs" if drifted else "no difference"
    first = next((d for d in differences if d.kind != "same"), None)
    start = f"first difference: step {diverged_at}"
    if first is None:
        return start
    if first.kind in ("only-a", "only-b"):
        return f"{start}, only in {names[first.kind == 'only-b']}"
    tools = dict.fromkeys(escape_line(pair.name) for pair in first.tools if pair.kind == first.kind)
    if not tools:
        return f"{start}, {_KINDS[first.kind]}"
    joint = ": " if first.kind == "call" else " of "
    return f"{start}, {_KINDS[first.kind]}{joint}{', '.join(tools)}"


def _origin(common: Any) -> str:
    if not isinstance(common, Mapping):
        return escape_line(str(common))
    origin = escape_line(str(common.get("sessionId", "")))
    details = [f"{key} {common[key]}" for key in ("step", "seq") if common.get(key) is not None]
    return f"{origin} ({', '.join(details).replace('seq', 'save')})" if details else origin


def _counts(differences: Sequence[Difference], names: tuple[str, str]) -> Iterator[str]:
    kinds = [difference.kind for difference in differences]
    only_a, only_b, same = (kinds.count(kind) for kind in ("only-a", "only-b", "same"))
    yield f"{same} same, {len(kinds) - same - only_a - only_b} changed"
    yield f"{only_a} only in {names[0]}, {only_b} only in {names[1]}"
    for kind, label in _KINDS.items():
        if kinds.count(kind):
            yield f"  {label}: {kinds.count(kind)}"


def _drift(drift: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for item in drift:
        field, old, new = (escape_line(str(item.get(key, ""))) for key in ("field", "committed", "current"))
        yield f"# {field}: {old or '(none)'} -> {new or '(none)'}"
