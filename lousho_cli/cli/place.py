"""Finding what a command is about: the workspace, the agent, the session, the approval."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from ..agents.definition import agent_not_found
from ..config import Settings, load_settings
from ..errors import ConfigurationError, NotFoundError
from ..stores.backend import Backend, open_backends
from ..stores.files import real_folder
from ..stores.folder import agent_folder, agent_folders, agents_folder
from ..stores.ids import MAX_ID_LENGTH, check_id
from ..stores.reader import SessionSummary
from ..workspace import current_folder, require_workspace
from .globals import Globals
from .output import notice

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """A workspace with the settings that hold in it."""

    workspace: Path
    settings: Settings
    options: Globals

    @cached_property
    def backends(self) -> list[Backend]:
        """Where to look for sessions: of the named agent, or of all.

        Raises:
            NotFoundError: there is no agent of that name.
        """
        agent = self.options.agent
        found = self._open(agent)
        if agent is None or real_folder(agent_folder(self.workspace, agent).path):
            return found
        if any(each.agent == agent for backend in found for each in backend.summaries()):
            return found
        known = [each.agent for each in agent_folders(self.workspace)]
        raise agent_not_found(agent, agents_folder(self.workspace), known)

    def backend_of(self, agent: str) -> Backend:
        """Where the sessions of an agent go."""
        return self._open(agent)[0]

    def _open(self, agent: str | None) -> list[Backend]:
        return open_backends(self.settings.store, self.workspace, agent, self.settings.history_limit)

    def sessions(self) -> Iterator[tuple[Backend, SessionSummary]]:
        """The sessions of the named agent, or all, each with the place it is in."""
        for backend in self.backends:
            for each in backend.summaries():
                if self.is_wanted(each.agent):
                    yield backend, each

    def is_wanted(self, agent: str) -> bool:
        """Whether the user asked for this agent's sessions."""
        return self.options.agent in (None, agent)

    def command(self, *words: str) -> str:
        """A `lousho` command line for this place, for the person to type: it repeats how they named it."""
        line = ["lousho", *words]
        for flag, value in (("--agent", self.options.agent), ("--workspace", self.options.workspace)):
            if value is not None:
                line += [flag, value]
        return shlex.join(line)


@dataclass(frozen=True)
class FoundSession:
    """A session that is there, where it is, and the agent it is of."""

    backend: Backend
    session_id: str
    agent: str


@dataclass(frozen=True)
class FoundApproval:
    """An approval that is there, where it is, and the agent it is of."""

    backend: Backend
    approval_id: str
    agent: str


def open_place(options: Globals) -> Place:
    """The workspace a command works in.

    Raises:
        ConfigurationError: there is none, or its configuration is wrong.
    """
    return place_at(require_workspace(options.workspace, current_folder()), options)


def place_at(workspace: Path, options: Globals) -> Place:
    return Place(workspace, load_settings(workspace), options)


def find_session(place: Place, given: str, *, deleted: bool = False) -> FoundSession:
    """The session a user means: its id, or `@last`.

    Args:
        deleted: one that was deleted with its history kept will do too.

    Raises:
        NotFoundError: there is none.
        ConfigurationError: two agents have one of that id.
    """
    found = look_for_session(place, given, deleted=deleted)
    if found is None:
        raise _no_session(place, given)
    return found


def find_save(place: Place, given: str) -> tuple[FoundSession, int | None]:
    """The session or save a user means: a session as in `find_session`, or `SESSION@SEQ`.

    Returns:
        The session, and the seq of its save, or None for its present state.
    """
    found = look_for_session(place, given) if len(given) <= MAX_ID_LENGTH else None
    if found is not None:
        return found, None
    session, _, seq = given.rpartition("@")
    if session and seq.isascii() and seq.isdigit() and len(seq) < 16:
        return find_session(place, session, deleted=True), int(seq)
    return find_session(place, given), None


def look_for_session(place: Place, given: str, *, deleted: bool = False) -> FoundSession | None:
    """Like `find_session`, None where there is no such session. An exact id wins over `@last`."""
    check_id(given)
    known = [(backend, backend.summary(given)) for backend in place.backends]
    having = [FoundSession(backend, given, newest.agent) for backend, newest in known if newest is not None]
    if not having and deleted:
        kept = [backend for backend in place.backends if backend.history(given)]
        having = [FoundSession(backend, given, backend.owner(given) or "") for backend in kept]
    having = [each for each in having if place.is_wanted(each.agent)]
    if having:
        return _only(having, lambda each: each.agent, f"session {given!r}")
    return _newest_session(place) if given == "@last" else None


def refuse_taken_name(place: Place, session_id: str) -> None:
    """See that a new session of the named agent takes none of another's: in a database an id is unique.

    Raises:
        ConfigurationError: another agent has a session of that id.
    """
    for backend in place.backends:
        other = backend.summary(session_id)
        if other is not None and not place.is_wanted(other.agent):
            raise ConfigurationError(
                f"session {session_id!r} is one of agent {other.agent!r}",
                hint="give another name, or another --agent",
            )


def _newest_session(place: Place) -> FoundSession:
    readable = ((backend, each) for backend, each in place.sessions() if not each.problem)
    newest = max(readable, key=lambda found: found[1].at, default=None)
    if newest is None:
        raise NotFoundError("@last: there are no sessions yet", hint='start one: lousho run chat "Hello"')
    backend, session = newest
    notice(f"@last is session {session.session_id} of agent {session.agent}")
    return FoundSession(backend, session.session_id, session.agent)


def _no_session(place: Place, given: str) -> NotFoundError:
    if look_for_session(place, given, deleted=True) is not None:
        return NotFoundError(
            f"session {given!r} was deleted; only its history is left",
            hint=f"see {place.command('history', given)}, and fork it from there",
        )
    close = get_close_matches(given, [each.session_id for _, each in place.sessions()], n=1)
    there = f"{place.command('sessions')} lists the sessions there are"
    return NotFoundError(
        f"there is no session {given!r}", hint=f"did you mean {close[0]!r}? {there}" if close else there
    )


def find_approval(place: Place, given: str) -> FoundApproval:
    """The approval a user means: its id, or the beginning of one.

    Raises:
        NotFoundError: there is none.
        ConfigurationError: several begin like that, or two agents have it.
    """
    check_id(given, "approval")
    known = [(backend, each) for backend in place.backends for each in backend.approval_ids()]
    exact = [pair for pair in known if pair[1] == given]
    likely = exact or [pair for pair in known if pair[1].startswith(given)]
    matching = [FoundApproval(backend, each, backend.approval_agent(each)) for backend, each in likely]
    matching = [each for each in matching if place.is_wanted(each.agent)]
    if not matching:
        raise NotFoundError(
            f"there is no approval {given!r}",
            code="LOUSHO_APPROVAL_NOT_FOUND",
            hint="lousho approvals lists what waits",
        )
    ids = {each.approval_id for each in matching}
    if len(ids) > 1:
        raise ConfigurationError(
            f"{given!r} begins several approvals: {', '.join(sorted(ids))}", hint="give more of the id"
        )
    return _only(matching, lambda each: each.agent, f"approval {given!r}")


def _only(found: list[T], agent_of: Callable[[T], str], what: str) -> T:
    if len(found) > 1:
        agents = ", ".join(sorted(agent_of(each) for each in found))
        raise ConfigurationError(f"several agents have {what}: {agents}", hint="name one with --agent")
    return found[0]
