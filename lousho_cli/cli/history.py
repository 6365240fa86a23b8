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

    saves = found.backend.history(found.session_id)
    header = found.backend.header(found.session_id)
    parent = header.parent if header is not None else None
    kept = _kept(found, saves, parent)
    if step is not None:
        saves = [save for save in saves if save.step == step]
        if not saves:
            raise not_kept(found.session_id, found.backend.kept_saves(found.session_id), from_step=step)
    entries = [entry_json(save) for save in saves[:limit]]
    dropped = _dropped(kept, place.settings.history_limit)
    if place.options.json:
        data: dict[str, Any] = {
            "sessionId": found.session_id,
            "agent": found.agent,
            "entries": entries,
        }
        if parent is not None:
            data["parent"] = parent
        print_json({**data, "dropped": dropped} if dropped else data)
        return
    _show(place, found.session_id, [_with_origin(entry, parent) for entry in entries])
    if not place.options.quiet:
        _tell_what_is_missing(kept, dropped, place.settings.history_limit)


def entry_json(save: Save) -> dict[str, Any]:
    """A save as it is listed; where it lies in the journal is nobody's business."""
    data = save.to_json()
    del data["end"]
    return data


def _kept(found: FoundSession, saves: list[Save], parent: dict[str, Any] | None) -> KeptSaves:
    from ..execution.kept import KeptSaves

    first = parent["seq"] + 1 if parent is not None else 1
    if saves:
        return KeptSaves(saves[0].seq, tuple((save.seq, save.step) for save in saves), first)
    newest = found.backend.summary(found.session_id)
    return KeptSaves(newest.seq if newest is not None else first - 1, (), first)


def _dropped(kept: KeptSaves, limit: int) -> int:
    """How many saves are older than the oldest one kept."""
    if kept.saves:
        return kept.saves[-1][0] - kept.first
    return 0 if limit else kept.newest + 1 - kept.first


def _tell_what_is_missing(kept: KeptSaves, dropped: int, limit: int) -> None:
    if not kept.saves:
        # A session of the older layout may have been saved before there was a history.
        notice(f"no saves are kept: history_limit {limit}" if dropped else "no saves are kept yet")
    elif dropped:
        seq, step = kept.saves[-1]
        oldest = f"the oldest kept is save {seq}, step {step}"
        notice(f"older saves were dropped: history_limit {limit} ({oldest})")


def _with_origin(entry: dict[str, Any], parent: dict[str, Any] | None) -> dict[str, Any]:
    if entry["event"] != "fork" or parent is None:
        return entry
    step = f" step {parent['step']}" if parent.get("step") is not None else ""
    return {**entry, "note": f"from {parent['sessionId']}{step} (save {parent['seq']})"}


def _show(place: Place, session_id: str, entries: list[dict[str, Any]]) -> None:
    from ..render.console import surface_for
    from ..render.history import show_history

    show_history(surface_for(sys.stdout, no_color=place.options.no_color), session_id, entries)


def _graph(place: Place, found: FoundSession) -> None:
    nodes = _nodes(found)
    if place.options.json:
        print_json({"sessionId": found.session_id, "sessions": nodes})
        return
    from ..render.console import surface_for
    from ..render.graph import show_graph

    surface = surface_for(sys.stdout, no_color=place.options.no_color)
    views = [{**node, "steps": node["entries"]} for node in nodes]
    show_graph(surface, views, found.session_id)


def _nodes(found: FoundSession) -> list[dict[str, Any]]:
    from ..stores.lineage import family

    nodes = []
    for each in family(found.backend, found.session_id):
        node: dict[str, Any] = {"sessionId": each.session_id, "status": each.status}
        if each.step is not None:
            node["step"] = each.step
        if each.parent is not None:
            node["parent"] = each.parent
        readable = each.status != "damaged"
        saves = found.backend.history(each.session_id) if readable else []
        nodes.append({**node, "entries": [entry_json(save) for save in saves]})
    return nodes
