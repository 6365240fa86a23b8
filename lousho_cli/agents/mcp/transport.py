"""How a server is reached: a process that is started, or a URL."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ...errors import ConfigurationError
from ...providers.models.servers import filled
from .error_output import ErrorOutput
from .settings import McpServer

if TYPE_CHECKING:
    from mcp.client import Transport

CODE = "LOUSHO_MCP_SERVER_FAILED"
CONNECT_SECONDS = 30.0


def transport_of(server: McpServer, errors: ErrorOutput | None) -> Transport:
    """What the client of the protocol speaks through.

    Args:
        errors: takes the standard error of a process; None for a URL.

    Raises:
        ConfigurationError: `LOUSHO_PEER_MISSING`: the package `mcp` is not installed;
            `LOUSHO_MCP_SERVER_FAILED`: an environment variable or the folder is not there.
    """
    if find_spec("mcp") is None:
        raise ConfigurationError(
            f"{server.where}: tools over MCP need the package mcp",
            code="LOUSHO_PEER_MISSING",
            hint="pip install 'lousho-cli[mcp]'",
        )
    if server.url is not None:
        headers = filled(server.headers, os.environ, server.where, code=CODE)
        return _http(server.url, headers)
    assert errors is not None
    folder = server.folder / (server.cwd or "")
    if not folder.is_dir():
        raise ConfigurationError(
            f"{server.where}: there is no folder {folder}", code=CODE, hint="correct cwd"
        )
    environment = filled(server.env, os.environ, server.where, what="env", code=CODE)
    command = {"command": server.command, "args": [*server.args], "env": environment, "cwd": folder}
    return _process(command, errors)


@asynccontextmanager
async def _process(command: Mapping[str, Any], errors: ErrorOutput) -> AsyncIterator[Any]:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    try:
        async with stdio_client(StdioServerParameters(**command), errlog=errors.stream) as streams:
            errors.handed_over()
            yield streams
    finally:
        errors.handed_over()


@asynccontextmanager
async def _http(url: str, headers: Mapping[str, str]) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    # How long an answer may take is the call's own business.
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=timeout) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams
