"""Checking a key-value store on a server: every value can be read, and the keys of a session fit together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..errors import StorageError
from .check_session import RESTORE, broken_place
from .findings import Problem, Progress, SessionReport, StoreReport
from .kv_access import Access
from .kv_entries import Stored, kept_entry, read_stored
from .kv_keys import Keys
from .kv_values import decode
from .redis_server import RedisServer
from .salvage import FOLD_ERRORS

_AT_ONCE = 20


class KVCheck:
    """One look at what is stored behind a prefix."""

    def __init__(self, server: RedisServer, access: Access, keys: Keys) -> None:
        self._server = server
        self._access = access
        self._keys = keys

    async def report(self, progress: Progress, only: Sequence[str] | None) -> StoreReport:
        """What there is to say.

        Raises:
            StorageError: the server cannot be used.
        """
        ids = self._keys.sessions(await self._server.keys(self._keys.prefix))
        ids = [each for each in ids if only is None or each in only]
        progress(0, len(ids))
        sessions: list[SessionReport] = []
        for start in range(0, len(ids), _AT_ONCE):
            batch = ids[start : start + _AT_ONCE]
            sessions += await asyncio.gather(*(self._session(session_id) for session_id in batch))
            progress(len(sessions), len(ids))
        problems = await self._approvals(sessions) if only is None else []
        return StoreReport(tuple(sessions), tuple(problems))

    async def _session(self, session_id: str) -> SessionReport:
        key = self._keys.checkpoint(session_id)
        try:
            stored = await read_stored(self._access, self._keys, session_id)
            problems = await self._of_session(key, stored)
        except (StorageError, *FOLD_ERRORS) as error:
            if isinstance(error, StorageError) and error.code == StorageError.default_code:
                raise
            problem = Problem("value-damaged", key, str(error), RESTORE, session_id)
            return SessionReport(session_id, "", (problem,), readable=False)
        state = stored.state
        waits_for = str(state.approval["id"]) if state.exists and state.approval else None
        return SessionReport(session_id, state.agent, tuple(problems), state.exists, waits_for)

    async def _of_session(self, key: str, stored: Stored) -> list[Problem]:
        session_id, agent = str(stored.state.session_id), stored.state.agent
        problems = []
        place = broken_place(stored.state)
        if place is not None:
            message = f"calls and results do not pair up: {place}"
            problems.append(Problem("pairs-broken", key, message, RESTORE, session_id, agent))
        missing = []
        for seq, entry_id in stored.ids.items():
            entry_key = self._keys.entry(session_id, entry_id)
            try:
                entry = await kept_entry(self._access, self._keys, stored, seq)
            except (StorageError, *FOLD_ERRORS) as error:
                if isinstance(error, StorageError) and error.code == StorageError.default_code:
                    raise
                problems.append(Problem("value-damaged", entry_key, str(error), RESTORE, session_id, agent))
                continue
            if entry is None:
                missing.append(seq)
        if missing or stored.lacks_entry:
            message = "some of the saves it lists are gone" if missing else "its newest save is not in it"
            key, fix = self._keys.index(session_id), "nothing to do: what is there is listed"
            problems.append(Problem("history-damaged", key, message, fix, session_id, agent))
        return problems

    async def _approvals(self, sessions: Sequence[SessionReport]) -> list[Problem]:
        key = self._keys.approvals()
        problems = []
        try:
            text = await self._access.get(key)
            ids = [] if text is None else [str(each) for each in decode(key, text, list)]
        except StorageError as error:
            if error.code == StorageError.default_code:
                raise
            return [Problem("approval-damaged", key, error.message, RESTORE)]
        waited_for = {each.waits_for for each in sessions}
        all_readable = all(each.readable for each in sessions)
        for approval_id in ids:
            problem = await self._approval(approval_id, approval_id in waited_for or not all_readable)
            if problem is not None:
                problems.append(problem)
        return problems

    async def _approval(self, approval_id: str, waits: bool) -> Problem | None:
        key = self._keys.request(approval_id)
        try:
            text = await self._access.get(key)
            request = None if text is None else decode(key, text, dict)
            decision_key = self._keys.decision(approval_id)
            decision = await self._access.get(decision_key)
            if decision is not None:
                decode(decision_key, decision, dict)
        except StorageError as error:
            if error.code == StorageError.default_code:
                raise
            return Problem("approval-damaged", key, error.message, RESTORE)
        if request is None or decision is not None or waits or "snapshot" in request:
            return None
        return Problem(
            "request-orphan", key, "a request that nobody decided, and no session waits for it",
            "nothing to do: it is not listed",
        )  # fmt: skip
