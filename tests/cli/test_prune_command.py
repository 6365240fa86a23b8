"""`lousho prune`: what is removed is announced, nothing that is needed goes, and no age is a file's (F04)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bot_workspace import PAYMENT, TRIP, BotWorkspace
from redis_process import forget_sessions, redis_server
from test_delete_command import at_a_terminal

from lousho_cli import FileStore
from lousho_cli.cli import app
from lousho_cli.execution import session as session_module
from lousho_cli.execution.session import open_session

Aged = Callable[[int], None]


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BotWorkspace:
    monkeypatch.chdir(tmp_path)
    return BotWorkspace(tmp_path, capsys)


@pytest.fixture
def days_ago(monkeypatch: pytest.MonkeyPatch) -> Aged:
    """Lets the next saves be made so many days ago."""

    def then(days: int) -> None:
        def now(later: float = 0.0) -> str:
            instant = datetime.now(UTC) - timedelta(days=days) + timedelta(seconds=later)
            return instant.isoformat(timespec="microseconds").replace("+00:00", "Z")

        monkeypatch.setattr(session_module, "now", now)

    return then


@pytest.fixture
def aged(bot: BotWorkspace, days_ago: Aged) -> BotWorkspace:
    """Finished sessions of 60, 40 and 0 days, and an old one that waits for an approval."""
    for name, turns, days in (("a", TRIP, 60), ("waits", PAYMENT, 50), ("b", TRIP, 40), ("c", TRIP, 0)):
        days_ago(days)
        bot.play(name, turns)
    return bot


def sessions(bot: BotWorkspace) -> list[str]:
    return sorted(each["sessionId"] for each in bot.run("sessions", "--json").json()["sessions"])


def test_old_finished_sessions_go_and_a_paused_one_stays(aged: BotWorkspace) -> None:
    ran = aged.run("prune", "--older-than", "30d", "--yes", "--json")
    assert ran.code == 0
    assert [(each["sessionId"], each["saves"]) for each in ran.json()["removed"]] == [("a", 6), ("b", 6)]
    assert sessions(aged) == ["c", "waits"]
    assert [each["id"] for each in aged.run("approvals", "--json").json()["approvals"]]
    assert aged.run("doctor", "--json").json()["problems"] == []


def test_the_age_is_that_of_the_newest_save_and_not_the_files(aged: BotWorkspace) -> None:
    for path in aged.agent.rglob("*.json*"):
        os.utime(path, (0, 0) if path.stem == "c" else None)
    removed = aged.run("prune", "--older-than", "7w", "--yes", "--json").json()["removed"]
    assert [each["sessionId"] for each in removed] == ["a"]


def test_the_newest_sessions_stay(aged: BotWorkspace) -> None:
    assert aged.run("prune", "--keep", "2", "--yes").code == 0
    assert sessions(aged) == ["b", "c", "waits"]
    assert aged.run("prune", "--keep", "1", "--older-than", "45d", "--yes").code == 0
    assert sessions(aged) == ["b", "c", "waits"]


def test_a_paused_session_goes_with_its_approval_when_it_is_named(aged: BotWorkspace) -> None:
    asked = aged.run("approvals", "--json").json()["approvals"][0]["id"]
    ran = aged.run("prune", "waits", "--yes", "--verbose")
    assert ran.code == 0
    assert ran.out.startswith("waits of bot: awaiting-approval, last saved 20")
    assert "\nremoved: 1 session, " in ran.out
    assert sessions(aged) == ["a", "b", "c"]
    assert not [path for path in aged.agent.rglob("*") if asked in path.name]
    assert aged.run("doctor", "--json").json()["problems"] == []


def test_only_a_name_removes_what_is_not_finished(aged: BotWorkspace) -> None:
    ran = aged.run("prune", "--status", "awaiting-approval", "--yes")
    assert ran.code == 2
    assert "only removed by its name" in ran.err
    assert aged.run("prune", "waits", "--status", "finished", "--yes").out.startswith("nothing to remove")
    assert len(sessions(aged)) == 4


def test_a_dry_run_says_the_same_and_changes_nothing(aged: BotWorkspace) -> None:
    before = {path: path.read_bytes() for path in aged.agent.rglob("*") if path.is_file()}
    planned = aged.run("prune", "--older-than", "30d", "--dry-run")
    assert planned.out.startswith("would be removed: 2 sessions, 12 saves, ")
    as_json = aged.run("prune", "--older-than", "30d", "--dry-run", "--json").json()
    assert {path: path.read_bytes() for path in aged.agent.rglob("*") if path.is_file()} == before
    done = aged.run("prune", "--older-than", "30d", "--yes", "--json").json()
    assert {**as_json, "dryRun": False} == done


def test_without_a_terminal_it_needs_a_yes(aged: BotWorkspace) -> None:
    ran = aged.run("prune", "--older-than", "30d")
    assert (ran.code, ran.out) == (2, "")
    assert "removing 2 sessions needs a yes, and there is no terminal to ask on" in ran.err
    assert "--yes" in ran.err
    assert len(sessions(aged)) == 4


@pytest.mark.parametrize(("typed", "left"), [("y\n", 2), ("n\n", 4), ("", 4)])
def test_on_a_terminal_it_asks(
    aged: BotWorkspace, typed: str, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = at_a_terminal(monkeypatch, typed)
    assert aged.run("prune", "--older-than", "30d").code == (0 if left == 2 else 1)
    assert "to be removed: 2 sessions, 12 saves, " in shown.getvalue()
    assert len(sessions(aged)) == left


def test_a_session_that_is_run_is_skipped_and_said_so(
    aged: BotWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    async def meanwhile(*words: str) -> int:
        held = await open_session(FileStore(aged.home, agent="bot").checkpoints, "a")
        code = app.run(["prune", "--older-than", "30d", *words])
        await held.close()
        return code

    assert asyncio.run(meanwhile("--dry-run")) == 0
    assert asyncio.run(meanwhile("--yes")) == 0
    shown = capsys.readouterr()
    assert shown.err.count("skipped a: it is being run\n") == 2
    assert shown.out.count("removed: 1 session, ") == 2
    assert sessions(aged) == ["a", "c", "waits"]


def test_a_session_that_cannot_be_read_is_left_alone_and_the_others_go(aged: BotWorkspace) -> None:
    journal = aged.agent / "checkpoints" / "a.jsonl"
    journal.write_bytes(b'{"version":99}\n')
    before = journal.read_bytes()
    ran = aged.run("prune", "--older-than", "30d", "--yes")
    assert ran.code == 7
    assert "skipped a: " in ran.err
    assert "[LOUSHO_CHECKPOINT_VERSION]" in ran.err
    assert journal.read_bytes() == before
    assert not (aged.agent / "checkpoints" / "b.jsonl").exists()


def test_without_a_condition_it_only_compacts_and_needs_no_yes(bot: BotWorkspace) -> None:
    for _ in range(40):
        bot.play("long", ["yes"], history_limit=3)
    bot.play("short", TRIP)
    (bot.home / "config.toml").write_text("history_limit = 3\n")
    before = bot.run("show", "long", "--json").json(), bot.run("history", "long", "--json").json()
    dry = bot.run("prune", "--dry-run", "--json").json()
    done = bot.run("prune", "--json").json()
    assert dry == {**done, "dryRun": True}
    assert [each["sessionId"] for each in done["compacted"]] == ["long"]
    assert done["compacted"][0]["savesDroppedThrough"] == 77
    assert done["removed"] == done["skipped"] == []
    assert (bot.run("show", "long", "--json").json(), bot.run("history", "long", "--json").json()) == before
    assert bot.run("prune").out == "nothing to remove, nothing to compact\n"
    assert bot.run("doctor", "--json").json()["problems"] == []


@pytest.mark.parametrize("age", ["30", "d", "1.5d", "-1d", "3y", "", "9999999w"])
def test_what_is_no_age_is_refused(bot: BotWorkspace, age: str) -> None:
    ran = bot.run("prune", f"--older-than={age}", "--json")
    assert ran.code == 2
    assert "is not an age" in ran.json()["error"]["message"]


def test_an_unknown_name_is_refused_before_anything_goes(aged: BotWorkspace) -> None:
    assert aged.run("prune", "a", "nope", "--yes").code == 4
    assert len(sessions(aged)) == 4


PAY = """
from lousho_cli import tool

@tool(needs_approval=True)
def pay() -> str:
    "Pay."
    return "paid"
"""


@pytest.fixture
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield "sqlite:s.db"
        return
    with redis_server(tmp_path) as url:
        forget_sessions(url)
        yield url
        forget_sessions(url)


@pytest.mark.parametrize("store_url", ["sqlite", "redis"], indirect=True)
def test_it_prunes_other_stores(bot: BotWorkspace, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUSHO_STORE", store_url)
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", "1")
    (bot.agent / "tools").mkdir()
    turns = [{"tool_calls": [{"name": "pay", "args": {}}]}, "paid"]
    (bot.agent / "script.json").write_text(json.dumps(turns))
    (bot.agent / "agent.toml").write_text('model = "script:script.json"\n')
    (bot.agent / "instructions.md").write_text("Pay.\n")
    (bot.agent / "tools" / "pay.py").write_text(PAY)
    for name in ("done", "waits"):
        assert bot.run("run", name, "go", "--agent", "bot").code == 3
    asked = bot.run("approvals", "--json").json()["approvals"]
    assert bot.run("approve", next(each["id"] for each in asked if each["sessionId"] == "done")).code == 0
    ran = bot.run("prune", "--older-than", "0m", "--yes", "--json").json()
    assert [each["sessionId"] for each in ran["removed"]] == ["done"]
    assert ran["removed"][0]["saves"] > 2
    assert ran["removed"][0]["bytes"] > 500
    assert ran["compacted"] == []
    assert sessions(bot) == ["waits"]
    assert bot.run("approvals", "--json").json()["approvals"]
    assert bot.run("prune", "waits", "--yes").code == 0
    assert sessions(bot) == []
    assert bot.run("doctor", "--json").json()["problems"] == []
