"""What a KVStore asks of a key-value store, and how it asks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol

from ..errors import ConfigurationError, SDKError, SessionBusyError, StorageError
from ..execution.session import LocalLocks
from .kv_values import damaged

_TURN_SECONDS = 0.005


class KV(Protocol):
    """A key-value store of texts.

    It may also have `async put_if(key, value, expected) -> bool`: put `value` if the key holds `expected`, or
    if there is no such key and `expected` is None, as one atomic step; say whether it was put. One that takes
    the keyword `ttl` too sets the expiry in the same step.
    """

    async def get(self, key: str, /) -> str | bytes | None: ...

    async def put(self, key: str, value: str, /, *, ttl: float | None = None) -> Any:
        """Returns when the value is as durable as this store makes it. `ttl` is in seconds."""
        ...

    async def delete(self, key: str, /) -> Any:
        """A key that is not there is no error."""
        ...


class Access:
    """A KV with its expiry, whose failures are StorageErrors that name the key.

    Attributes:
        kv: the store.
        atomic: whether it can compare and set.
    """

    def __init__(self, kv: KV, ttl: float | None) -> None:
        if ttl is not None and ttl <= 0:
            raise ConfigurationError(f"ttl is {ttl}", hint="use seconds above 0, or None to keep everything")
        self.kv = kv
        self._ttl = ttl
        self._put_if: Any = getattr(kv, "put_if", None)
        self.atomic = self._put_if is not None
        self._expires_in_one_step = self.atomic and _takes_ttl(self._put_if)

    async def get(self, key: str) -> str | None:
        with _failures(key, "read"):
            value = await self.kv.get(key)
        if isinstance(value, bytes):
            try:
                return value.decode()
            except UnicodeDecodeError as error:
                raise damaged(key, str(error)) from error
        if value is not None and not isinstance(value, str):
            raise damaged(key, f"it holds a {type(value).__name__}, not a text")
        return value

    async def put(self, key: str, value: str) -> None:
        with _failures(key, "written"):
            await self.kv.put(key, value, ttl=self._ttl)

    async def delete(self, key: str) -> None:
        with _failures(key, "deleted"):
            await self.kv.delete(key)

    async def swap(self, key: str, value: str, expected: str | None) -> bool:
        """Put a value that nobody else can have made, if the key holds `expected` or held it and expired."""
        done = await self._compare_and_set(key, value, expected, self._ttl)
        if not done and self._ttl is not None and expected is not None and await self.get(key) is None:
            done = await self._compare_and_set(key, value, None, self._ttl)
        if done and self._ttl is not None and not self._expires_in_one_step:
            await self.put(key, value)
        return done

    async def claim(self, key: str, value: str, expected: str | None, seconds: float) -> bool:
        """`swap` for a value that must not expire within `seconds`, nor be put a second time."""
        ttl = None if self._ttl is None else max(self._ttl, seconds)
        return await self._compare_and_set(key, value, expected, ttl)

    async def _compare_and_set(self, key: str, value: str, expected: str | None, ttl: float | None) -> bool:
        options = {"ttl": ttl} if ttl is not None and self._expires_in_one_step else {}
        with _failures(key, "written"):
            done = await self._put_if(key, value, expected, **options)
        # A client that repeats a request whose answer it lost is refused because of its own first one.
        return bool(done) or await self.get(key) == value

    @asynccontextmanager
    async def exclusive(self, key: str) -> AsyncIterator[None]:
        """One at a time within this process, over all its threads and loops."""
        while True:
            try:
                release = _locks.take((id(self.kv), key), key)
                break
            except SessionBusyError:
                await asyncio.sleep(_TURN_SECONDS)
        try:
            yield
        finally:
            release()


_locks = LocalLocks()


@contextmanager
def _failures(key: str, doing: str) -> Iterator[None]:
    try:
        yield
    except SDKError:
        raise
    except Exception as error:
        raise StorageError(
            f"key {key!r} could not be {doing}: {type(error).__name__}: {error}",
            hint="mend the key-value store, then resume",
        ) from error


def _takes_ttl(put_if: Any) -> bool:
    try:
        parameters = inspect.signature(put_if).parameters
    except (TypeError, ValueError):
        return False
    return "ttl" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
