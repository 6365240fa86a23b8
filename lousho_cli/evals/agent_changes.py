"""In what an agent is another one than at a recording: its model, instructions, tools and settings. Pure.

The first requests of the two runs tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from ..execution.messages import JsonObject, text_of
from ..providers.canonical_json import canonical_json
from ..providers.cassette import CassetteRun
from ..providers.cassette_miss import difference
from ..providers.cassette_request import CanonicalRequest

_SHOWN = 80


def agent_changes(recorded: CassetteRun, now: CassetteRun) -> list[str]:
    """What changed, each in a few words; nothing where a run holds no call of a model."""
    if not recorded.calls or not now.calls:
        return []
    before, after = recorded.calls[0], now.calls[0]
    found = []
    if before.model != after.model:
        found.append(f"model was {before.model}, is {after.model}")
    return [*found, *_terms(before.request, after.request)]


def _terms(before: CanonicalRequest, after: CanonicalRequest) -> Iterator[str]:
    old, new = _instructions(before), _instructions(after)
    if old != new:
        yield f"instructions changed: {_first_line(old, new)}"
    yield from _tools(_by_name(before), _by_name(after))
    changed = difference(before.settings, after.settings, "settings")
    if changed is not None:
        yield f"{changed.path} was {changed.recorded}, is {changed.asked}"


def _instructions(request: CanonicalRequest) -> str:
    first = request.all_messages()[:1]
    return text_of(first[0]["content"]) if first and first[0]["role"] == "system" else ""


def _first_line(old: str, new: str) -> str:
    """The first line that differs."""
    lines = zip_longest(old.split("\n"), new.split("\n"))
    number, (was, is_now) = next((n, pair) for n, pair in enumerate(lines, 1) if pair[0] != pair[1])
    return f"line {number} was {_shown(was)}, is {_shown(is_now)}"


def _shown(line: str | None) -> str:
    if line is None:
        return "missing"
    return f'"{line}"' if len(line) <= _SHOWN else f'"{line[:_SHOWN]}..."'


def _by_name(request: CanonicalRequest) -> dict[str, JsonObject]:
    return {str(tool["name"]): tool["parameters"] for tool in request.tools}


def _tools(before: dict[str, JsonObject], after: dict[str, JsonObject]) -> Iterator[str]:
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    for name in gone:
        twin = next(
            (each for each in new if canonical_json(after[each]) == canonical_json(before[name])), None
        )
        if twin is None:
            yield f"tool {name} is gone"
        else:
            new.remove(twin)
            yield f"tool {name} is now called {twin}"
    yield from (f"tool {name} is new" for name in new)
    for name in sorted(before.keys() & after.keys()):
        changed = difference(before[name], after[name], "")
        if changed is not None:
            path = changed.path.removeprefix(".")
            yield f"tool {name} takes other arguments: {path} was {changed.recorded}, is {changed.asked}"
