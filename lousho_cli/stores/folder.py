"""Where the state of one agent's sessions lies inside `.lousho/agents/<agent>/`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import StorageError
from .files import path_exists, read_file, real_folder, storage
from .ids import check_id, decode_id, encode_id

JOURNAL_SUFFIX = ".jsonl"
DECISION_SUFFIX = "~decision.json"
_NEVER_IN_NAMES = frozenset("/\\\0")


@dataclass(frozen=True)
class AgentFolder:
    """The state folders of one agent. Nothing is made by looking.

    Attributes:
        path: the agent's folder.
        agent: the agent's id.
    """

    path: Path
    agent: str

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def approvals(self) -> Path:
        return self.path / "approvals"

    def journal(self, session_id: str) -> Path:
        return self.checkpoints / f"{encode_id(session_id)}{JOURNAL_SUFFIX}"

    def legacy_checkpoint(self, session_id: str) -> Path | None:
        """The checkpoint file of the TypeScript SDK, whose name is the raw id where a file can bear it."""
        names = [encode_id(session_id)]
        if not set(session_id) & _NEVER_IN_NAMES and not session_id.startswith("."):
            names.append(session_id)
        paths = [self.checkpoints / f"{name}.json" for name in names]
        return next((path for path in paths if path_exists(path)), None)

    def legacy_history(self, checkpoint: Path) -> Path:
        return self.path / "checkpoint-history" / checkpoint.name

    def _is_legacy(self, session_id: str, path: Path) -> bool:
        return not path_exists(self.journal(session_id)) and self.legacy_checkpoint(session_id) == path

    def history(self, session_id: str) -> Path:
        return self.path / "checkpoint-history" / f"{encode_id(session_id)}.json"

    def lock(self, session_id: str) -> Path:
        return self.path / "locks" / f"{encode_id(session_id)}.lock"

    def holder(self, session_id: str) -> Path:
        return self.path / "locks" / f"{encode_id(session_id)}.json"

    def request(self, approval_id: str) -> Path:
        return self.approvals / f"{encode_id(approval_id)}.json"

    def decision(self, approval_id: str) -> Path:
        return self.approvals / f"{encode_id(approval_id)}{DECISION_SUFFIX}"

    def journals(self) -> Iterator[Path]:
        """The journals there are, by name."""
        return self._files(self.checkpoints, JOURNAL_SUFFIX)

    def legacy_ids(self) -> Iterator[str]:
        """The ids of sessions that only the TypeScript SDK has written."""
        for path in self._files(self.checkpoints, ".json"):
            for session_id in dict.fromkeys((decode_id(path.stem), path.stem)):
                if session_id and self._is_legacy(session_id, path):
                    yield session_id
                    break

    def request_ids(self) -> list[str]:
        """The ids of the approvals that were asked for here."""
        if not self._readable(self.approvals):
            return []
        requests = (p for p in self._files(self.approvals, ".json") if not p.name.endswith(DECISION_SUFFIX))
        ids = (decode_id(path.stem) or _id_inside(path) for path in requests)
        return [approval_id for approval_id in ids if approval_id is not None]

    def _files(self, folder: Path, suffix: str) -> Iterator[Path]:
        if not self._readable(folder):
            return
        with storage(folder, "listed"):
            names = sorted(os.listdir(folder))
        for name in names:
            if name.endswith(suffix) and not name.startswith("."):
                yield folder / name

    def _readable(self, folder: Path) -> bool:
        return real_folder(self.path) and real_folder(folder)


def _id_inside(request: Path) -> str | None:
    """The id of an approval whose file has a hashed name."""
    try:
        approval_id = json.loads(read_file(request) or b"")["pending"]["id"]
    except (ValueError, KeyError, TypeError, RecursionError, StorageError):
        return None
    return approval_id if isinstance(approval_id, str) and encode_id(approval_id) == request.stem else None


def agents_folder(workspace: Path) -> Path:
    return workspace / "agents"


def agent_folder(workspace: Path, agent: str) -> AgentFolder:
    """The folder of an agent: the one that bears its plain name, if there is one, else its encoded name."""
    check_id(agent, "agent")
    plain = agents_folder(workspace) / agent
    nameable = os.sep not in agent and "/" not in agent and decode_id(agent) in (None, agent)
    if nameable and plain.is_dir():
        return AgentFolder(plain, agent)
    return AgentFolder(agents_folder(workspace) / encode_id(agent), agent)


def agent_folders(workspace: Path) -> list[AgentFolder]:
    """The folders of all agents that have an agent's files or any state."""
    folder = agents_folder(workspace)
    if not real_folder(folder):
        return []
    with storage(folder, "listed"):
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    return [AgentFolder(folder / name, decode_id(name) or name) for name in names if not name.startswith(".")]
