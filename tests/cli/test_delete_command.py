from __future__ import annotations

import os
import sys
from io import StringIO
from pathlib import Path

import pytest
from bot_workspace import PAYMENT, TRIP, BotWorkspace

from lousho_cli import FileStore
from lousho_cli.execution.session import open_session
from lousho_cli.execution.sync import run_sync


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BotWorkspace:
    monkeypatch.chdir(tmp_path)
    return BotWorkspace(tmp_path, capsys)


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, typed: str) -> Terminal:
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def test_a_deleted_session_leaves_no_state_behind(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.play("other", TRIP)
    ran = bot.run("delete", "trip", "--yes")
    assert (ran.code, ran.out, ran.err) == (0, "deleted trip\n", "")
    left = [
        file.name
        for folder in ("checkpoints", "checkpoint-history")
        for file in (bot.agent / folder).iterdir()
    ]
    assert sorted(left) == ["other.json", "other.jsonl"]
    assert bot.run("show", "trip").code == bot.run("delete", "trip", "--yes").code == 4


def test_its_forks_stay_whole(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.run("fork", "trip", "--from-step", "1")
    before = bot.run("show", "trip.fork-1", "--json").json()
    bot.run("delete", "trip", "--yes")
    assert bot.run("show", "trip.fork-1", "--json").json() == before


def test_the_history_can_be_kept_and_deleted_later(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    ran = bot.run("delete", "trip", "--keep-history", "--yes")
    assert (ran.out, ran.err) == ("deleted trip\n", "its history is kept: lousho history trip\n")
    assert bot.run("history", "trip").code == 0
    again = bot.run("delete", "trip", "--keep-history", "--yes")
    assert again.code == 4
    assert "only its history is left" in again.err
    assert bot.run("delete", "trip", "--yes").code == 0
    assert bot.run("history", "trip").code == 4


def test_as_json_it_says_what_it_did(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    ran = bot.run("delete", "@last", "--keep-history", "--yes", "--json")
    assert ran.json() == {"sessionId": "trip", "deleted": True, "historyKept": True}


def test_f46_without_a_terminal_it_needs_to_be_told(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    before = bot.state_files()
    ran = bot.run("delete", "trip")
    assert (ran.code, ran.out) == (2, "")
    assert "--yes" in ran.err
    assert bot.state_files() == before


@pytest.mark.parametrize(
    ("typed", "gone"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_on_a_terminal_it_asks(
    bot: BotWorkspace, monkeypatch: pytest.MonkeyPatch, typed: str, gone: bool
) -> None:
    paused = bot.play("money", PAYMENT)
    shown = at_a_terminal(monkeypatch, typed)
    assert bot.run("delete", "money").code == (0 if gone else 1)
    asked = shown.getvalue()
    assert "session and history money of agent bot: awaiting-approval, step 1" in asked
    assert str(paused.approval_id) in asked
    assert "Delete it for good? [y/N] " in asked
    assert bot.journal("money").exists() is not gone


def test_an_interrupt_at_the_question_deletes_nothing(
    bot: BotWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(Terminal):
        def readline(self, *_: object) -> str:  # type: ignore[override]
            raise KeyboardInterrupt

    bot.play("trip", TRIP)
    at_a_terminal(monkeypatch, "")
    monkeypatch.setattr(sys, "stdin", Interrupted())
    assert bot.run("delete", "trip").code == 130
    assert bot.journal("trip").exists()


def test_a_session_that_is_being_run_is_not_deleted(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    session = run_sync(lambda: open_session(FileStore(bot.home, agent="bot").checkpoints, "trip"))
    try:
        ran = bot.run("delete", "trip", "--yes")
        assert ran.code == 5
        assert str(os.getpid()) in ran.err
        assert bot.journal("trip").exists()
    finally:
        run_sync(session.close)


def test_a_damaged_session_can_be_deleted_but_keeps_no_history(
    bot: BotWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot.play("trip", TRIP)
    bot.damage("trip")
    assert bot.run("delete", "trip", "--yes", "--keep-history").code == 7
    shown = at_a_terminal(monkeypatch, "n\n")
    assert bot.run("delete", "trip").code == 1
    assert "it is damaged" in shown.getvalue()
    assert bot.run("delete", "trip", "--yes").code == 0
    assert not bot.journal("trip").exists()
