"""Which sessions come from which: a fork names the save it was made from. Reading only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from ..execution.messages import JsonObject
from .journal import Header

if TYPE_CHECKING:
    from .backend import Backend


@dataclass(frozen=True, slots=True)
class Origin:
    """A save that a session comes from; `step` is None where nobody noted it."""

    session_id: str
    seq: int
    step: int | None = None

    def to_json(self) -> JsonObject:
        data: JsonObject = {"sessionId": self.session_id, "seq": self.seq}
        return data if self.step is None else {**data, "step": self.step}


def ancestry(backend: Backend, save: Origin) -> list[Origin]:
    """`save`, the save its session was forked from, the one that session was forked from, and so on."""
    chain = [save]
    seen = {save.session_id}
    header = _header_of(backend, save.session_id)
    while header is not None and header.parent is not None and header.parent["sessionId"] not in seen:
        above = _header_of(backend, header.parent["sessionId"])
        if above is not None and not _may_be_parent(above.created_at, header.created_at):
            break
        chain.append(_origin(header.parent))
        seen.add(chain[-1].session_id)
        header = above
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


@dataclass(frozen=True, slots=True)
class Relative:
    """A session of a family.

    Attributes:
        status: of its newest save; `deleted` if only its history is left, `damaged` if it cannot be read.
        step: None unless it can be read.
        parent: the save it was forked from, or None.
        created_at: UTC, ISO 8601; empty where it is not known.
    """

    session_id: str
    status: str
    step: int | None = None
    parent: JsonObject | None = None
    created_at: str = ""


def family(backend: Backend, session_id: str) -> list[Relative]:
    """A session, the sessions it comes from, and all their forks, by name."""
    known = _relatives(backend, session_id)
    children: dict[str, list[str]] = defaultdict(list)
    for each in known.values():
        if each.parent:
            children[each.parent["sessionId"]].append(each.session_id)
    found: set[str] = set()
    pending = [_top(known, session_id)]
    while pending:
        current = pending.pop()
        if current not in found:
            found.add(current)
            pending += children[current]
    return [each for name, each in sorted(known.items()) if name in found]


def _relatives(backend: Backend, session_id: str) -> dict[str, Relative]:
    """The sessions there are, and the deleted ones they come from as far as something is left of them."""
    known: dict[str, Relative] = {}
    wanted = [session_id]
    for each in backend.summaries():
        step = each.step if each.problem is None else None
        known[each.session_id] = Relative(each.session_id, each.status, step, each.parent, each.created_at)
        if each.parent:
            wanted.append(each.parent["sessionId"])
    while wanted:
        name = wanted.pop()
        header = _header_of(backend, name) if name not in known else None
        if header is not None:
            known[name] = Relative(name, "deleted", None, header.parent, header.created_at)
            if header.parent:
                wanted.append(header.parent["sessionId"])
    return {
        name: each if _is_linked(each, known) else replace(each, parent=None) for name, each in known.items()
    }


def _is_linked(child: Relative, known: Mapping[str, Relative]) -> bool:
    parent = known.get(child.parent["sessionId"]) if child.parent else None
    return parent is None or _may_be_parent(parent.created_at, child.created_at)


def _may_be_parent(parent_created: str, child_created: str) -> bool:
    """A session younger than its fork is another one, which took the name of a deleted parent."""
    return parent_created <= child_created


def _top(known: dict[str, Relative], session_id: str) -> str:
    """The session all of them come from, which may be gone."""
    seen: set[str] = set()
    while session_id not in seen:
        seen.add(session_id)
        member = known.get(session_id)
        if member is None or not member.parent:
            break
        session_id = member.parent["sessionId"]
    return session_id


def _origin(parent: JsonObject) -> Origin:
    step = parent.get("step")
    return Origin(parent["sessionId"], parent["seq"], step if isinstance(step, int) else None)


def _header_of(backend: Backend, session_id: str) -> Header | None:
    try:
        return backend.header(session_id)
    except ConfigurationError:
        return None  # A damaged link names what cannot be a session.
