"""The approval store of a KVStore: requests that can be rebuilt, and decisions that are made once (R3.4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from ..errors import NotFoundError, StorageError
from ..execution.checkpoint import checkpoint_of
from ..execution.messages import JsonObject
from ..execution.protocols import Snapshot, StoredApproval
from ..execution.record import Record
from ..execution.records import ApprovalDecision, Checkpoint, PendingApproval
from ..execution.session import now
from .decisions import decision_fields, decision_json, with_decision
from .kv_access import Access
from .kv_keys import Keys
from .kv_values import damaged, decode, encode, read_state

VERSION = 1
_ATTEMPTS = 100
R = TypeVar("R", bound=Record)


class KVApprovals:
    """Approvals in a key-value store.

    Where the store can compare and set, one decision is made over all processes, and no request is missing
    from the list; else that holds within one process.
    """

    def __init__(self, access: Access, keys: Keys) -> None:
        self._access = access
        self._keys = keys

    async def announce(self, pending: JsonObject) -> None:
        """Keep the request of a pause, if there is none yet. Its session holds the snapshot."""
        key = self._keys.request(str(pending["id"]))
        if await self._access.get(key) is None:
            await self._access.put(key, encode({"version": VERSION, "pending": pending}))
            await self._enlist(str(pending["id"]))

    async def save(self, pending: PendingApproval, snapshot: Checkpoint) -> None:
        request: JsonObject = {"version": VERSION, "pending": _plain(pending)}
        session_id = snapshot.session_id
        if session_id is None or await self._waits_for(session_id) != pending.id:
            request["snapshot"] = _plain(snapshot)
        await self._access.put(self._keys.request(pending.id), encode(request))
        await self._enlist(pending.id)

    async def get(self, approval_id: str) -> StoredApproval | None:
        request = await self._object(self._keys.request(approval_id))
        if request is None:
            return None
        stored = await self._stored(approval_id, request)
        return replace(stored, snapshot=await self._snapshot(stored.pending, request.get("snapshot")))

    async def decide(self, approval_id: str, decision: ApprovalDecision) -> StoredApproval:
        stored = await self.get(approval_id)
        if stored is None:
            raise NotFoundError(f"there is no approval {approval_id!r}", code="LOUSHO_APPROVAL_NOT_FOUND")
        key, text = self._keys.decision(approval_id), encode(decision_json(decision))
        if self._access.atomic:
            await self._access.swap(key, text, None)
        else:
            async with self._access.exclusive(key):
                if await self._access.get(key) is None:
                    await self._access.put(key, text)
        return await self._decided(stored)

    async def consume(self, approval_id: str) -> None:
        key = self._keys.decision(approval_id)
        held = await self._object(key)
        if held is not None and "consumedAt" not in held:
            await self._access.put(key, encode({**held, "consumedAt": now()}))

    async def list(self, *, status: str | None = "pending") -> Sequence[StoredApproval]:
        key = self._keys.approvals()
        found = []
        for approval_id in _ids(key, await self._access.get(key)):
            request = await self._object(self._keys.request(approval_id))
            if request is None:
                continue
            stored = await self._stored(approval_id, request)
            if status not in (None, stored.status):
                continue
            if stored.status != "pending" or await self._is_waited_for(stored.pending, request):
                snapshot = await self._snapshot(stored.pending, request.get("snapshot"))
                found.append(replace(stored, snapshot=snapshot))
        return found

    async def by_session(self) -> dict[str, Sequence[str]]:
        """The ids of the approvals that were asked for, by session."""
        key = self._keys.approvals()
        found: dict[str, Sequence[str]] = {}
        for approval_id in _ids(key, await self._access.get(key)):
            with suppress(StorageError):
                request = await self._object(self._keys.request(approval_id)) or {}
                pending = request.get("pending")
                session_id = pending.get("sessionId") if isinstance(pending, dict) else None
                if isinstance(session_id, str):
                    found[session_id] = [*found.get(session_id, ()), approval_id]
        return found

    async def forget(self, approval_ids: Collection[str]) -> None:
        """Delete approvals whose session is gone."""
        if not approval_ids:
            return
        for approval_id in approval_ids:
            await self._access.delete(self._keys.decision(approval_id))
            await self._access.delete(self._keys.request(approval_id))
        await self._change_list(lambda ids: [id for id in ids if id not in approval_ids])

    async def _enlist(self, approval_id: str) -> None:
        await self._change_list(lambda ids: ids if approval_id in ids else [*ids, approval_id])

    async def _change_list(self, change: Callable[[Sequence[str]], Sequence[str]]) -> None:
        """Change the list of ids, which all sessions share."""
        key = self._keys.approvals()
        async with self._access.exclusive(key):
            for _ in range(_ATTEMPTS):
                text = await self._access.get(key)
                ids = _ids(key, text)
                changed = change(ids)
                if changed == ids:
                    return
                wanted = encode(changed)
                if not self._access.atomic:
                    await self._access.put(key, wanted)
                    return
                if await self._access.swap(key, wanted, text):
                    return
        raise StorageError(f"key {key!r} changes faster than it can be written", hint="try again")

    async def _stored(self, approval_id: str, request: JsonObject) -> StoredApproval:
        """The request with its decision, if there is one, and without its snapshot."""
        key = self._keys.request(approval_id)
        pending = _parse(key, PendingApproval, request.get("pending"))
        if pending.id != approval_id:
            raise damaged(key, f"it is about approval {pending.id!r}")
        return await self._decided(StoredApproval(pending))

    async def _decided(self, stored: StoredApproval) -> StoredApproval:
        key = self._keys.decision(stored.pending.id)
        data = await self._object(key)
        if data is None:
            return stored
        decision = _parse(key, ApprovalDecision, decision_fields(data))
        return with_decision(stored, decision, data)

    async def _is_waited_for(self, pending: PendingApproval, request: JsonObject) -> bool:
        """Whether its session waits for it; a run without a session lives in the request's snapshot."""
        waits_for = await self._waits_for(pending.session_id) if pending.session_id is not None else None
        return "snapshot" in request if waits_for is None else waits_for == pending.id

    async def _waits_for(self, session_id: str) -> str | None:
        """The approval a session waits for; None if there is no session, empty if it waits for none."""
        checkpoint = await self._object(self._keys.checkpoint(session_id))
        return None if checkpoint is None else str(checkpoint.get("approvalId") or "")

    async def _snapshot(self, pending: PendingApproval, embedded: Any) -> Snapshot:
        session_id = pending.session_id
        if embedded is not None:
            key = self._keys.request(pending.id)
            return _parse(key, Checkpoint, embedded)
        if session_id is None:
            return None
        key = self._keys.checkpoint(session_id)
        data = await self._object(key)
        return None if data is None else lambda: checkpoint_of(read_state(key, data, session_id, 1))

    async def _object(self, key: str) -> JsonObject | None:
        text = await self._access.get(key)
        if text is None:
            return None
        data: JsonObject = decode(key, text, dict)
        version = data.get("version", VERSION)
        if not isinstance(version, int) or version > VERSION:
            raise StorageError(
                f"key {key!r} has version {version}, and this lousho reads up to version {VERSION}",
                code="LOUSHO_CHECKPOINT_VERSION",
                hint="use a newer lousho; the value was not changed",
            )
        return data


def _ids(key: str, text: str | None) -> list[str]:
    return [] if text is None else [str(id) for id in decode(key, text, list)]


def _plain(record: Record) -> JsonObject:
    return record.model_dump(mode="json", by_alias=True, exclude_none=True)


def _parse(key: str, record: type[R], data: Any) -> R:
    try:
        return record.model_validate(data)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise damaged(key, f"{place}: {problem['msg']}") from error
