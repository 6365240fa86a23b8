"""What the command line needs of a store. The settings say which one; no command knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .backend_file import FileBackend
from .backend_location import parse_location
from .folder import agent_folder, agent_folders

if TYPE_CHECKING:
    from ..execution.kept import KeptSaves
    from ..execution.messages import JsonObject
    from ..execution.protocols import ApprovalStore, CheckpointStore
    from ..execution.state import State
    from .findings import Progress, StoreReport
    from .journal import Header
    from .pruning import Pruner
    from .reader import SessionSummary
    from .trail import Save


class Store(Protocol):
    """Checkpoints and approvals, for running and changing sessions."""

    @property
    def checkpoints(self) -> CheckpointStore: ...

    @property
    def approvals(self) -> ApprovalStore: ...


class Backend(Protocol):
    """One place that holds sessions: the folder of an agent, or a database of all agents.

    Reading takes no session and waits for no runner. Every method raises StorageError where the place or what
    it holds cannot be read, unless it says otherwise.
    """

    def summaries(self) -> Iterable[SessionSummary]:
        """Every session that is not deleted. One that cannot be read is listed with its problem."""
        ...

    def summary(self, session_id: str) -> SessionSummary | None:
        """One session; None if there is none, or it was deleted."""
        ...

    def owner(self, session_id: str) -> str | None:
        """The agent of a session of which anything is left, a history or damaged data; None if nothing is.

        An empty text where nothing tells.
        """
        ...

    def header(self, session_id: str) -> Header | None:
        """Where a session comes from, also a deleted one that kept its history."""
        ...

    def history(self, session_id: str) -> list[Save]:
        """The kept saves, newest first."""
        ...

    def kept_saves(self, session_id: str) -> KeptSaves:
        """Which saves are kept, and which there were."""
        ...

    def state(self, session_id: str, seq: int | None = None) -> State:
        """A session now, or at one of its kept saves.

        Raises:
            NotFoundError: there is no such session or save.
        """
        ...

    def undecided(self, pending: JsonObject) -> JsonObject | None:
        """All that is asked of a human, given the approval a session waits for; None once it is decided."""
        ...

    def approval_ids(self) -> Iterable[str]:
        """The approvals that were ever asked for, as far as something is left of them."""
        ...

    def approval_agent(self, approval_id: str) -> str:
        """Whose approval that is; an empty text where nothing tells."""
        ...

    def check(self, progress: Progress, only: Sequence[str] | None = None) -> StoreReport:
        """What is wrong with what is stored. Waits for no runner and writes nothing.

        Args:
            progress: told how many sessions are checked.
            only: the ids of the sessions to check, or None for all, and for what belongs to no session.
        """
        ...

    def pruner(self) -> Pruner:
        """What removes and compacts sessions here. Nothing is made before it is used."""
        ...

    def store(self) -> Store:
        """The store itself. Nothing is made before it is used."""
        ...


def open_backends(store: str, workspace: Path, agent: str | None, history_limit: int) -> list[Backend]:
    """The places that hold a workspace's sessions.

    Args:
        store: the setting (see `backend_location`); a relative path starts at the workspace folder.
        agent: whose sessions, or None for all. Of a database its reader has to choose.
        history_limit: saves kept for each session.

    Raises:
        ConfigurationError: a package is missing, or the path names no file.
    """
    location = parse_location(store)
    if location.kind == "file":
        folders = agent_folders(workspace) if agent is None else [agent_folder(workspace, agent)]
        return [FileBackend(folder, history_limit) for folder in folders]
    if location.kind == "sqlite":
        from .backend_sqlite import SqliteBackend

        return [SqliteBackend(workspace / Path(location.target).expanduser(), history_limit)]
    from .backend_kv import KVBackend

    return [KVBackend(location, history_limit)]
