"""Sessions and their forks as trees of lanes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from .history import what_happened
from .text import escape_line

Node = Mapping[str, Any]


@dataclass(slots=True)
class Stretch:
    """Consecutive saves of one step: what it did, and the sessions forked from one of them."""

    first_seq: int
    step: int
    text: str
    forks: list[Lane] = field(default_factory=list)


@dataclass(slots=True)
class Lane:
    """One session.

    Attributes:
        id: the session id, not escaped.
        status: empty for a deleted session.
        origin: where it was forked from (`step 2`), empty for a session that is no fork.
        parent_id: the session it was forked from, or None.
        early: forks from saves that are no longer kept.
        stretches: its steps, oldest first.
    """

    id: str
    status: str = ""
    step: str = ""
    origin: str = ""
    parent_id: str | None = None
    deleted: bool = False
    early: list[Lane] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)


def families(nodes: Sequence[Node]) -> list[Lane]:
    """The sessions that are no forks, each with its forks in place, in the order given.

    A parent that is not among the nodes becomes a deleted session. Damaged links that form a circle are cut.
    """
    lanes = {str(node["sessionId"]): _lane(node) for node in nodes}
    cut = _circles(lanes)
    roots: list[Lane] = []
    for node in nodes:
        lane = lanes[str(node["sessionId"])]
        if lane.parent_id is None or lane.id in cut:
            roots.append(lane)
            continue
        parent = lanes.get(lane.parent_id)
        if parent is None:
            parent = lanes[lane.parent_id] = Lane(lane.parent_id, deleted=True)
            roots.append(parent)
        _attach(parent, lane, node["parent"])
    return roots


def _lane(node: Node) -> Lane:
    parent = node.get("parent") or {}
    step, seq = parent.get("step"), parent.get("seq")
    origin = f"step {step}" if step is not None else f"save {seq}" if seq is not None else ""
    return Lane(
        str(node["sessionId"]),
        str(node.get("status") or ""),
        str(node.get("step", "")),
        origin,
        str(parent["sessionId"]) if parent else None,
        stretches=_stretches(node.get("steps") or [], bool(parent)),
    )


def _stretches(saves: Sequence[Mapping[str, Any]], is_fork: bool) -> list[Stretch]:
    ordered = sorted(saves, key=lambda save: int(save.get("seq") or 0))
    found: list[Stretch] = []
    for step, group in groupby(ordered, lambda save: int(save.get("step") or 0)):
        members = [save for save in group if not (is_fork and save.get("event") == "fork")]
        if members:
            found.append(Stretch(int(members[0].get("seq") or 0), step, _summary(members)))
    return found


def _summary(saves: Sequence[Mapping[str, Any]]) -> str:
    """What a step did: the tools it asked for, else its last save; and its end if the run ended there."""
    tools = [str(name) for save in saves if save.get("event") == "turn" for name in save.get("tools") or []]
    last = saves[-1]
    if not tools or last.get("event") in ("finish", "abort", "pause"):
        return what_happened(last)
    return escape_line(", ".join(tools))


def _circles(lanes: Mapping[str, Lane]) -> set[str]:
    """One session of each circle of parents."""
    found: set[str] = set()
    seen: set[str] = set()
    for start in lanes:
        path: set[str] = set()
        above: str | None = start
        while above is not None and above in lanes and above not in seen:
            seen.add(above)
            path.add(above)
            above = lanes[above].parent_id
        if above is not None and above in path:
            found.add(above)
    return found


def _attach(parent: Lane, lane: Lane, link: Mapping[str, Any]) -> None:
    seq, step = link.get("seq"), link.get("step")
    for stretch in reversed(parent.stretches):
        if stretch.first_seq <= int(seq) if seq is not None else stretch.step == step:
            stretch.forks.append(lane)
            return
    parent.early.append(lane)
