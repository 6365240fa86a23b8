from __future__ import annotations

from pathlib import Path

import pytest
from bot_workspace import PAYMENT, TRIP, BotWorkspace


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BotWorkspace:
    monkeypatch.chdir(tmp_path)
    return BotWorkspace(tmp_path, capsys)


def test_sessions_of_all_agents_are_listed_the_last_active_first(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    paused = bot.play("money", PAYMENT, agent="other")
    bot.run("fork", "trip", "--from-step", "1")
    listed = bot.run("sessions", "--json").json()["sessions"]
    assert [each["sessionId"] for each in listed] == ["trip.fork-1", "money", "trip"]
    fork, money, trip = listed
    assert fork["parent"] == {"sessionId": "trip", "seq": 3, "step": 1}
    assert (money["agent"], money["status"], money["approvalId"]) == (
        "other", "awaiting-approval", paused.approval_id,
    )  # fmt: skip
    assert (trip["status"], trip["steps"], trip["step"], trip["finishReason"]) == ("finished", 3, 3, "stop")
    assert trip["createdAt"] <= trip["savedAt"] < fork["savedAt"]
    assert not {"parent", "approvalId", "error"} & trip.keys()


def test_in_a_pipe_each_session_is_one_line_of_fields(bot: BotWorkspace) -> None:
    name = "a very long name " + "x" * 150
    bot.play(name, TRIP)
    ran = bot.run("sessions")
    assert ran.code == 0
    assert ran.out.split("\t")[:4] == [name, "bot", "finished", "3"]
    assert ran.out.count("\n") == 1


def test_a_status_and_an_agent_choose_among_them(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.play("money", PAYMENT)
    bot.play("elsewhere", TRIP, agent="other")

    def names(*arguments: str) -> list[str]:
        return [each["sessionId"] for each in bot.run("sessions", "--json", *arguments).json()["sessions"]]

    assert names("--status", "awaiting-approval") == ["money"]
    assert names("--status", "finished") == ["elsewhere", "trip"]
    assert names("--status", "in-progress") == []
    assert names("-a", "other") == ["elsewhere"]
    assert bot.run("sessions", "--status", "lost").code == 2
    assert bot.run("sessions", "-a", "nobody").code == 4


def test_a_damaged_file_does_not_hide_the_others(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.play("Broken", TRIP)
    file = bot.agent / "checkpoints" / "+broken.jsonl"
    file.write_bytes(b"x" + file.read_bytes()[1:])
    ran = bot.run("sessions", "--json")
    assert ran.code == 0
    trip, broken = ran.json()["sessions"]
    assert trip["sessionId"] == "trip"
    assert (broken["sessionId"], broken["agent"], broken["status"]) == ("Broken", "bot", "damaged")
    assert broken["error"]["code"] == "LOUSHO_SESSION_FILE_CORRUPT"
    assert "[LOUSHO_SESSION_FILE_CORRUPT]" in ran.err
    assert bot.run("sessions", "--status", "damaged").out.startswith("Broken\tbot\tdamaged\t")
    assert bot.run("sessions", "--status", "finished").err == ""


def test_deleted_sessions_are_not_listed(bot: BotWorkspace) -> None:
    bot.play("a", TRIP)
    bot.play("b", TRIP)
    bot.run("delete", "a", "--yes")
    bot.run("delete", "b", "--keep-history", "--yes")
    ran = bot.run("sessions", "--json")
    assert (ran.code, ran.json()) == (0, {"sessions": []})
    assert bot.run("sessions").out == ""


def test_f54_on_a_terminal_ids_are_whole_however_narrow_it_is(
    bot: BotWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "conversation-with-a-long-name-" + "y" * 30
    bot.play(name, TRIP)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    assert name in bot.run("sessions").out
