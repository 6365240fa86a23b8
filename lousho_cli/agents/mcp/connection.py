"""One connection to a server: the client of the protocol, and the tools the server lists."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ..._version import __version__
from ...errors import ConfigurationError
from .error_output import ErrorOutput
from .settings import McpServer
from .transport import CODE, transport_of

if TYPE_CHECKING:
    from anyio import CancelScope
    from mcp import Client
    from mcp.client import Transport
    from mcp.types import CallToolResult, RequestParamsMeta, Tool

MAX_PAGES = 100
PROBE_SECONDS = 5.0
CLOSE_SECONDS = 8.0
"""A process is asked to end, then terminated, then killed; all that takes less."""

# What the client library logs is no business of a terminal, unless somebody asks for it.
logging.getLogger("mcp").addHandler(logging.NullHandler())


class Connection:
    """A server that answers. A task of its own holds it, as a cancel scope must end in the task it began in.

    Attributes:
        tools: what it listed when the connection was made.
    """

    tools: list[Tool]
    _client: Client

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._errors = ErrorOutput(server.name) if server.command is not None else None
        self._scope: CancelScope | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, server: McpServer) -> Connection:
        """Start the process or reach the URL, and list the tools.

        Raises:
            ConfigurationError: `LOUSHO_MCP_SERVER_FAILED`: that did not work, or not in time;
                `LOUSHO_PEER_MISSING`: the package `mcp` is not installed.
        """
        connection = cls(server)
        try:
            await connection._start()
        except BaseException:
            await connection.close()
            raise
        return connection

    async def call(self, tool: str, arguments: dict[str, Any], meta: Mapping[str, Any]) -> CallToolResult:
        """Call a tool. A cancellation is told to the server.

        Raises:
            Exception: the server refused the call, or is gone: `answers` tells which.
        """
        return await self._client.call_tool(tool, arguments, meta=cast("RequestParamsMeta", dict(meta)))

    async def answers(self) -> bool:
        """Whether the server is there and answers within some seconds."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._client.list_tools()
        except Exception:
            return False
        return True

    async def last_words(self) -> str:
        """The last line of its standard error, for the end of a message; empty if there is none."""
        line = await self._errors.last_line() if self._errors is not None else ""
        return f"; the last line of its standard error: {line}" if line else ""

    async def close(self) -> None:
        """End the connection, and the process with everything it has started."""
        self._closing.set()
        if self._errors is not None and self._task is None:
            self._errors.handed_over()
        for begun in (self._ready.done(), False):
            if self._task is None or self._task.done():
                return
            if not begun and self._scope is not None:
                self._scope.cancel()
            await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)

    async def _start(self) -> None:
        server = self._server
        self._task = asyncio.ensure_future(self._hold(transport_of(server, self._errors)))
        await asyncio.wait({self._ready}, timeout=server.start_timeout)
        if not self._ready.done():
            raise await self._failed(f"it did not list its tools within {server.start_timeout:g} s")
        self._ready.result()

    async def _hold(self, transport: Transport) -> None:
        import anyio
        from mcp import Client
        from mcp.types import Implementation

        about = Implementation(name="lousho", version=__version__)
        try:
            with anyio.CancelScope() as self._scope:
                async with Client(transport, client_info=about, cache=None) as self._client:
                    self.tools = await _all_tools(self._client)
                    self._ready.set_result(None)
                    await self._closing.wait()
        except Exception as error:
            # Later on, a call will notice.
            if not self._ready.done():
                self._ready.set_exception(await self._failed(_words(error)))
                # Perhaps nobody waits for it any more.
                self._ready.exception()

    async def _failed(self, why: str) -> ConfigurationError:
        server = self._server
        return ConfigurationError(
            f"{server.where}: the MCP server ({server.what}) could not be started: "
            f"{why}{await self.last_words()}",
            code=CODE,
            hint="start it by hand to see what it says" if server.command else "see that it is there",
        )


async def _all_tools(client: Client) -> list[Tool]:
    tools: list[Tool] = []
    cursor = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def _words(error: BaseException) -> str:
    """What went wrong, without the groups that tasks wrap it in."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return "there is no such command"
    text = str(error)
    return "it ended before it had answered" if text == "Connection closed" else text or type(error).__name__
