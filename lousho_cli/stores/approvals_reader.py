"""Reading approvals without pydantic: what waits, and what was decided."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

from ..errors import StorageError
from ..execution.messages import JsonObject
from .files import read_file, real_folder
from .folder import AgentFolder
from .reader import summaries

VERSION = 1
CORRUPT = "LOUSHO_SESSION_FILE_CORRUPT"


def read_object(path: Path) -> JsonObject | None:
    """The JSON object of a small file; None if there is no file.

    Raises:
        StorageError: it is damaged, or written by a newer version.
    """
    real_folder(path.parent.parent)
    real_folder(path.parent)
    data = read_file(path)
    if data is None:
        return None
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged_approval(path, str(error)) from error
    if not isinstance(content, dict):
        raise damaged_approval(path, "not a JSON object")
    version = content.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise StorageError(
            f"{path} has version {version}, and this lousho reads up to version {VERSION}",
            code="LOUSHO_CHECKPOINT_VERSION",
            hint="use a newer lousho; the file was not changed",
        )
    return content


def damaged_approval(path: Path, why: str) -> StorageError:
    return StorageError(
        f"{path} is damaged: {why}",
        code=CORRUPT,
        hint="restore it from a copy, or remove it: a request is rebuilt from its session",
    )


def request_data(folder: AgentFolder, approval_id: str) -> JsonObject | None:
    """`{pending, snapshot?}` of a request: from its file, else from the session that waits for it."""
    try:
        content = read_object(folder.request(approval_id))
    except StorageError as error:
        if error.code != CORRUPT:
            raise
        # Written without waiting for the disk, it may be empty after a power cut. Its session knows better.
        return _from_session(folder, approval_id) or _raise(error)
    if content is not None:
        pending = content.get("pending")
        if not isinstance(pending, dict) or pending.get("id") != approval_id:
            raise damaged_approval(folder.request(approval_id), "it is about another approval")
        snapshot = content.get("snapshot")
        if is_legacy(snapshot):
            pending = {"sessionId": snapshot.get("sessionId"), "agent": folder.agent, **pending}
        return {**content, "pending": pending}
    return _from_session(folder, approval_id)


def _from_session(folder: AgentFolder, approval_id: str) -> JsonObject | None:
    found = (pending for pending in pending_here(folder) if pending["id"] == approval_id)
    return next(({"pending": pending} for pending in found), None)


def _raise(error: StorageError) -> NoReturn:
    raise error


def is_legacy(snapshot: Any) -> TypeGuard[JsonObject]:
    """Whether a snapshot is one of the TypeScript SDK."""
    return isinstance(snapshot, dict) and "currentMessages" in snapshot


def decision_data(folder: AgentFolder, approval_id: str) -> JsonObject | None:
    """The recorded decision of an approval."""
    content = read_object(folder.decision(approval_id))
    if content is not None and content.get("id") != approval_id:
        raise damaged_approval(folder.decision(approval_id), "it is about another approval")
    return content


def pending_here(folder: AgentFolder) -> Iterator[JsonObject]:
    """The approvals that the sessions of this agent wait for, decided or not, by session."""
    for session in summaries(folder):
        if session.approval is not None and session.approval.get("id"):
            yield session.approval


def undecided(folder: AgentFolder, pending: JsonObject) -> JsonObject | None:
    """All that is asked, given the approval a session waits for; None if it is decided."""
    approval_id = str(pending["id"])
    if decision_data(folder, approval_id) is not None:
        return None
    if "digest" in pending:
        return pending
    # A session that another program wrote says less than its request does.
    request = request_data(folder, approval_id)
    return pending if request is None else pending | request["pending"]
