"""Finding what a command is about: the workspace, the agent, the session, the approval."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from ..agents.definition import agent_not_found
from ..config import Settings, load_settings
from ..errors import ConfigurationError, NotFoundError
from ..stores.approvals_reader import pending_here
from ..stores.files import real_folder
from ..stores.folder import AgentFolder, agent_folder, agent_folders, agents_folder
from ..stores.ids import MAX_ID_LENGTH, check_id, decode_id
from ..stores.reader import load_journal, session_summary, summaries
from ..workspace import require_workspace
from .globals import Globals
from .output import notice

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """A workspace with the settings that hold in it."""

    workspace: Path
    settings: Settings
    options: Globals

    def folders(self) -> list[AgentFolder]:
        """The state folders to look in: the named agent's, or all.

        Raises:
            NotFoundError: there is no agent of that name.
        """
        if self.options.agent is None:
            return agent_folders(self.workspace)
        folder = agent_folder(self.workspace, self.options.agent)
        if not real_folder(folder.path):
            known = [each.agent for each in agent_folders(self.workspace)]
            raise agent_not_found(folder.agent, agents_folder(self.workspace), known)
        return [folder]

    def command(self, *words: str) -> str:
        """A `lousho` command line for this place, for the person to type: it repeats how they named it."""
        line = ["lousho", *words]
        for flag, value in (("--agent", self.options.agent), ("--workspace", self.options.workspace)):
            if value is not None:
                line += [flag, value]
        return shlex.join(line)


@dataclass(frozen=True)
class FoundSession:
    """A session that is there, and the agent that has it."""

    folder: AgentFolder
    session_id: str


def open_place(options: Globals) -> Place:
    """The workspace a command works in.

    Raises:
        ConfigurationError: there is none, or its configuration is wrong.
    """
    return place_at(require_workspace(options.workspace, Path.cwd()), options)


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
    folders = place.folders()
    having = [f for f in folders if session_summary(f, given) is not None]
    if not having and deleted:
        limit = place.settings.history_limit
        having = [f for f in folders if len(load_journal(f, given, limit).trail)]
    if having:
        return FoundSession(_only(having, lambda f: f.agent, f"session {given!r}"), given)
    return _newest_session(folders) if given == "@last" else None


def _newest_session(folders: list[AgentFolder]) -> FoundSession:
    newest = max(
        (
            (each.at, each.session_id, folder)
            for folder in folders
            for each in summaries(folder)
            if not each.problem
        ),
        key=lambda found: found[0],
        default=None,
    )
    if newest is None:
        raise NotFoundError("@last: there are no sessions yet", hint='start one: lousho run chat "Hello"')
    _, session_id, folder = newest
    notice(f"@last is session {session_id} of agent {folder.agent}")
    return FoundSession(folder, session_id)


def _no_session(place: Place, given: str) -> NotFoundError:
    if look_for_session(place, given, deleted=True) is not None:
        return NotFoundError(
            f"session {given!r} was deleted; only its history is left",
            hint=f"see {place.command('history', given)}, and fork it from there",
        )
    close = get_close_matches(given, [each for folder in place.folders() for each in _names(folder)], n=1)
    there = f"{place.command('sessions')} lists the sessions there are"
    return NotFoundError(
        f"there is no session {given!r}", hint=f"did you mean {close[0]!r}? {there}" if close else there
    )


def _names(folder: AgentFolder) -> Iterator[str]:
    """The ids of an agent's sessions as the file names tell them, which is quick and nearly complete."""
    yield from (name for path in folder.journals() if (name := decode_id(path.stem)) is not None)
    yield from folder.legacy_ids()


def find_approval(place: Place, given: str) -> tuple[AgentFolder, str]:
    """The approval a user means: its id, or the beginning of one.

    Raises:
        NotFoundError: there is none.
        ConfigurationError: several begin like that, or two agents have it.
    """
    check_id(given, "approval")
    known = [(folder, approval) for folder in place.folders() for approval in _approval_ids(folder)]
    exact = [pair for pair in known if pair[1] == given]
    matching = exact or [pair for pair in known if pair[1].startswith(given)]
    if not matching:
        raise NotFoundError(
            f"there is no approval {given!r}",
            code="LOUSHO_APPROVAL_NOT_FOUND",
            hint="lousho approvals lists what waits",
        )
    ids = {approval for _, approval in matching}
    if len(ids) > 1:
        raise ConfigurationError(
            f"{given!r} begins several approvals: {', '.join(sorted(ids))}", hint="give more of the id"
        )
    return _only(matching, lambda pair: pair[0].agent, f"approval {given!r}")


def _approval_ids(folder: AgentFolder) -> Iterable[str]:
    asked = folder.request_ids()
    return dict.fromkeys([*asked, *(str(pending["id"]) for pending in pending_here(folder))])


def _only(found: list[T], agent_of: Callable[[T], str], what: str) -> T:
    if len(found) > 1:
        agents = ", ".join(sorted(agent_of(each) for each in found))
        raise ConfigurationError(f"several agents have {what}: {agents}", hint="name one with --agent")
    return found[0]
