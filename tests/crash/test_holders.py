"""R3.9 between processes: one holds a session, others are told who, and a stopped one is not robbed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from kill_checks import TWO_ANSWERS
from kill_world import AGENT, load, make_workspace
from life_client import SETTINGS, FreshLives, ledger

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
BUSY = 5
WAITS = """
@tool
def waits() -> str:
    "waits until somebody writes to the pipe"
    note_text("began")
    with open("pipe") as pipe:
        pipe.read()
    note_text("ended")
    return "waited"
"""
NOTE = """
def note_text(text: str) -> None:
    fd = os.open(os.environ["LOUSHO_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, f"{text}\\n".encode())
    os.close(fd)
    if text == "began":
        with open("told", "w") as pipe:
            pipe.write(text)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A workspace whose agent calls a tool that tells by one pipe that it began, and waits at another."""
    made = make_workspace(tmp_path)
    agent = made / ".lousho" / "agents" / AGENT
    with (agent / "tools" / "tools.py").open("a") as file:
        file.write(NOTE + WAITS)
    turns = [{"tool_calls": [{"name": "waits", "args": {}, "id": "c_waits"}]}, "done"]
    (agent / "script.json").write_text(json.dumps(turns))
    for name in ("pipe", "told"):
        os.mkfifo(made / name)
    return made


def started(home: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "lousho_cli", *words],
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **SETTINGS},
    )


@contextmanager
def holding(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the session `s` and is in the midst of a tool."""
    process = started(home, "run", "s", "go")
    try:
        assert (home / "told").read_text() == "began"
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


def test_a_holder_that_is_stopped_is_not_robbed_and_goes_on_when_it_is_woken(home: Path) -> None:
    others = FreshLives()
    with holding(home) as holder:
        holder.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
        before = load(home, "s")
        for words in (("run", "s", "me too"), ("resume", "s"), ("delete", "s", "--yes")):
            refused = others.run(home, *words)
            assert refused.code == BUSY, refused
            assert re.search(rf"process {holder.pid} on .+ since 2\d", refused.err), refused
        assert others.run(home, "show", "s").code == 0
        assert load(home, "s") == before
        holder.send_signal(signal.SIGCONT)
        (home / "pipe").write_text("go on")
        out, err = holder.communicate()
        assert (holder.returncode, out) == (0, "done\n"), err
    assert ledger(home) == ["began", "ended"]
    found = load(home, "s")
    assert found is not None
    assert [message["role"] for message in found["messages"]] == [
        "system", "user", "assistant", "tool", "assistant"
    ]  # fmt: skip


def test_a_holder_that_is_killed_while_it_is_stopped_blocks_nobody(home: Path) -> None:
    with holding(home) as holder:
        holder.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
        holder.kill()
        holder.wait()
        following = started(home, "resume", "s")
        assert (home / "told").read_text() == "began"
        (home / "pipe").write_text("go on")
        out, err = following.communicate()
    assert (following.returncode, out) == (0, "done\n"), err
    assert ledger(home) == ["began", "began", "ended"]


def contend(home: Path, *command: str, processes: int) -> list[tuple[int, str]]:
    """The exit codes and the words of as many processes with the same command, all at once."""
    running = [started(home, *command) for _ in range(processes)]
    ends = [process.communicate() for process in running]
    return [(process.returncode, out + err) for process, (out, err) in zip(running, ends, strict=True)]


def check_contest(home: Path, ends: list[tuple[int, str]], done: int) -> None:
    """Whoever did not do the work was told who did; no step and no save is there twice, no tool ran twice."""
    for code, told in ends:
        assert code in (done, 2, BUSY, 3, 4), told
        if code == BUSY:
            assert re.search(r"process \d+ on .+ since 2\d|is being run by another process", told), told
    ran = Counter(line for line in ledger(home) if line.startswith("ran "))
    assert set(ran.values()) <= {1}, ran
    lines = (home / ".lousho" / "agents" / AGENT / "checkpoints" / "s.jsonl").read_bytes().splitlines()
    saves = [json.loads(line)["seq"] for line in lines[1:]]
    assert saves == list(range(1, len(saves) + 1))


def contest(home: Path, processes: int) -> None:
    """Everybody runs, then everybody approves, until all is answered."""
    check_contest(home, contend(home, "run", "s", "go", processes=processes), 3)
    for text in (None, "more"):
        if text is not None:
            check_contest(home, contend(home, "run", "s", text, processes=processes), 3)
        found = load(home, "s")
        assert found is not None
        assert found["status"] == "awaiting-approval"
        approve = ("approve", found["engine"]["approval"]["id"])
        check_contest(home, contend(home, *approve, processes=processes), 0)
    found = load(home, "s")
    assert found is not None
    assert "".join(message["role"][0] for message in found["messages"]) == TWO_ANSWERS


@pytest.mark.parametrize("processes", [2, 4])
def test_f08_of_processes_that_want_one_session_one_gets_it(tmp_path: Path, processes: int) -> None:
    contest(make_workspace(tmp_path), processes)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_f08_fifty_rounds_of_two_and_of_eight_processes(tmp_path: Path) -> None:
    for processes in (2, 8):
        for number in range(50):
            contest(make_workspace(tmp_path / f"{processes}-{number}"), processes)
        print(f"\n50 rounds of {processes} processes")
