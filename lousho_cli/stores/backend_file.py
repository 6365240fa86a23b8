"""The command line's view of the file store. Reading imports neither pydantic nor asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..execution.kept import KeptSaves
from ..execution.messages import JsonObject
from ..execution.state import State
from . import approvals_reader, reader, saves_reader
from .files import path_exists
from .folder import AgentFolder
from .journal import Header
from .reader import SessionSummary
from .trail import Save

if TYPE_CHECKING:
    from .backend import Store
    from .file import FileCheckpoints
    from .file_approvals import FileApprovals
    from .findings import Progress, StoreReport
    from .pruning import Pruner


class FileBackend:
    """The sessions of one agent, in its folder."""

    def __init__(self, folder: AgentFolder, history_limit: int) -> None:
        self._folder = folder
        self._limit = history_limit

    def summaries(self) -> Iterator[SessionSummary]:
        return reader.summaries(self._folder)

    def summary(self, session_id: str) -> SessionSummary | None:
        return reader.session_summary(self._folder, session_id)

    def owner(self, session_id: str) -> str | None:
        there = path_exists(self._folder.journal(session_id))
        return self._folder.agent if there or self._folder.legacy_checkpoint(session_id) is not None else None

    def header(self, session_id: str) -> Header | None:
        return reader.read_header(self._folder, session_id)

    def history(self, session_id: str) -> list[Save]:
        return saves_reader.read_history(self._folder, session_id, self._limit)

    def kept_saves(self, session_id: str) -> KeptSaves:
        return saves_reader.read_kept(self._folder, session_id, self._limit) or KeptSaves(0, ())

    def state(self, session_id: str, seq: int | None = None) -> State:
        return saves_reader.read_state(self._folder, session_id, self._limit, seq)

    def undecided(self, pending: JsonObject) -> JsonObject | None:
        return approvals_reader.undecided(self._folder, pending)

    def approval_ids(self) -> Iterable[str]:
        waited_for = (str(pending["id"]) for pending in approvals_reader.pending_here(self._folder))
        return dict.fromkeys([*self._folder.request_ids(), *waited_for])

    def approval_agent(self, approval_id: str) -> str:
        return self._folder.agent

    def check(self, progress: Progress, only: Sequence[str] | None = None) -> StoreReport:
        from .check_folder import check_folder

        return check_folder(self._folder, self._limit, progress, only)

    def pruner(self) -> Pruner:
        from .prune_file import FilePruner

        return FilePruner(self._folder, self._limit)

    def store(self) -> Store:
        from .file import FileCheckpoints
        from .file_approvals import FileApprovals

        return _Store(FileCheckpoints(self._folder, self._limit), FileApprovals(self._folder))


@dataclass(frozen=True)
class _Store:
    checkpoints: FileCheckpoints
    approvals: FileApprovals
