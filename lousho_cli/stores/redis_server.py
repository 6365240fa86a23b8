"""The Redis or Valkey server that a setting names: its keys can be listed, its failures name it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from ..errors import ConfigurationError, StorageError
from .backend_location import StoreLocation
from .redis import RedisKV

_SCANNED_AT_ONCE = 1000


class RedisServer(RedisKV):
    """A RedisKV whose failures are StorageErrors that name the server, without its credentials.

    Raises:
        ConfigurationError: the redis package is not installed, or an option in the URL is wrong.
    """

    def __init__(self, location: StoreLocation) -> None:
        # The redis package knows Valkey by no name of its own.
        url = re.sub("^valkey:", "redis:", location.target)
        super().__init__(url)
        try:
            self._redis.from_url(url).connection_pool.make_connection()
        except TypeError as error:
            raise ConfigurationError(
                f"{location.shown}: an option of its URL is unknown: {error}", hint="leave it out of the URL"
            ) from error
        self._shown = location.shown
        self._error: type[Exception] = import_module("redis.exceptions").RedisError

    async def get(self, key: str) -> str | bytes | None:
        with self._failures():
            return await super().get(key)

    async def put(self, key: str, value: str, *, ttl: float | None = None) -> None:
        with self._failures():
            await super().put(key, value, ttl=ttl)

    async def delete(self, key: str) -> None:
        with self._failures():
            await super().delete(key)

    async def put_if(self, key: str, value: str, expected: str | None, *, ttl: float | None = None) -> bool:
        with self._failures():
            return await super().put_if(key, value, expected, ttl=ttl)

    async def keys(self, prefix: str) -> list[str]:
        """The keys of texts that begin with `prefix`, by name. It walks over the whole database."""
        pattern = re.sub(r"[*?\[\]\\]", r"\\\g<0>", prefix) + "*"
        with self._failures():
            client = await self._client()
            # A walk may come by a key twice.
            found = {key async for key in client.scan_iter(pattern, count=_SCANNED_AT_ONCE, _type="STRING")}
        texts = (key.decode(errors="replace") if isinstance(key, bytes) else str(key) for key in found)
        return sorted(texts)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (self._error, OSError) as error:
            raise StorageError(
                f"{self._shown} could not be used: {error}",
                hint="see that the server runs and that the URL is right, then resume",
            ) from error
