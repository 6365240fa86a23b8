"""A server's tools as an agent's: offered under its name, called through one connection a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ConfigurationError
from ...execution.tools import KnownFailure, OnInterrupt, Tool, ToolContext
from .arguments import binder, parameters_of
from .connection import Connection
from .naming import tool_name
from .results import error_text, result_value
from .settings import McpServer, McpTool

if TYPE_CHECKING:
    from mcp.types import Tool as ListedTool
    from mcp.types import ToolAnnotations

MAX_RESTARTS = 3
_CONTEXT = "lousho context"
"""The parameter that takes the context: no argument is likely to be named so."""


class McpToolset:
    """The tools of one server, for the engine to open."""

    def __init__(self, server: McpServer) -> None:
        self.server = server

    async def open(self) -> OpenServer:
        """Start the server; see `Connection.open`."""
        return OpenServer(self.server, await Connection.open(self.server))


class OpenServer:
    """A server in use by one run. One that dies is started again for the next call, a few times.

    Attributes:
        tools: those it offers. They stay what they were when the run began.
    """

    def __init__(self, server: McpServer, connection: Connection) -> None:
        self._server = server
        self._connection = connection
        self._looking = asyncio.Lock()
        self._running = 0
        self._restarts = 0
        self._doubtful = self._lost = False
        self.tools: Sequence[Tool] = [
            self._tool(listed) for listed in connection.tools if server.offers(listed.name)
        ]

    async def close(self) -> None:
        await self._connection.close()

    def _tool(self, listed: ListedTool) -> Tool:
        own = self._server.tool.get(listed.name, McpTool())
        notes = listed.annotations
        read_only = notes is not None and notes.read_only_hint is True

        async def call(**arguments: Any) -> Any:
            return await self._call(listed.name, arguments.pop(_CONTEXT), arguments)

        return Tool(
            name=tool_name(self._server.name, listed.name),
            description=listed.description or listed.title or "",
            parameters=parameters_of(listed.input_schema),
            function=call,
            bind=binder(listed.input_schema),
            is_async=True,
            context_parameter=_CONTEXT,
            needs_approval=not read_only if own.needs_approval is None else own.needs_approval,
            on_interrupt=own.on_interrupt or _on_interrupt(notes),
            timeout=own.timeout or self._server.timeout,
        )

    async def _call(self, tool: str, context: ToolContext, arguments: dict[str, Any]) -> Any:
        connection = await self._connected()
        meta = {"idempotencyKey": context.tool_call_id}
        if context.session_id is not None:
            meta["sessionId"] = context.session_id
        self._running += 1
        try:
            result = await connection.call(tool, arguments, meta)
        except asyncio.CancelledError:
            # It took too long, or the run is aborted: the next call sees whether the server hangs.
            self._doubtful = True
            raise
        except Exception as error:
            raise await self._failure(connection, error) from error
        finally:
            self._running -= 1
        if result.is_error:
            raise KnownFailure("tool-error", error_text(result))
        return result_value(result)

    async def _failure(self, connection: Connection, error: Exception) -> KnownFailure:
        """What a call that the server did not answer properly fails with."""
        if await connection.answers():
            return KnownFailure("tool-error", str(error) or type(error).__name__)
        self._lost = self._lost or connection is self._connection
        words = await connection.last_words()
        return KnownFailure(
            "tool-error", f"the MCP server {self._server.name} is gone: the call may have acted{words}"
        )

    async def _connected(self) -> Connection:
        """The connection, made anew where the server is gone or hangs.

        Raises:
            KnownFailure: that did not work, or was done too often.
        """
        async with self._looking:
            if self._doubtful and not self._running:
                self._doubtful = False
                self._lost = self._lost or not await self._connection.answers()
            if self._lost:
                await self._restart()
            return self._connection

    async def _restart(self) -> None:
        name = self._server.name
        if self._restarts >= MAX_RESTARTS:
            text = f"the MCP server {name} has ended {self._restarts + 1} times and is not started again"
            raise KnownFailure("tool-error", f"{text}: the call did not run")
        self._restarts += 1
        await self._connection.close()
        try:
            self._connection = await Connection.open(self._server)
        except ConfigurationError as error:
            raise KnownFailure("tool-error", f"the call did not run: {error.message}") from error
        self._lost = False


def _on_interrupt(notes: ToolAnnotations | None) -> OnInterrupt | None:
    """What becomes of an interrupted call, by what the server says of the tool.

    A tool that only reads runs again. One whose repetition changes nothing is treated as a tool of ours is: a
    call that was approved is asked about. What else a repetition might do, a human has to decide.
    """
    if notes is not None and notes.read_only_hint is True:
        return "rerun"
    return None if notes is not None and notes.idempotent_hint is True else "ask"
