"""What `[mcp.NAME]` in an `agent.toml` says: where a server's tools come from, and how they may be used."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import ConfigurationError
from ...execution.tools import OnInterrupt
from ...providers.models.servers import check_headers, check_url
from ...toml_file import (
    Key,
    check_table,
    number,
    one_of,
    read_tables,
    tables,
    text,
    texts,
    texts_by_name,
    yes_or_no,
)

MCP = "mcp"
TOOL_KEYS: Mapping[str, Key] = {
    "needs_approval": yes_or_no(),
    "on_interrupt": one_of("rerun", "ask", "fail"),
    "timeout": number(0, above=True),
}
"""What `[mcp.NAME.tool.X]` may set."""

SERVER_KEYS: Mapping[str, Key] = {
    "command": text(),
    "args": texts(),
    "env": texts_by_name(),
    "cwd": text(),
    "url": text(),
    "headers": texts_by_name(),
    "timeout": number(0, above=True),
    "start_timeout": number(0, above=True),
    "tools": texts(),
    "exclude": texts(),
    "tool": tables(TOOL_KEYS),
}
"""What `[mcp.NAME]` may set."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_OF_A_COMMAND = ("args", "env", "cwd")


@dataclass(frozen=True, slots=True)
class McpTool:
    """What is set about one tool of a server; None leaves it to what the server says.

    Attributes:
        needs_approval: whether a human must agree to a call.
        on_interrupt: what becomes of a call that was running when the process died.
        timeout: seconds a call may take.
    """

    needs_approval: bool | None = None
    on_interrupt: OnInterrupt | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server: a command that is started, or a URL.

    Attributes:
        name: what its tools' names begin with.
        command, args: what is started; it speaks MCP on its standard input and output.
        env: its environment, over a few harmless variables; `${VARIABLE}` stands for one of ours.
        cwd: the folder it is started in, relative to `folder`; None for that one.
        url: where it is, for Streamable HTTP.
        headers: sent with each request; `${VARIABLE}` stands for an environment variable.
        timeout: seconds a call may take.
        start_timeout: seconds it has until its tools are known.
        tools: the names of those to offer; None for all.
        exclude: the names of those not to offer.
        tool: what is set about single tools, by name.
        where: the file it is set up in, for messages.
        folder: the agent's folder.
    """

    name: str
    command: str | None = None
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 60.0
    start_timeout: float = 30.0
    tools: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    tool: Mapping[str, McpTool] = field(default_factory=dict)
    where: str = ""
    folder: Path = field(default_factory=Path)

    @classmethod
    def of(cls, name: str, values: Mapping[str, Any], where: str, folder: Path) -> McpServer:
        """A server out of the values of its table.

        Raises:
            ConfigurationError: a value is wrong, or a secret stands in plain text.
        """
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"{where}: {name!r} cannot be the name of an MCP server",
                hint="use up to 32 letters, digits, _ and -, a letter first",
            )
        check_table(where, values, SERVER_KEYS)
        rest = {key: value for key, value in values.items() if key != "tool"}
        single = {tool: McpTool(**settings) for tool, settings in values.get("tool", {}).items()}
        server = cls(name, **rest, tool=single, where=where, folder=folder)
        server._check()
        return server

    @property
    def what(self) -> str:
        """The server in an error's words, without arguments and queries, which may hold a secret."""
        return f"command {self.command}" if self.url is None else f"url {self.url.partition('?')[0]}"

    def offers(self, tool: str) -> bool:
        """Whether a tool of the server is one of the agent's."""
        return (self.tools is None or tool in self.tools) and tool not in self.exclude

    def _check(self) -> None:
        if (self.command is None) == (self.url is None):
            raise ConfigurationError(f"{self.where}: give either command or url")
        misplaced = _OF_A_COMMAND if self.url is not None else ("headers",)
        for key in misplaced:
            if getattr(self, key):
                kind = "command" if self.url is not None else "url"
                raise ConfigurationError(f"{self.where}: {key} is for a server with a {kind}")
        if self.url is not None:
            check_url("url", self.url, self.where)
        check_headers(self.headers, self.where)


def read_servers(file: Path) -> list[McpServer]:
    """The servers of the tables `[mcp.NAME]` in an `agent.toml`.

    Raises:
        ConfigurationError: a key or a value is wrong.
    """
    named = read_tables(file, MCP, SERVER_KEYS)
    return [
        McpServer.of(name, values, f"{file}: [{MCP}.{name}]", file.parent) for name, values in named.items()
    ]


def servers_of(given: Mapping[str, Mapping[str, Any]], folder: Path) -> list[McpServer]:
    """Servers by name, each as its table in an `agent.toml` would be.

    Raises:
        ConfigurationError: a key or a value is wrong.
    """
    return [McpServer.of(name, values, f"mcp[{name!r}]", folder) for name, values in given.items()]
