"""Which sessions a pruning removes: pure, from what the sessions' newest saves say."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from .reader import SessionSummary


@dataclass(frozen=True, slots=True)
class Criteria:
    """What a session must meet to be removed: all that is given. With nothing given none is.

    Attributes:
        named: `(agent, session id)` of the sessions that were named, or None. Only a named session is removed
            that is unfinished or waits for an approval.
        before: its newest save was made before that instant.
        keep: it is not one of that many sessions with the newest saves.
        status: its status.
    """

    named: Collection[tuple[str, str]] | None = None
    before: datetime | None = None
    keep: int | None = None
    status: str | None = None


def choose(sessions: Iterable[SessionSummary], criteria: Criteria) -> list[SessionSummary]:
    """The sessions to remove, the one saved longest ago first.

    The age of a session is that of its newest save as it was recorded then. One that cannot be read, or does
    not say when it was saved, is never chosen for its age.
    """
    if criteria == Criteria():
        return []
    by_age = sorted((each for each in sessions if each.problem is None), key=_saved_at, reverse=True)
    return [each for each in by_age[criteria.keep or 0 :] if _meets(each, criteria)][::-1]


def _meets(session: SessionSummary, criteria: Criteria) -> bool:
    if criteria.named is None:
        if session.status != "finished":
            return False
    elif (session.agent, session.session_id) not in criteria.named:
        return False
    if criteria.status not in (None, session.status):
        return False
    return criteria.before is None or (_has_instant(session) and _saved_at(session) < criteria.before)


def _has_instant(session: SessionSummary) -> bool:
    return _saved_at(session) != _NEVER


_NEVER = datetime.min.replace(tzinfo=UTC)


def _saved_at(session: SessionSummary) -> datetime:
    try:
        instant = datetime.fromisoformat(session.at)
    except ValueError:
        return _NEVER
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
