"""Real models from the command line: a killed run, keys that never leak, what is said when none is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aimock import KEY, Aimock, aimock_server, call, roles
from captured import KEY_VARIABLE

pytest.importorskip("pydantic_ai")

from lousho_cli.cli import app

TOOLS = '''
import os, pathlib, signal
from lousho_cli import tool

LEDGER = pathlib.Path(__file__).with_name("ledger.txt")

@tool
def book(size: int) -> str:
    """Book a table."""
    first = not LEDGER.exists()
    with LEDGER.open("a") as file:
        file.write(f"{size}\\n")
    if first and os.environ.get("LOUSHO_TEST_DIE"):
        os.kill(os.getpid(), signal.SIGKILL)
    return "booked"
'''


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with aimock_server() as url:
        yield url


@pytest.fixture
def aimock(server: str, monkeypatch: pytest.MonkeyPatch) -> Aimock:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    return Aimock(server)


@pytest.fixture
def home(aimock: Aimock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `.lousho` of an agent whose model is at the server."""
    home = tmp_path / ".lousho"
    agent = home / "agents" / "waiter"
    (agent / "tools").mkdir(parents=True)
    (home / "config.toml").write_text(aimock.config())
    (agent / "agent.toml").write_text(
        'model = "anthropic:claude-haiku-4-5"\nretries = { base_seconds = 0.01 }\n'
    )
    (agent / "instructions.md").write_text("Book tables.\n")
    (agent / "tools" / "tools.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", "1")
    return home


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capfd.readouterr()
    code = app.run(arguments)
    captured = capfd.readouterr()
    return code, captured.out, captured.err


def said_by_user(request: dict[str, Any]) -> int:
    return sum(message["role"] == "user" for message in request["messages"])


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_run_killed_inside_a_tool_goes_on_without_asking_the_model_again(
    aimock: Aimock, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    aimock.replies({"toolCalls": [call("book", {"size": 2}, "call_1")]}, {"content": "A table for two."})
    killed = subprocess.run(
        [sys.executable, "-m", "lousho_cli", "run", "dinner", aimock.prompt],
        env={**os.environ, "LOUSHO_TEST_DIE": "1"},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert len(aimock.requests()) == 1
    code, out, _ = run(capfd, "resume", "dinner", "--json")
    assert (code, json.loads(out)["text"]) == (0, "A table for two.")
    first, second = aimock.requests()
    assert (said_by_user(first), said_by_user(second)) == (1, 1)
    assert roles(second)[-3:] == ["user", "assistant", "tool"]
    # Once before the kill, once after: a call that was running is run again.
    assert (home / "agents/waiter/tools/ledger.txt").read_text().split() == ["2", "2"]


def test_f29_a_request_that_is_tried_again_says_the_message_once(
    aimock: Aimock, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    aimock.in_turn(
        {"error": {"message": "busy"}, "status": 529},
        {"error": {"message": "broken"}, "status": 500},
        {"content": "Here I am."},
    )
    code, out, _ = run(capfd, "run", "dinner", aimock.prompt, "--json")
    assert (code, json.loads(out)["text"]) == (0, "Here I am.")
    assert [said_by_user(request) for request in aimock.requests()] == [1, 1, 1]
    _, out, _ = run(capfd, "show", "dinner", "--json")
    shown = json.loads(out)
    assert [message["role"] for message in shown["messages"]] == ["system", "user", "assistant"]


def test_a_stream_that_is_cut_is_asked_for_again_and_told_once(
    aimock: Aimock, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = {"content": "Once upon a time there was a table."}
    aimock.in_turn(whole, whole, chunkSize=5, first={"truncateAfterChunks": 3})
    code, out, _ = run(capfd, "run", "dinner", aimock.prompt, "--events")
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    (again,) = [each for each in events if each["type"] == "model.retry"]
    told = [each["text"] for each in events[events.index(again) :] if each["type"] == "text.delta"]
    assert "".join(told) == whole["content"]
    assert len(aimock.requests()) == 2
    _, out, _ = run(capfd, "show", "dinner", "--json")
    turns = [each for each in json.loads(out)["messages"] if each["role"] == "assistant"]
    assert [turn["content"] for turn in turns] == [whole["content"]]


def test_f13_no_key_reaches_a_file_or_the_screen(
    aimock: Aimock, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    quoting = {"error": {"message": f"{KEY} is no key; Authorization: Bearer {KEY}"}, "status": 401}
    aimock.in_turn({"content": "Fine."}, quoting, quoting, quoting)
    shown: list[str] = []
    for arguments in (
        ("run", "dinner", aimock.prompt, "--json"),
        ("run", "dinner", aimock.prompt, "--json"),
        ("--verbose", "resume", "dinner"),
        ("resume", "dinner", "--events"),
        ("show", "dinner", "--json"),
        ("history", "dinner", "--json"),
        ("doctor", "--json"),
    ):
        shown += run(capfd, *arguments)[1:]
    assert len(aimock.requests()) == 4
    assert "LOUSHO_PROVIDER_KEY_REFUSED" in shown[2]
    assert "Traceback" in shown[5]
    assert not [each for each in shown if KEY in each]
    files = [file for file in home.rglob("*") if file.is_file()]
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_what_is_missing_is_told_before_the_message_is_taken(
    home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    code, _, err = run(capfd, "run", "dinner", "hello")
    assert code == 2
    assert "LOUSHO_PROVIDER_MISSING_API_KEY" in err
    assert KEY_VARIABLE in err
    code, _, err = run(capfd, "run", "dinner", "hello", "--model", "nobody:x")
    assert (code, "LOUSHO_CONFIG_MISSING_PROVIDER" in err) == (2, True)
    assert not list(home.glob("agents/*/checkpoints/*"))


def test_without_a_model_it_says_which_one_is_used_and_why(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (home / "agents/waiter/agent.toml").write_text("")
    code, out, err = run(capfd, "run", "dinner", "hello", "--json")
    assert code == 0
    assert json.loads(out)["agent"] == "waiter"
    assert err.splitlines()[0] == (
        "no model is set; using demo: no provider's key is set, and no Ollama runs here"
    )
    # A variable of that name is above what is found, and nothing is said.
    code, _, err = run(capfd, "run", "lunch", "hello", "--json", "--model", "demo")
    assert (code, err) == (0, "")
