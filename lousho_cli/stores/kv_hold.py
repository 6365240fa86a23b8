"""Holding a session of a key-value store: one runner at a time (R3.9)."""

from __future__ import annotations

from ..execution.session import LocalLocks
from .kv_access import Access
from .kv_keys import Keys
from .kv_lease import Lease

_locks = LocalLocks()


class Hold:
    """A session held by this runner: within its process, and by a lease where one is possible."""

    def __init__(self, access: Access, keys: Keys, session_id: str) -> None:
        key = keys.checkpoint(session_id)
        self._unlock = _locks.take((id(access.kv), key), session_id)
        self._lease: Lease | None = None

    @classmethod
    async def take(cls, access: Access, keys: Keys, session_id: str) -> Hold:
        """Hold a session.

        Raises:
            SessionBusyError: another runner holds it.
        """
        hold = cls(access, keys, session_id)
        if access.atomic:
            try:
                hold._lease = await Lease.take(access, keys.lease(session_id), session_id)
            except BaseException:
                hold._unlock()
                raise
        return hold

    def fence_above(self, fence: int) -> int:
        """This runner's fencing token: larger than `fence`, and than those of all who held the lease."""
        if self._lease is None:
            return fence + 1
        self._lease.fence = max(self._lease.fence, fence + 1)
        return self._lease.fence

    async def check(self) -> None:
        """Make sure, before a write, that the session is still held.

        Raises:
            SessionBusyError: another runner took it over.
        """
        if self._lease is not None:
            await self._lease.check()

    async def close(self, *, gone: bool = False) -> None:
        """Let go. With `gone` the session was deleted, and its lease goes too."""
        try:
            if self._lease is not None:
                await (self._lease.remove() if gone else self._lease.release())
        finally:
            self._unlock()
