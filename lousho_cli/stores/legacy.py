"""Sessions in the layout of the TypeScript SDK (R3.15): read as they are, upgraded by their next save.

    checkpoints/<session>.json          one checkpoint object
    checkpoint-history/<session>.json   a list, oldest first, of {step, savedAt, status, checkpoint}

File names there are the raw session ids. The next save writes a journal that holds all of it; the old
checkpoint file stays beside it, unused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..errors import StorageError
from ..execution.checkpoint import record_of
from ..execution.codec import record_to_json
from ..execution.messages import JsonObject
from ..execution.records import Checkpoint
from ..execution.state import Record, State, apply
from .files import read_file
from .folder import AgentFolder
from .journal_fold import Journal
from .trail import Trail, save_of


def load_legacy(folder: AgentFolder, session_id: str, limit: int) -> Journal | None:
    """The session as a journal that was not written yet; None if there is no such file.

    Raises:
        StorageError: a file is damaged.
    """
    path = folder.legacy_checkpoint(session_id)
    if path is None:
        return None
    current = _record(path, session_id, _json(path))
    kept = list(_history(folder.legacy_history(path), session_id))
    state, trail = State(session_id, agent=folder.agent), Trail(limit)
    records = kept if kept and _same(kept[-1], current) else [*kept, current]
    for record in records:
        record.seq = state.seq + 1
        state = apply(state, record)
        if record is not current:
            trail.add(save_of(record, state), state)
    return Journal(None, state, trail, 0, upgrade=tuple(records))


def _history(path: Path, session_id: str) -> Iterator[Record]:
    data = read_file(path)
    if data is None:
        return
    entries = _parsed(path, data)
    if isinstance(entries, dict):
        return
    for entry in entries:
        if not isinstance(entry, dict):
            raise _damaged(path, "an entry is not an object")
        record = _record(path, session_id, entry.get("checkpoint"))
        record.at = str(entry.get("savedAt", ""))
        yield record


def _same(one: Record, other: Record) -> bool:
    return record_to_json(replace(one, at=other.at)) == record_to_json(other)


def _record(path: Path, session_id: str, data: Any) -> Record:
    if isinstance(data, dict) and data.get("sessionId", session_id) != session_id:
        raise _damaged(path, f"it is about session {data['sessionId']!r}")
    try:
        return record_of(Checkpoint.model_validate(data))
    except (ValidationError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, _first_line(error)) from error


def _json(path: Path) -> JsonObject:
    data = _parsed(path, read_file(path) or b"")
    if not isinstance(data, dict):
        raise _damaged(path, "not a JSON object")
    return data


def _parsed(path: Path, data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, why: str) -> StorageError:
    return StorageError(
        f"{path} is damaged: {why}",
        code="LOUSHO_SESSION_FILE_CORRUPT",
        hint="restore it from a copy; it was not changed",
    )


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        problem = error.errors()[0]
        return f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
    return str(error)


def snapshot_checkpoint(snapshot: Mapping[str, Any], approval_id: str) -> Checkpoint:
    """The checkpoint of an approval snapshot of the TypeScript SDK.

    Raises:
        ValidationError: it is none.
    """
    return Checkpoint.model_validate(
        {
            "agentId": str((snapshot.get("agent") or {}).get("id", "")),
            "sessionId": snapshot.get("sessionId"),
            "stepIndex": snapshot.get("steps", 0),
            "messages": snapshot.get("currentMessages") or [],
            "usage": snapshot.get("usage") or {},
            "status": "awaiting-approval",
            "approvalId": approval_id,
        }
    )
