"""Leases: one runner of a session over all processes and machines, where a store can compare and set (R3.9).

A lease is a note of who runs the session and until when, renewed while it is held. A runner that dies leaves
one that expires; a runner whose lease was taken meanwhile is refused at its next save.

The machines' clocks have to agree to within 20 seconds, the lease's time less one renewal.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from ..errors import SessionBusyError, StorageError
from ..execution.messages import JsonObject
from ..execution.session import Holder
from .kv_access import Access
from .kv_values import damaged, decode, encode

LEASE_SECONDS = 30.0
"""How long a lease holds without being renewed."""

RENEW_SECONDS = 10.0
"""How often the lease of a held session is renewed."""

_ATTEMPTS = 5


@dataclass(frozen=True)
class Note:
    """What a lease's key holds.

    Attributes:
        fence: the fencing token of the newest runner.
        token: tells this runner from every other; empty once it let go.
        holder: the runner, until it let go.
        expires: until when the lease holds.
    """

    fence: int
    token: str = ""
    holder: Holder | None = None
    expires: datetime | None = None

    def text(self) -> str:
        data: JsonObject = {"fence": self.fence}
        if self.holder is not None and self.expires is not None:
            data.update(
                pid=self.holder.pid, host=self.holder.host, since=self.holder.since,
                expires=self.expires.isoformat(), token=self.token,
            )  # fmt: skip
        return encode(data)

    @classmethod
    def read(cls, key: str, text: str | None) -> Note:
        if text is None:
            return cls(0)
        data = decode(key, text, dict)
        try:
            fence = int(data["fence"])
            if "expires" not in data:
                return cls(fence)
            holder = Holder(int(data["pid"]), str(data["host"]), str(data["since"]))
            expires = datetime.fromisoformat(data["expires"])
            return cls(fence, str(data["token"]), holder, expires.astimezone(UTC))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise damaged(key, f"not a lease: {error!r}") from error

    def live_holder(self) -> Holder | None:
        """Who holds the lease at this moment."""
        return self.holder if self.expires is not None and _now() < self.expires else None

    def renewed(self) -> Note:
        return replace(self, expires=_now() + timedelta(seconds=LEASE_SECONDS))


class Lease:
    """A held lease, renewed by a task of the running loop until it is let go."""

    def __init__(self, access: Access, key: str, session_id: str, note: Note, text: str) -> None:
        self.fence = note.fence
        self._access = access
        self._key = key
        self._session_id = session_id
        self._note = note
        self._text = text
        self._lost = False
        self._turn = asyncio.Lock()
        self._heartbeat = asyncio.create_task(self._beat())

    @classmethod
    async def take(cls, access: Access, key: str, session_id: str) -> Lease:
        """Hold a lease that nobody holds, or whose holder's time is over.

        Raises:
            SessionBusyError: another runner holds it.
        """
        for _ in range(_ATTEMPTS):
            found = await access.get(key)
            before = Note.read(key, found)
            holder = before.live_holder()
            if holder is not None:
                raise holder.busy(session_id)
            note = Note(before.fence + 1, secrets.token_hex(8), Holder.me()).renewed()
            if await access.claim(key, note.text(), found, LEASE_SECONDS):
                return cls(access, key, session_id, note, note.text())
        raise SessionBusyError(
            f"session {session_id!r} is being taken by other runners", hint="try again (--wait SECONDS)"
        )

    async def check(self) -> None:
        """Make sure, before a save, that the session is still held.

        Raises:
            SessionBusyError: another runner took it over.
        """
        if not self._lost and self._note.live_holder() is None:
            await self._renew()
        if self._lost:
            raise taken_over(self._session_id)

    async def release(self) -> None:
        """Let go. A lease that cannot be given back expires by itself."""
        async with self._turn:
            with suppress(StorageError):
                await self._replace(Note(self.fence))
            self._lost = True
        self._heartbeat.cancel()

    async def remove(self) -> None:
        """Let go, and leave no trace."""
        async with self._turn:
            if not self._lost:
                self._lost = True
                await self._access.delete(self._key)
        self._heartbeat.cancel()

    async def _beat(self) -> None:
        while not self._lost:
            await asyncio.sleep(RENEW_SECONDS)
            # A store that fails is met again by the next save, which must not be made without a lease.
            with suppress(StorageError):
                await self._renew()

    async def _renew(self) -> None:
        async with self._turn:
            if not self._lost:
                await self._replace(replace(self._note, fence=self.fence).renewed())

    async def _replace(self, note: Note) -> None:
        """Put another note in place of ours; if the key holds another's, the lease is lost."""
        text = note.text()
        done = await self._access.claim(self._key, text, self._text, LEASE_SECONDS)
        if not done:
            # A renewal that failed or was cancelled may have been carried out.
            found = await self._access.get(self._key)
            ours = found is not None and Note.read(self._key, found).token == self._note.token
            done = ours and await self._access.claim(self._key, text, found, LEASE_SECONDS)
        if done:
            self._note, self._text = note, text
        else:
            self._lost = True


def taken_over(session_id: str) -> SessionBusyError:
    return SessionBusyError(
        f"session {session_id!r} was taken over by another runner; this one stops",
        hint=f"lousho history {session_id} shows what the other one did",
    )


def _now() -> datetime:
    return datetime.now(UTC)
