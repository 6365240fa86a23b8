"""Repairs of single files: leftovers removed, permissions set, damaged approvals put aside."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import StorageError
from ..execution.messages import JsonObject
from . import system
from .approvals_reader import decision_data, read_object
from .aside import keep_aside
from .files import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    path_exists,
    remove_file,
    storage,
    sync_folder,
)
from .findings import Mended
from .folder import AgentFolder
from .lease import Lease
from .reader import session_summary

STALE_SECONDS = 600
"""A temporary file lives for milliseconds. One of this age was left by a crash."""


def is_stale(path: Path) -> bool:
    """Whether a temporary file is so old that nobody can be writing it."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > STALE_SECONDS


def wrong_mode(path: Path) -> tuple[int, int] | None:
    """The permissions that a state file or folder has and should have; None if they are right, or unknown."""
    if os.name != "posix":
        return None
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return None
    right = PRIVATE_FOLDER if stat.S_ISDIR(mode) else PRIVATE_FILE
    return None if stat.S_IMODE(mode) == right else (stat.S_IMODE(mode), right)


@dataclass(frozen=True, slots=True)
class RemoveTemporary:
    """Remove a temporary file that a crash left."""

    path: Path

    def apply(self, *, dry_run: bool) -> Mended:
        if not is_stale(self.path):
            return Mended("unneeded", "it is gone", str(self.path))
        if dry_run:
            return Mended("planned", "would remove it", str(self.path))
        remove_file(self.path)
        return Mended("repaired", "removed", str(self.path))


@dataclass(frozen=True, slots=True)
class SetMode:
    """Give a state file or folder the permissions it was made with."""

    path: Path

    def apply(self, *, dry_run: bool) -> Mended:
        wrong = wrong_mode(self.path)
        if wrong is None:
            return Mended("unneeded", "its permissions are right", str(self.path))
        have, right = wrong
        if dry_run:
            return Mended("planned", f"would change {have:04o} to {right:04o}", str(self.path))
        with storage(self.path, "given other permissions"):
            _set_mode(self.path, right)
        return Mended("repaired", f"changed {have:04o} to {right:04o}", str(self.path))


def approval_of(content: JsonObject) -> object:
    """Which approval a request or a decision is about; None if it does not say."""
    pending = content.get("pending")
    return pending.get("id") if isinstance(pending, dict) else content.get("id")


def _set_mode(path: Path, mode: int) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | system.here.flags)
    except PermissionError:
        # Its owner may not even read it; it was no link a moment ago.
        os.chmod(path, mode)
        return
    try:
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class RemoveRequest:
    """Remove the request of an approval that no session waits for and nobody decided."""

    folder: AgentFolder
    approval_id: str
    session_id: str

    def apply(self, *, dry_run: bool) -> Mended:
        path = self.folder.request(self.approval_id)
        if dry_run:
            return self._mended("planned", "would remove it", path)
        lease = Lease(self.folder, self.session_id)
        try:
            if not path_exists(path) or not self._is_orphan():
                return self._mended("unneeded", "it is in use", path)
            remove_file(path)
            with storage(path.parent, "synced"):
                sync_folder(path.parent)
        finally:
            lease.release()
        return self._mended("repaired", "removed", path)

    def _is_orphan(self) -> bool:
        session = session_summary(self.folder, self.session_id)
        waited_for = session is not None and (session.approval or {}).get("id") == self.approval_id
        return not waited_for and decision_data(self.folder, self.approval_id) is None

    def _mended(
        self, outcome: Literal["planned", "unneeded", "repaired"], message: str, path: Path
    ) -> Mended:
        return Mended(outcome, message, str(path), self.session_id, self.folder.agent)


@dataclass(frozen=True, slots=True)
class PutAside:
    """Take a damaged file of an approval out of the way: the request is made again from its session, and a
    decision that cannot be read has to be made again."""

    folder: AgentFolder
    path: Path
    approval_id: str
    session_id: str

    def apply(self, *, dry_run: bool) -> Mended:
        if dry_run:
            return self._mended("planned", "would put it aside", None)
        lease = Lease(self.folder, self.session_id)
        try:
            if not self._is_damaged():
                return self._mended("unneeded", "it can be read", None)
            aside = keep_aside(self.path)
            remove_file(self.path)
            with storage(self.path.parent, "synced"):
                sync_folder(self.path.parent)
        finally:
            lease.release()
        return self._mended("repaired", "put aside", aside)

    def _is_damaged(self) -> bool:
        try:
            content = read_object(self.path)
        except StorageError as error:
            return error.code == "LOUSHO_SESSION_FILE_CORRUPT"
        return content is not None and approval_of(content) != self.approval_id

    def _mended(
        self, outcome: Literal["planned", "unneeded", "repaired"], message: str, aside: Path | None
    ) -> Mended:
        return Mended(
            outcome, message, str(self.path), self.session_id, self.folder.agent,
            None if aside is None else str(aside),
        )  # fmt: skip
