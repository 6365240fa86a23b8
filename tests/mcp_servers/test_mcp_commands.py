"""`[mcp.NAME]` in a workspace: which commands start servers, and that none outlives lousho."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_world import Servers, Talk, call, everything_over_http, servers

__all__ = ["servers"]

# Several processes each, on a machine that may have little time for them.
pytestmark = pytest.mark.timeout(300)

LOUSHO = (sys.executable, "-m", "lousho_cli")


class Workspace:
    def __init__(self, root: Path, servers: Servers, script: list[Any]) -> None:
        self.root = root
        self.log = root / "sent"
        self.agent = root / ".lousho" / "agents" / "bot"
        self.agent.mkdir(parents=True)
        settings = servers.everything(log=self.log)
        words = [f"{key} = {json.dumps(settings[key])}" for key in ("command", "args")]
        words += [f'env = {{ {name} = "{value}" }}' for name, value in settings["env"].items()]
        text = "\n".join(['model = "script:script.json"', "[mcp.all]", *words])
        (self.agent / "agent.toml").write_text(text)
        (self.agent / "script.json").write_text(json.dumps(script))

    @property
    def was_started(self) -> bool:
        return self.log.exists()

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*LOUSHO, *words, "--json"],
            cwd=self.root,
            env={**os.environ, "LOUSHO_TRUST_WORKSPACE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, Any, str]:
        """The exit code, the JSON and standard error of a command."""
        process = self.start(*words)
        out, err = process.communicate()
        return process.returncode, json.loads(out), err


def test_only_a_run_and_an_approval_start_a_server(servers: Servers, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, servers, [call("all_toggle-simulated-logging"), "done"])
    code, paused, err = workspace.run("run", "s1", "go")
    assert code == 3
    assert "Starting default" not in err
    workspace.log.unlink()
    for words in (["approvals"], ["show", "s1"], ["doctor"]):
        workspace.run(*words)
    assert not workspace.was_started
    code, approved, _ = workspace.run("approve", paused["approvalId"])
    assert (code, approved["text"]) == (0, "done")
    assert workspace.was_started


def test_a_rejection_starts_no_server(servers: Servers, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, servers, [call("all_toggle-simulated-logging"), "done"])
    _, paused, _ = workspace.run("run", "s1", "go")
    workspace.log.unlink()
    (workspace.agent / "agent.toml").write_text('model = "script:script.json"\n')
    code, _, _ = workspace.run("approve", paused["approvalId"], "--reject", "--no-run")
    assert code == 0
    assert not workspace.was_started


@pytest.mark.parametrize(
    # After a kill the server sees the end of its input. This one then ends when its last timer has.
    ("number", "duration"),
    [(signal.SIGKILL, 1), (signal.SIGINT, 600)],
)
def test_no_server_outlives_lousho(
    servers: Servers, tmp_path: Path, number: signal.Signals, duration: int
) -> None:
    slow = call("all_trigger-long-running-operation", duration=duration, steps=1)
    workspace = Workspace(tmp_path, servers, [slow, "done"])
    process = workspace.start("run", "s1", "go", "--events")
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["type"] == "tool.start":
            break
    assert servers.pids()
    process.send_signal(number)
    process.communicate()
    servers.wait_for_the_end()
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)


def test_a_server_at_a_url(servers: Servers, free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_THE_TEST", "secret")
    with everything_over_http(servers, free_port) as url:
        headers = {"Authorization": "Bearer ${TOKEN_OF_THE_TEST}"}
        talk = Talk({"far": {"url": url, "headers": headers}})
        assert talk.send([call("far_echo", message="hi"), "done"]).text == "done"
    shown = [each.content for each in talk.model.calls[-1].messages if each.role == "tool"]
    assert shown == ['"Echo: hi"']


@pytest.fixture
def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
