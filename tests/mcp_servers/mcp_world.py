"""Servers that others wrote, and agents that use them."""

from __future__ import annotations

import asyncio
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lousho_cli import ExecutionResult, MemoryStore, create_agent
from lousho_cli.agents.create import DurableAgent
from lousho_cli.testing import ScriptedModel

# Read before the tests are shielded from the machine's settings.
GIVEN_EVERYTHING = os.environ.get("LOUSHO_TEST_MCP_EVERYTHING")
IN_CI = os.environ.get("CI") == "true"
MARK = "LOUSHO_SERVERS_OF_THIS_TEST"
END_SECONDS = 40


def call(name: str, call_id: str | None = None, **args: Any) -> dict[str, Any]:
    """A turn that calls a tool."""
    return {"tool_calls": [{"name": name, "args": args, **({"id": call_id} if call_id else {})}]}


class Servers:
    """Settings of servers whose processes can be found again.

    Attributes:
        mark: what their environment has.
    """

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex

    def time(self, zone: str = "UTC", **settings: Any) -> dict[str, Any]:
        """`mcp-server-time`; what its tools take mentions the zone."""
        args = ["-m", "mcp_server_time", "--local-timezone", zone]
        return {"command": sys.executable, "args": args, "env": {MARK: self.mark}, **settings}

    def everything(self, *, log: Path | None = None, **settings: Any) -> dict[str, Any]:
        """`@modelcontextprotocol/server-everything`; what it is sent is written to `log`."""
        command = [*everything_command(), "stdio"]
        if log is not None:
            line = f"tee {shlex.quote(str(log))} | exec {shlex.join(command)}"
            command = ["/bin/sh", "-c", line]
        return {"command": command[0], "args": command[1:], "env": {MARK: self.mark}, **settings}

    def pids(self) -> list[int]:
        """The processes of these servers that are alive."""
        found = []
        wanted = f"{MARK}={self.mark}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    environment = (entry / "environ").read_bytes()
                except OSError:
                    continue
                if wanted in environment.split(b"\0"):
                    found.append(int(entry.name))
        return found

    def kill(self) -> None:
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)
        self.wait_for_the_end()

    def wait_for_the_end(self) -> None:
        """Return when none is alive; fails after some time."""
        for pid in self.pids():
            try:
                handle = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            ended, _, _ = select.select([handle], [], [], END_SECONDS)
            os.close(handle)
            assert ended, f"process {pid} is still there"


def everything_command() -> list[str]:
    """Starts server-everything, or skips; in CI, where it has to be, fails."""
    if GIVEN_EVERYTHING is not None:
        return shlex.split(GIVEN_EVERYTHING)
    binary = shutil.which("mcp-server-everything")
    if binary is None:
        what = "neither LOUSHO_TEST_MCP_EVERYTHING nor mcp-server-everything, an npm package"
        if IN_CI:
            pytest.fail(f"there is {what}")
        pytest.skip(f"there is {what}")
    return [binary]


@contextmanager
def everything_over_http(servers: Servers, port: int) -> Iterator[str]:
    """The URL of a running server-everything."""
    process = subprocess.Popen(
        [*everything_command(), "streamableHttp"],
        env={**os.environ, "PORT": str(port), MARK: servers.mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "listening" in line:
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.communicate()


class Talk:
    """An agent with MCP servers, its model a script."""

    def __init__(self, mcp: Mapping[str, Mapping[str, Any]], **options: Any) -> None:
        self.mcp = mcp
        self.options = options
        self.store = MemoryStore()
        self.model = ScriptedModel([])

    def agent(self, script: list[Any]) -> DurableAgent:
        self.model = ScriptedModel(script)
        return create_agent(name="bot", provider=self.model, store=self.store, mcp=self.mcp, **self.options)

    def send(self, script: list[Any], message: str | None = "go", **options: Any) -> ExecutionResult:
        """Each a life of its own, event loop included."""
        return asyncio.run(self.agent(script).send(message, session_id="s1", **options))

    def approve(self, approval: str | None, script: list[Any]) -> ExecutionResult | None:
        assert approval is not None
        return asyncio.run(self.agent(script).approvals.resolve(approval, True, by="ann"))

    def tools(self) -> dict[str, Mapping[str, Any]]:
        """What the model was told of the tools in its last request."""
        return {each.name: each.parameters for each in self.model.calls[-1].tools}


@pytest.fixture
def servers() -> Iterator[Servers]:
    """Servers, and after the test not one of their processes."""
    if not sys.platform.startswith("linux"):
        pytest.skip("processes are looked for in /proc")
    each = Servers()
    yield each
    left = each.pids()
    each.kill()
    assert not left, "a server outlived the test"
