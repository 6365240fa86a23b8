"""`lousho diff`: two runs compared, aligned where they part."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .errors import FAILED
from .globals import Globals, command
from .output import print_json

if TYPE_CHECKING:
    from ..execution.state import State
    from ..execution.steps import Trajectory
    from ..stores.backend import Backend
    from ..stores.lineage import Origin
    from .place import Place

_SESSION_HELP = "A session's id, @last, or SESSION@SEQ for one of its saves."


@command
def diff(
    options: Globals,
    a: Annotated[str, typer.Argument(metavar="A", help=_SESSION_HELP)],
    b: Annotated[str, typer.Argument(metavar="B", help="The one to compare with it, named likewise.")],
    stat: Annotated[bool, typer.Option("--stat", help="Only count what differs.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Show what is the same too, and long values whole.")
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 1 if the runs differ.")] = False,
) -> int:
    """Compare two runs: where they part, and in what."""
    from ..execution.steps import diverged_at, drift
    from .place import open_place

    place = open_place(options)
    one, other = _read(place, a), _read(place, b)
    trajectory, against = one.trajectory(), other.trajectory()
    found = drift(trajectory, against)
    data: dict[str, Any] = {
        "a": [step.to_json() for step in trajectory.steps],
        "b": [step.to_json() for step in against.steps],
        "divergedAt": diverged_at(trajectory.steps, against.steps),
        "drift": [difference._asdict() for difference in found],
    }
    origin = _common(one, other)
    if origin is not None:
        data["common"] = origin.to_json()
    if options.json:
        print_json({**data, "differences": _differences(data)})
    else:
        _show(options, one.name, other.name, data, full, stat)
    return FAILED if exit_code and (data["divergedAt"] is not None or found) else 0


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two runs: where it lies, its state, and how the views call it."""

    backend: Backend
    state: State
    name: str

    def trajectory(self) -> Trajectory:
        from ..execution.steps import Trajectory, ending, steps_of

        ended = ending(self.state.status, self.state.finish_reason)
        return Trajectory(list(steps_of(self.state.log)), ended)


def _read(place: Place, given: str) -> _Side:
    from .place import find_save

    found, seq = find_save(place, given)
    state = found.backend.state(found.session_id, seq)
    return _Side(found.backend, state, found.session_id if seq is None else f"{found.session_id}@{seq}")


def _common(a: _Side, b: _Side) -> Origin | None:
    from ..stores.lineage import Origin, ancestry, common_origin

    if a.backend is not b.backend:
        return None
    chains = (
        ancestry(side.backend, Origin(str(side.state.session_id), side.state.seq, side.state.step))
        for side in (a, b)
    )
    return common_origin(*chains)


def _differences(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The aligned steps that differ, each with what differs first and the fields that do."""
    from ..render.comparison import compare

    differing = (each for each in compare(data["a"], data["b"], data["divergedAt"]) if each.kind != "same")
    return [
        {
            "a": each.a,
            "b": each.b,
            "kind": each.kind,
            "tools": [
                {
                    "name": pair.name,
                    "kind": pair.kind,
                    "args": [_change(*change) for change in pair.arguments],
                    "result": [_change(*change) for change in pair.results],
                }
                for pair in each.tools
            ],
        }
        for each in differing
    ]


def _change(path: str, old: Any, new: Any) -> dict[str, Any]:
    """A field that differs; a side that lacks it has no key."""
    from ..render.fields import MISSING

    sides = {"old": old, "new": new}
    return {"path": path} | {side: value for side, value in sides.items() if value is not MISSING}


def _show(options: Globals, a: str, b: str, data: dict[str, Any], full: bool, stat: bool) -> None:
    from ..render.console import surface_for
    from ..render.diff import show_diff

    show_diff(surface_for(sys.stdout, no_color=options.no_color), a, b, data, full=full, stat=stat)
