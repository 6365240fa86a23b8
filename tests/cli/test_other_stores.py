"""Every command on a SQLite file and on a real Redis server: it does what it does on files."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from redis_process import forget_sessions, free_port, redis_client, redis_server
from scripted_workspace import ScriptedWorkspace, calls

from lousho_cli.cli import app
from lousho_cli.execution.sync import run_sync
from lousho_cli.stores.backend import open_backends
from lousho_cli.stores.sqlite_schema import record_id

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals that stop a process")

TOOLS = """
    @tool
    def look(n: int = 1) -> str:
        "Look."
        note("look")
        return "seen"

    @tool
    def slow(ctx: ToolContext) -> str:
        "Slow."
        note("slow")
        for _ in range(400):
            if ctx.cancel.is_set():
                return "stopped"
            time.sleep(0.05)
        return "done"

    @tool
    def brief() -> str:
        "Runs until it is let go."
        note("brief")
        for _ in range(3000):
            if "go-on" in LEDGER.read_text():
                break
            time.sleep(0.02)
        return "done"

    @tool
    def once() -> str:
        "Kills its process the first time."
        note("once")
        if LEDGER.read_text().count("once") == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return "done"

    @tool
    def fails() -> str:
        "Fail."
        raise ValueError("no luck")

    @tool(needs_approval=True)
    def pay(amount: int = 5) -> str:
        "Pay."
        note(f"pay{amount}")
        return f"paid {amount}"
"""


LISTS = (
    "history s", "history s.fork-1", "show s --at 7", "sessions", "history s --graph", "diff s s@2",
)  # fmt: skip


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The kind of store that every command of a test uses."""
    url = request.getfixturevalue("redis_url") if request.param == "redis" else None
    monkeypatch.setenv("LOUSHO_STORE", url or "sqlite:state/sessions.db")
    yield str(request.param)
    if url is not None:
        forget_sessions(url)


@pytest.fixture
def bot(tmp_path: Path) -> ScriptedWorkspace:
    return ScriptedWorkspace(tmp_path)


class Shell:
    """Command lines in this process, in a folder of their own."""

    def __init__(self, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.err = ""
        self._capfd = capfd

    def run(self, *words: str, code: int = 0) -> str:
        """What a command prints on standard output."""
        self._capfd.readouterr()
        ended = app.run(words)
        out, self.err = self._capfd.readouterr()
        assert ended == code, f"exit {ended}\n{out}\n{self.err}"
        return out

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", code=code))


@pytest.fixture
def lousho(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", "1")
    return Shell(tmp_path, capfd)


def test_the_tour_of_the_readme(store: str, lousho: Shell) -> None:
    paused = lousho.json("run", "chat-42", "Book a table for 2 tonight", code=3)
    assert [each["id"] for each in lousho.json("approvals")["approvals"]] == [paused["approvalId"]]
    assert lousho.json("run", "chat-42", "Are you done?", code=3)["error"]["code"].endswith("APPROVAL")
    booked = lousho.json("approve", paused["approvalId"][:8])
    assert (booked["status"], booked["finishReason"]) == ("finished", "stop")
    assert lousho.json("approvals") == {"approvals": []}
    again = lousho.json("run", "chat-42", "Make it 3 people", code=3)
    assert again["approval"]["args"]["party_size"] == 3
    assert lousho.json("approve", again["approvalId"], "--reject", "--note", "no")["status"] == "finished"

    lousho.run("run", "trip", "Plan my trip")
    assert lousho.json("show", "@last")["sessionId"] == "trip"
    assert "@last is session trip of agent concierge" in lousho.err
    made = lousho.json("fork", "trip", "--from-step", "1", "--tool-result", 'get_weather={"forecast":"rain"}')
    assert made == {"sessionId": "trip.fork-1", "step": 1, "parent": {"sessionId": "trip", "seq": 3}}
    lousho.run("resume", "trip.fork-1")
    compared = lousho.json("diff", "trip", "trip.fork-1")
    assert (compared["divergedAt"], compared["common"]) == (1, {"sessionId": "trip", "seq": 3, "step": 1})
    assert lousho.json("diff", "trip@3", "trip.fork-1@4")["common"]["seq"] == 3
    lousho.run("diff", "trip", "trip.fork-1", "--exit-code", code=1)
    graph = lousho.json("history", "trip", "--graph")["sessions"]
    assert [each["sessionId"] for each in graph] == ["trip", "trip.fork-1"]
    listed = lousho.json("sessions")["sessions"]
    assert [(each["sessionId"], each["status"]) for each in listed] == [
        ("trip.fork-1", "finished"), ("trip", "finished"), ("chat-42", "finished"),
    ]  # fmt: skip
    assert {each["agent"] for each in listed} == {"concierge"}
    assert lousho.json("history", "trip", "--step", "2")["entries"][-1]["event"] == "turn"
    assert lousho.json("show", "trip", "--at", "2")["seq"] == 2

    lousho.run("delete", "trip", "--yes", "--keep-history")
    assert "was deleted; only its history is left" in lousho.json("show", "trip", code=4)["error"]["message"]
    assert lousho.json("fork", "trip", "--at", "3", "--as", "back")["sessionId"] == "back"
    lousho.run("delete", "trip", "--yes")
    lousho.run("history", "trip", code=4)
    assert lousho.json("show", "trip.fork-1")["status"] == "finished"
    folders = {each.name for each in (lousho.root / ".lousho" / "agents" / "concierge").iterdir()}
    assert not folders & {"checkpoints", "checkpoint-history", "approvals", "locks"}


def test_lists_say_what_they_say_on_files(
    store: str, lousho: Shell, bot: ScriptedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = {"tool_calls": [{"name": "pay", "id": "p1"}, {"name": "look", "id": "l2"}]}
    third = {"tool_calls": [{"name": "pay", "id": "p2", "args": {"amount": 6}}]}
    bot.make([calls("look", "fails"), second, third, "all done"], TOOLS)

    def play() -> list[Any]:
        lousho.run("run", "s", "go", "--tool-concurrency", "1", code=3)
        for decision, code in (("--quiet", 3), ("--reject", 0)):
            (waiting,) = lousho.json("approvals")["approvals"]
            lousho.run("approve", waiting["id"], decision, code=code)
        lousho.run("fork", "s", "--from-step", "1", "--append-input", "more")
        return [_without_times(lousho.json(*words.split())) for words in LISTS]

    there = play()
    monkeypatch.setenv("LOUSHO_STORE", "file")
    assert play() == there


def test_a_copy_of_a_fork_is_listed_as_on_files(
    store: str, lousho: Shell, bot: ScriptedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot.make([calls("look"), "done"], TOOLS)

    def play() -> list[Any]:
        lousho.run("run", "s", "go")
        lousho.run("fork", "s", "--from-step", "1", "--as", "f", "--run")
        (backend,) = open_backends(os.environ["LOUSHO_STORE"], lousho.root / ".lousho", "bot", 50)
        checkpoints = backend.store().checkpoints
        fork = run_sync(lambda: checkpoints.load("f"))
        assert fork is not None
        run_sync(lambda: checkpoints.save("copy", fork))
        return [_without_times(lousho.json(*words)) for words in (["sessions"], ["history", "copy"])]

    there = play()
    monkeypatch.setenv("LOUSHO_STORE", "file")
    assert play() == there


def _without_times(data: Any) -> Any:
    """The same without what differs from run to run."""
    if isinstance(data, dict):
        varying = ("savedAt", "createdAt", "approvalId", "approval", "fence")
        return {key: _without_times(each) for key, each in data.items() if key not in varying}
    return [_without_times(each) for each in data] if isinstance(data, list) else data


def test_a_session_remembers_its_agent(store: str, lousho: Shell, bot: ScriptedWorkspace) -> None:
    bot.make([calls("pay"), "done"], TOOLS)
    other = bot.agent.parent / "other"
    other.mkdir()
    (other / "agent.toml").write_text('model = "script:script.json"')
    (other / "script.json").write_text('["hello", "again"]')
    lousho.run("run", "money", "go", code=3)
    lousho.run("run", "talk", "hi", "--agent", "other")
    assert [each["sessionId"] for each in lousho.json("sessions", "-a", "other")["sessions"]] == ["talk"]
    assert lousho.json("approvals", "-a", "other")["approvals"] == []
    assert lousho.json("show", "@last", "-a", "bot")["sessionId"] == "money"
    lousho.run("show", "money", "-a", "other", code=4)
    lousho.run("approve", "ap", "-a", "other", code=4)
    lousho.run("sessions", "-a", "nobody", code=4)
    assert "agents here: bot, other" in lousho.err
    lousho.run("run", "money", "hi", "-a", "other", code=2)
    assert "session 'money' is one of agent 'bot'" in lousho.err
    assert lousho.json("approve", "ap")["agent"] == "bot"
    assert lousho.json("run", "talk", "again")["agent"] == "other"


def test_what_is_damaged_hides_nothing_else(
    store: str, lousho: Shell, bot: ScriptedWorkspace, request: pytest.FixtureRequest
) -> None:
    bot.make(["done"])
    for name in ("good", "bad"):
        lousho.run("run", name, "go")
    if store == "sqlite":
        with closing(sqlite3.connect(lousho.root / ".lousho/state/sessions.db")) as connection, connection:
            (row,) = connection.execute("SELECT id FROM sessions WHERE session_id = 'bad'").fetchone()
            connection.execute("UPDATE records SET data = 'x' WHERE id > ?", (record_id(row, 1),))
    else:
        with redis_client(request.getfixturevalue("redis_url")) as client:
            client.set("lousho:bad", "x")
            client.set("lousho:%", "no id of ours is written like that")
            client.rpush("lousho:list", "not a text")
    listed = {each["sessionId"]: each for each in lousho.json("sessions")["sessions"]}
    assert {name: each["status"] for name, each in listed.items()} == {"bad": "damaged", "good": "finished"}
    assert listed["bad"]["error"]["code"] == "LOUSHO_SESSION_FILE_CORRUPT"
    assert "bad" in lousho.err
    lousho.run("show", "bad", code=7)
    assert lousho.json("show", "@last")["sessionId"] == "good"
    if store == "sqlite":
        lousho.run("delete", "bad", "--yes")
        assert [each["sessionId"] for each in lousho.json("sessions")["sessions"]] == ["good"]


def test_before_anything_is_saved_everything_is_empty(
    store: str, lousho: Shell, bot: ScriptedWorkspace
) -> None:
    bot.make(["done"])
    assert lousho.json("sessions") == {"sessions": []}
    assert lousho.json("approvals") == {"approvals": []}
    for words in (["show", "s"], ["history", "s"], ["diff", "s", "t"], ["approve", "ap"], ["show", "@last"]):
        lousho.run(*words, code=4)
    lousho.run("run", "s", code=2)
    assert not (lousho.root / ".lousho" / "state").exists()


def test_history_that_a_limit_dropped_is_called_dropped(
    store: str, lousho: Shell, bot: ScriptedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot.make([calls("look"), calls("look"), "done"], TOOLS)
    monkeypatch.setenv("LOUSHO_HISTORY_LIMIT", "2")
    lousho.run("run", "s", "go")
    assert lousho.json("history", "s")["dropped"] > 0
    for words in (["history", "s", "--step", "1"], ["fork", "s", "--from-step", "1"]):
        lousho.run(*words, code=4)
        assert "step 1 was dropped by the history limit (steps kept: 2, 3)" in lousho.err
    lousho.run("show", "s", "--at", "2", code=4)
    assert "save 2 was dropped" in lousho.err


def test_a_session_that_is_being_run_is_busy(store: str, bot: ScriptedWorkspace) -> None:
    bot.make([calls("brief"), "all done"], TOOLS)
    runner = bot.start("run", "s", "go")
    bot.wait_for_note("brief")
    refused = bot.run("resume", "s")
    assert refused.returncode == 5
    assert str(runner.pid) in refused.stderr
    assert bot.json("history", "s")["entries"][0]["status"] == "in-progress"
    waiting = bot.start("resume", "s", "--wait", "50")
    with bot.ledger.open("a") as ledger:
        ledger.write("go-on\n")
    assert runner.communicate()[0] == "all done\n"
    assert waiting.communicate()[1] == "nothing to resume: session s is finished\n"
    assert waiting.returncode == 0


@posix
def test_ctrl_c_saves_what_is_done(store: str, bot: ScriptedWorkspace) -> None:
    bot.make([calls("slow"), "all done"], TOOLS)
    runner = bot.start("run", "s", "go")
    bot.wait_for_note("slow")
    runner.send_signal(signal.SIGINT)
    assert "lousho resume s" in runner.communicate(timeout=20)[1]
    assert runner.returncode == 130
    assert [m["role"] for m in bot.json("show", "s")["messages"]] == ["system", "user", "assistant", "tool"]
    assert bot.run("resume", "s").stdout == "all done\n"
    assert bot.noted() == ["slow"]


@posix
def test_a_killed_run_is_resumed(store: str, bot: ScriptedWorkspace, request: pytest.FixtureRequest) -> None:
    bot.make([calls("look", "once"), "all done"], TOOLS)
    assert bot.run("run", "s", "go", "--tool-concurrency", "1").returncode == -signal.SIGKILL
    assert bot.json("show", "s")["status"] == "in-progress"
    if store == "redis":
        # Over machines nobody can tell a dead runner from a silent one before its lease is over.
        assert bot.run("resume", "s").returncode == 5
        with redis_client(request.getfixturevalue("redis_url")) as client:
            lease = json.loads(client.get("lousho:s#lease"))
            client.set("lousho:s#lease", json.dumps({**lease, "expires": "2001-01-01T00:00:00+00:00"}))
    assert bot.run("resume", "s").stdout == "all done\n"
    assert bot.noted() == ["look", "once", "once"]


def test_a_sqlite_file_may_be_named_in_each_place(
    lousho: Shell, bot: ScriptedWorkspace, monkeypatch: pytest.MonkeyPatch, isolated_environment: Path
) -> None:
    bot.make(["done"])
    config = lousho.root / ".lousho" / "config.toml"
    absolute = lousho.root / "elsewhere" / "sessions.db"
    for number, path in enumerate(["own.db", "../beside.db", str(absolute), "~/home.db"]):
        config.write_text(f"store = {json.dumps(f'sqlite:{path}')}\n")
        lousho.run("run", f"s{number}", "go")
    home = isolated_environment / "home.db"
    for file in (lousho.root / ".lousho" / "own.db", lousho.root / "beside.db", absolute, home):
        assert file.is_file()
    monkeypatch.setenv("LOUSHO_STORE", "sqlite:own.db")
    assert [each["sessionId"] for each in lousho.json("sessions")["sessions"]] == ["s0"]


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_sqlite_file_is_read_where_nothing_can_be_written(
    lousho: Shell, bot: ScriptedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot.make(["done"])
    monkeypatch.setenv("LOUSHO_STORE", "sqlite:state/sessions.db")
    lousho.run("run", "s", "go")
    state = lousho.root / ".lousho" / "state"
    before = {each.name: each.read_bytes() for each in state.iterdir() if each.is_file()}
    state.chmod(0o500)
    try:
        assert lousho.json("show", "s")["status"] == "finished"
    finally:
        state.chmod(0o700)
    assert {each.name: each.read_bytes() for each in state.iterdir() if each.is_file()} == before


def test_reading_a_sqlite_file_leaves_it_as_it_is(
    lousho: Shell, bot: ScriptedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot.make([calls("look"), "done"], TOOLS)
    monkeypatch.setenv("LOUSHO_STORE", "sqlite:sessions.db")
    lousho.run("run", "s", "go")
    file = lousho.root / ".lousho" / "sessions.db"
    before = (file.stat().st_mtime_ns, file.read_bytes())
    for words in (["sessions"], ["show", "s"], ["history", "s", "--graph"], ["diff", "s", "s@2"]):
        lousho.run(*words)
    assert (file.stat().st_mtime_ns, file.read_bytes()) == before


def test_a_server_that_is_down_is_named_without_its_password(
    lousho: Shell, bot: ScriptedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("redis")
    bot.make(["done"])
    port = free_port()
    monkeypatch.setenv("LOUSHO_STORE", f"redis://jane42:s3cret@127.0.0.1:{port}/0")
    for words in (["sessions"], ["run", "s", "go"], ["approve", "ap"], ["delete", "s", "--yes"]):
        out = lousho.run(*words, "--verbose", code=7)
        assert f"redis://127.0.0.1:{port}/0 could not be used" in lousho.err
        assert "LOUSHO_STORAGE_FAILED" in lousho.err
        assert "s3cret" not in out + lousho.err
        assert "jane42" not in out + lousho.err


def test_a_wrong_option_of_a_url_is_a_wrong_setting(
    lousho: Shell, bot: ScriptedWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("redis")
    bot.make(["done"])
    for option in ("frobnicate=1", "socket_timeout=soon"):
        monkeypatch.setenv("LOUSHO_STORE", f"valkey://:s3cret@127.0.0.1/0?{option}")
        lousho.run("sessions", code=2)
        assert option.partition("=")[0] in lousho.err
        assert "s3cret" not in lousho.err


def test_without_the_redis_package_it_says_what_to_install(bot: ScriptedWorkspace) -> None:
    bot.make(["done"])
    code = (
        "import sys; sys.modules['redis'] = None\n"
        "from lousho_cli.cli.app import run; sys.exit(run(['sessions']))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=bot.root,
        env={**os.environ, "LOUSHO_STORE": "redis://localhost"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert '[LOUSHO_PEER_MISSING] pip install "lousho-cli[redis]"' in ran.stderr
