"""Where the state of one agent's sessions lies inside `.lousho/agents/<agent>/`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import SDKError
from . import system
from .files import path_exists, read_file, real_folder, storage
from .ids import check_id, decode_id, encode_id

JOURNAL_SUFFIX = ".jsonl"
HISTORY_FOLDER = "checkpoint-history"
DECISION_SUFFIX = "~decision.json"
_NEVER_IN_NAMES = frozenset("/\\\0")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")


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
        for path in self._named(self.checkpoints, session_id):
            inside = _session_inside(path) if path_exists(path) else None
            # A raw name may look like another id's encoded one: such a file is the other session's.
            another = inside not in (None, session_id) and inside == path.stem
            if path_exists(path) and not another:
                return path
        return None

    def legacy_history(self, checkpoint: Path) -> Path:
        return self.path / HISTORY_FOLDER / checkpoint.name

    def history(self, session_id: str) -> Path:
        return self.path / HISTORY_FOLDER / f"{encode_id(session_id)}.json"

    def lock(self, session_id: str) -> Path:
        return self.path / "locks" / f"{encode_id(session_id)}.lock"

    def holder(self, session_id: str) -> Path:
        return self.path / "locks" / f"{encode_id(session_id)}.json"

    def request(self, approval_id: str) -> Path:
        """The file of a request; the TypeScript SDK used the raw id for its name."""
        ours, *raw = self._named(self.approvals, approval_id)
        if path_exists(ours):
            return ours
        # A raw name may be the encoded one of another id.
        return next((path for path in raw if _inside(path, "pending", "id") == approval_id), ours)

    def decision(self, approval_id: str) -> Path:
        return self.approvals / f"{encode_id(approval_id)}{DECISION_SUFFIX}"

    def journals(self) -> Iterator[Path]:
        """The journals there are, by name."""
        return self._files(self.checkpoints, JOURNAL_SUFFIX)

    def legacy_ids(self) -> Iterator[str]:
        """The ids of sessions that only the TypeScript SDK has written."""
        for path in self._files(self.checkpoints, ".json"):
            inside = _session_inside(path)
            named = inside is not None and path in self._named(self.checkpoints, inside)
            session_id = inside if named and inside is not None else decode_id(path.stem) or path.stem
            if not path_exists(self.journal(session_id)):
                yield session_id

    def _named(self, folder: Path, name: str) -> list[Path]:
        """The files that may be about `name`: of its encoded name, and of the raw one where that is safe."""
        names = [encode_id(name)]
        if not set(name) & _NEVER_IN_NAMES and not name.startswith("."):
            names.append(name)
        return [folder / f"{each}.json" for each in dict.fromkeys(names)]

    def request_ids(self) -> list[str]:
        """The ids of the approvals that were asked for here."""
        if not self._readable(self.approvals):
            return []
        requests = (p for p in self._files(self.approvals, ".json") if not p.name.endswith(DECISION_SUFFIX))
        ids = (path.stem if set(path.stem) <= _PLAIN else self._id_inside(path) for path in requests)
        return [approval_id for approval_id in ids if approval_id is not None]

    def _id_inside(self, request: Path) -> str | None:
        """The id of an approval whose file name is not simply its id."""
        approval_id = _inside(request, "pending", "id")
        named = approval_id is not None and request in self._named(self.approvals, approval_id)
        return approval_id if named else decode_id(request.stem)

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


def _session_inside(checkpoint: Path) -> str | None:
    return _inside(checkpoint, "sessionId")


def _inside(path: Path, *keys: str) -> str | None:
    """A text inside a small JSON file that may be an id; None if there is none."""
    try:
        value = json.loads(read_file(path) or b"")
        for key in keys:
            value = value[key]
        return check_id(value)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, SDKError):
        return None


def agents_folder(workspace: Path) -> Path:
    return workspace / "agents"


def agent_folder(workspace: Path, agent: str) -> AgentFolder:
    """The folder of an agent: the one that bears its plain name, if there is one, else its encoded name."""
    check_id(agent, "agent")
    plain = agents_folder(workspace) / agent
    nameable = os.sep not in agent and "/" not in agent and decode_id(agent) in (None, agent)
    if nameable and plain.is_dir():
        return AgentFolder(system.here.long_path(plain), agent)
    return AgentFolder(system.here.long_path(agents_folder(workspace) / encode_id(agent)), agent)


def agent_folders(workspace: Path) -> list[AgentFolder]:
    """The folders of all agents that have an agent's files or any state."""
    folder = agents_folder(workspace)
    if not real_folder(folder):
        return []
    with storage(folder, "listed"):
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    return [
        AgentFolder(system.here.long_path(folder / name), decode_id(name) or name)
        for name in names
        if not name.startswith(".")
    ]
