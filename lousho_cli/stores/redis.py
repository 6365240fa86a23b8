"""Redis and Valkey as the key-value store of a KVStore."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from importlib import import_module
from typing import Any

from ..errors import ConfigurationError

# KEYS: the key. ARGV: the value, its expiry in ms or 0, whether the key must be absent, what it must hold.
_PUT_IF = """
local held = redis.call('GET', KEYS[1])
if ARGV[3] == '1' then
  if held then return 0 end
elseif held ~= ARGV[4] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1])
if ARGV[2] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
"""


class RedisKV:
    """The texts of a Redis or Valkey server: `KVStore(RedisKV("redis://localhost:6379/0"))`.

    Needs the extra `redis`. How durable a save is, is the server's setting: `appendonly yes` with
    `appendfsync always` keeps every save over a power cut.

    Args:
        client_or_url: a server's URL (`redis://`, `rediss://`, `unix://`), or a `redis.asyncio` client. A
            client belongs to one event loop and stays its maker's to close; with a URL every loop gets a
            client of its own, so that one RedisKV serves threads and the `_sync` functions.

    Raises:
        ConfigurationError: the redis package is not installed, or the URL is none.
    """

    def __init__(self, client_or_url: Any) -> None:
        self._redis = _redis()
        self._given = client_or_url
        self._clients: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None, None]]] = {}
        if isinstance(client_or_url, str):
            try:
                self._redis.from_url(client_or_url)
            except ValueError as error:
                raise ConfigurationError(
                    f"not a Redis URL: {error}", hint="write redis://HOST:PORT/DATABASE"
                ) from error

    async def get(self, key: str) -> str | bytes | None:
        value: str | bytes | None = await (await self._client()).get(key)
        return value

    async def put(self, key: str, value: str, *, ttl: float | None = None) -> None:
        await (await self._client()).set(key, value, px=_milliseconds(ttl))

    async def delete(self, key: str) -> None:
        await (await self._client()).delete(key)

    async def put_if(self, key: str, value: str, expected: str | None, *, ttl: float | None = None) -> bool:
        """Put `value` if the key holds `expected`, or is absent and `expected` is None. Atomic."""
        client = await self._client()
        absent = expected is None
        done = await client.eval(
            _PUT_IF, 1, key, value, _milliseconds(ttl) or 0, int(absent), "" if absent else expected
        )
        return bool(done)

    async def close(self) -> None:
        """Close the connections of the running loop. A client that was given stays open."""
        _, lifetime = self._clients.get(asyncio.get_running_loop(), (None, None))
        if lifetime is not None:
            await lifetime.aclose()

    async def _client(self) -> Any:
        if not isinstance(self._given, str):
            return self._given
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            client = self._redis.from_url(self._given)
            lifetime = self._lifetime(loop, client)
            self._clients[loop] = (client, lifetime)
            await anext(lifetime)
        return self._clients[loop][0]

    async def _lifetime(self, loop: asyncio.AbstractEventLoop, client: Any) -> AsyncGenerator[None, None]:
        """Ends at the latest with its loop, which closes every generator that is left."""
        try:
            yield
        finally:
            del self._clients[loop]
            await client.aclose()


def _redis() -> Any:
    try:
        return import_module("redis.asyncio")
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "RedisKV needs the redis package, which is not installed",
            code="LOUSHO_PEER_MISSING",
            hint='pip install "lousho-cli[redis]"',
        ) from error


def _milliseconds(ttl: float | None) -> int | None:
    return None if ttl is None else max(1, round(ttl * 1000))
