"""`lousho history`: the kept saves of a session, or its family as a graph."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .globals import Globals, command
from .output import notice, print_json

if TYPE_CHECKING:
    from ..execution.kept import KeptSaves
    from ..stores.trail import Save
    from .place import FoundSession, Place


@command
def history(
    options: Globals,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id, or @last.")],
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the newest N saves.")
    ] = None,
    step: Annotated[
        int | None, typer.Option("--step", metavar="N", help="Only the saves of this step.")
    ] = None,
    graph: Annotated[bool, typer.Option("--graph", help="Draw the session with its forks.")] = False,
) -> None:
    """List the kept saves of a session, newest first."""
    from ..errors import ConfigurationError
    from .place import find_session, open_place

    if graph and (limit is not None or step is not None):
        raise ConfigurationError("--graph shows every step", hint="leave out --limit and --step")
    place = open_place(options)
    found = find_session(place, session, deleted=True)
    if graph:
        _graph(place, found)
    else:
        _saves(place, found, limit, step)


def _saves(place: Place, found: FoundSession, limit: int | None, step: int | None) -> None:
    from ..execution.kept import not_kept
    from ..stores.lineage import read_header
    from ..stores.reader import read_history

    saves = read_history(found.folder, found.session_id, place.settings.history_limit)
    header = read_header(found.folder, found.session_id)
    parent = header.parent if header is not None else None
    kept = _kept(found, saves, parent)
    if step is not None:
        saves = [save for save in saves if save.step == step]
        if not saves:
            raise not_kept(found.session_id, kept, from_step=step)
    entries = [entry_json(save) for save in saves[:limit]]
    dropped = (kept.saves[-1][0] if kept.saves else kept.newest + 1) - kept.first
    if place.options.json:
        data: dict[str, Any] = {
            "sessionId": found.session_id,
            "agent": found.folder.agent,
            "entries": entries,
        }
        if parent is not None:
            data["parent"] = parent
        print_json({**data, "dropped": dropped} if dropped else data)
        return
    _show(place, found.session_id, [_with_origin(entry, parent) for entry in entries])
    if dropped and not place.options.quiet:
        notice(_about_dropped(kept, place.settings.history_limit))


def entry_json(save: Save) -> dict[str, Any]:
    """A save as it is listed; where it lies in the journal is nobody's business."""
    data = save.to_json()
    del data["end"]
    return data


def _kept(found: FoundSession, saves: list[Save], parent: dict[str, Any] | None) -> KeptSaves:
    from ..execution.kept import KeptSaves
    from ..stores.reader import summary

    first = parent["seq"] + 1 if parent is not None else 1
    if saves:
        return KeptSaves(saves[0].seq, tuple((save.seq, save.step) for save in saves), first)
    newest = summary(found.folder.journal(found.session_id), found.folder.agent, found.session_id)
    return KeptSaves(newest.seq if newest is not None else first - 1, (), first)


def _about_dropped(kept: KeptSaves, limit: int) -> str:
    if not kept.saves:
        return f"no saves are kept: history_limit {limit}"
    seq, step = kept.saves[-1]
    return f"older saves were dropped: history_limit {limit} (the oldest kept is save {seq}, step {step})"


def _with_origin(entry: dict[str, Any], parent: dict[str, Any] | None) -> dict[str, Any]:
    if entry["event"] != "fork" or parent is None:
        return entry
    step = f" step {parent['step']}" if parent.get("step") is not None else ""
    return {**entry, "note": f"{parent['sessionId']}{step} (save {parent['seq']})"}


def _show(place: Place, session_id: str, entries: list[dict[str, Any]]) -> None:
    from ..render.console import surface_for
    from ..render.history import show_history

    show_history(surface_for(sys.stdout, no_color=place.options.no_color), session_id, entries)


def _graph(place: Place, found: FoundSession) -> None:
    nodes = _nodes(place, found)
    if place.options.json:
        print_json({"sessionId": found.session_id, "sessions": nodes})
        return
    from ..render.console import surface_for
    from ..render.graph import show_graph

    surface = surface_for(sys.stdout, no_color=place.options.no_color)
    views = [{**node, "steps": node["entries"]} for node in nodes]
    show_graph(surface, views, found.session_id)


def _nodes(place: Place, found: FoundSession) -> list[dict[str, Any]]:
    from ..stores.lineage import family, read_header
    from ..stores.reader import read_history

    members = [(each.session_id, each.status, each.step) for each in family(found.folder, found.session_id)]
    if found.session_id not in (name for name, _, _ in members):
        members.append((found.session_id, "deleted", 0))
    nodes = []
    for session_id, status, step in members:
        header = read_header(found.folder, session_id)
        saves = read_history(found.folder, session_id, place.settings.history_limit)
        node = {"sessionId": session_id, "status": status, "step": step}
        if header is not None and header.parent is not None:
            node["parent"] = header.parent
        nodes.append({**node, "entries": [entry_json(save) for save in saves]})
    return nodes
