"""Which sessions come from which: a fork's first line names the save it was made from. Reading only."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import ConfigurationError
from ..execution.messages import JsonObject
from .files import open_regular, storage
from .folder import AgentFolder
from .journal import Header, parse_header
from .reader import SessionSummary, summaries

_LONGEST_HEADER = 64 * 1024


@dataclass(frozen=True, slots=True)
class Origin:
    """A save that a session comes from; `step` is None where nobody noted it."""

    session_id: str
    seq: int
    step: int | None = None

    def to_json(self) -> JsonObject:
        data: JsonObject = {"sessionId": self.session_id, "seq": self.seq}
        return data if self.step is None else {**data, "step": self.step}


def read_header(folder: AgentFolder, session_id: str) -> Header | None:
    """The first line of a session's journal; None if there is none, or it is about another session.

    Raises:
        StorageError: the file cannot be read.
    """
    path = folder.journal(session_id)
    with storage(path, "read"):
        try:
            fd = open_regular(path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with os.fdopen(fd, "rb") as file:
            header = parse_header(file.readline(_LONGEST_HEADER).rstrip(b"\n"))
    return header if header is not None and header.session_id == session_id else None


def ancestry(folder: AgentFolder, save: Origin) -> list[Origin]:
    """`save`, the save its session was forked from, the one that session was forked from, and so on."""
    chain = [save]
    seen = {save.session_id}
    while (parent := _parent(folder, chain[-1].session_id)) and parent.session_id not in seen:
        chain.append(parent)
        seen.add(parent.session_id)
    return chain


def common_origin(a: Iterable[Origin], b: Iterable[Origin]) -> Origin | None:
    """The last save that two ancestries share, if they are of different sessions."""
    others = {each.session_id: each for each in b}
    for number, each in enumerate(a):
        other = others.get(each.session_id)
        if other is not None:
            same_session = number == 0 and other is next(iter(others.values()))
            return None if same_session else min(each, other, key=lambda origin: origin.seq)
    return None


def family(folder: AgentFolder, session_id: str) -> list[SessionSummary]:
    """A session, the sessions it comes from, and all their forks, by name. Damaged files are left out."""
    members = {each.session_id: each for each in summaries(folder) if each.problem is None}
    children: dict[str, list[str]] = defaultdict(list)
    for each in members.values():
        if each.parent:
            children[each.parent["sessionId"]].append(each.session_id)
    found: set[str] = set()
    pending = [_top(members, session_id)]
    while pending:
        current = pending.pop()
        if current not in found:
            found.add(current)
            pending += children[current]
    return [each for name, each in sorted(members.items()) if name in found]


def _top(members: dict[str, SessionSummary], session_id: str) -> str:
    """The session all of them come from, which may be gone."""
    seen: set[str] = set()
    while session_id not in seen:
        seen.add(session_id)
        member = members.get(session_id)
        if member is None or not member.parent:
            break
        session_id = member.parent["sessionId"]
    return session_id


def _parent(folder: AgentFolder, session_id: str) -> Origin | None:
    try:
        header = read_header(folder, session_id)
    except ConfigurationError:
        return None  # A damaged link names what cannot be a session.
    if header is None or header.parent is None:
        return None
    step = header.parent.get("step")
    return Origin(header.parent["sessionId"], header.parent["seq"], step if isinstance(step, int) else None)
