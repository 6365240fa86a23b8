from __future__ import annotations

from pathlib import Path

import pytest
from bot_workspace import PAYMENT, TRIP, BotWorkspace


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BotWorkspace:
    monkeypatch.chdir(tmp_path)
    return BotWorkspace(tmp_path, capsys)


def test_the_saves_are_listed_newest_first(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    data = bot.run("history", "trip", "--json").json()
    assert (data["sessionId"], data["agent"]) == ("trip", "bot")
    seqs = [entry["seq"] for entry in data["entries"]]
    assert seqs == sorted(seqs, reverse=True)
    newest, oldest = data["entries"][0], data["entries"][-1]
    assert newest.items() >= {"step": 3, "status": "finished", "messages": 8, "event": "finish"}.items()
    assert newest["finishReason"] == "stop"
    assert oldest.items() >= {"seq": 1, "step": 0, "status": "in-progress", "event": "input"}.items()
    assert not [entry for entry in data["entries"] if "end" in entry]
    assert not {"parent", "dropped"} & data.keys()


def test_in_a_pipe_each_save_is_one_line_of_fields(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    ran = bot.run("history", "trip")
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert (ran.code, ran.err) == (0, "")
    assert [line[1] for line in lines] == ["3", "2", "2", "1", "1", "0"]
    assert lines[0][2] == "finished"
    assert lines[0][5] == "finished (stop)"
    assert lines[2][5] == "model asked for plan, plan"


def test_a_limit_and_a_step_choose_among_the_saves(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    everything = bot.run("history", "trip", "--json").json()["entries"]
    assert bot.run("history", "trip", "--limit", "2", "--json").json()["entries"] == everything[:2]
    assert [
        entry["step"] for entry in bot.run("history", "trip", "--step", "2", "--json").json()["entries"]
    ] == [2, 2]
    assert (
        bot.run("history", "trip", "--step", "2", "--limit", "1", "--json").json()["entries"]
        == everything[1:2]
    )
    assert bot.run("history", "trip", "--limit", "0").code == 2


def test_an_unknown_step_is_an_error_that_lists_the_steps_kept(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    ran = bot.run("history", "trip", "--step", "7")
    assert (ran.code, ran.out) == (4, "")
    assert "there is no step 7 (steps kept: 0, 1, 2, 3)" in ran.err
    assert "[LOUSHO_CHECKPOINT_NOT_FOUND]" in ran.err


def test_f04_what_the_limit_dropped_is_announced(bot: BotWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    bot.play("trip", TRIP, history_limit=2)
    monkeypatch.setenv("LOUSHO_HISTORY_LIMIT", "2")
    ran = bot.run("history", "trip")
    assert len(ran.out.splitlines()) == 2
    assert "older saves were dropped: history_limit 2 (the oldest kept is save 6, step 2)" in ran.err
    assert bot.run("history", "trip", "-q").err == ""
    data = bot.run("history", "trip", "--json").json()
    assert (data["dropped"], data["entries"][-1]["seq"]) == (5, 6)
    gone = bot.run("history", "trip", "--step", "1")
    assert gone.code == 4
    assert "step 1 was dropped by the history limit (steps kept: 2, 3)" in gone.err


def test_a_workspace_that_keeps_no_history_says_so(
    bot: BotWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot.play("trip", TRIP, history_limit=0)
    monkeypatch.setenv("LOUSHO_HISTORY_LIMIT", "0")
    ran = bot.run("history", "trip")
    assert (ran.code, ran.out) == (0, "")
    assert "no saves are kept: history_limit 0" in ran.err


def test_a_fork_names_the_save_it_comes_from_and_misses_nothing(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.run("fork", "trip", "--from-step", "1", "--as", "other way")
    data = bot.run("history", "other way", "--json").json()
    assert data["parent"] == {"sessionId": "trip", "seq": 3, "step": 1}
    assert "dropped" not in data
    ran = bot.run("history", "other way")
    assert ran.out.rstrip().endswith("forked: from trip step 1 (save 3)")
    assert ran.err == ""


def test_the_history_of_a_deleted_session_is_listed_while_it_is_kept(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    before = bot.run("history", "trip", "--json").json()
    assert bot.run("delete", "trip", "--keep-history", "--yes").code == 0
    assert bot.run("history", "trip", "--json").json() == before
    assert bot.run("delete", "trip", "--yes").code == 0
    assert bot.run("history", "trip").code == 4


def test_every_save_that_is_listed_can_be_forked_and_shown(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.run("delete", "trip", "--keep-history", "--yes")
    bot.play("trip", PAYMENT, input="pay")
    entries = bot.run("history", "trip", "--json").json()["entries"]
    assert len(entries) > 6
    for entry in entries:
        at = ["--at", str(entry["seq"])]
        made = bot.run("fork", "trip", *at, "--json").json()
        assert made["step"] == entry["step"]
        shown = bot.run("show", "trip", *at, "--json").json()
        assert len(shown["messages"]) == entry["messages"]
        copied = bot.run("show", made["sessionId"], "--json").json()
        assert copied["messages"] == shown["messages"]


def test_the_graph_shows_forks_and_their_forks(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.play("unrelated", TRIP)
    bot.run("fork", "trip", "--from-step", "1")
    bot.run("fork", "trip.fork-1", "--from-step", "1", "--as", "deep")
    for name in ("trip", "deep"):
        ran = bot.run("history", name, "--graph")
        assert ran.code == 0
        assert all(each in ran.out for each in ("trip  finished", "trip.fork-1", "deep", "from step 1"))
        assert "unrelated" not in ran.out
        marked = [line for line in ran.out.splitlines() if "this session" in line]
        assert len(marked) == 1
        assert f" {name}  " in marked[0]
    data = bot.run("history", "deep", "--graph", "--json").json()
    assert data["sessionId"] == "deep"
    assert [each["sessionId"] for each in data["sessions"]] == ["deep", "trip", "trip.fork-1"]
    assert data["sessions"][0]["parent"]["sessionId"] == "trip.fork-1"
    assert data["sessions"][1]["entries"] == bot.run("history", "trip", "--json").json()["entries"]


def test_the_graph_goes_through_deleted_sessions(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.run("fork", "trip", "--from-step", "1", "--as", "middle")
    bot.run("fork", "middle", "--from-step", "1", "--as", "leaf")
    bot.run("delete", "middle", "--keep-history", "--yes")
    sessions = bot.run("history", "trip", "--graph", "--json").json()["sessions"]
    assert {each["sessionId"]: each["status"] for each in sessions} == {
        "leaf": "in-progress",
        "middle": "deleted",
        "trip": "finished",
    }
    bot.run("delete", "trip", "--yes")
    for name in ("leaf", "middle"):
        drawn = bot.run("history", name, "--graph").out
        assert all(each in drawn for each in ("trip  deleted", "middle  deleted", "leaf  in-progress"))


def test_the_graph_shows_a_damaged_relative_as_damaged(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.run("fork", "trip", "--from-step", "1", "--as", "leaf")
    bot.damage("trip")
    ran = bot.run("history", "leaf", "--graph")
    assert ran.code == 0
    assert "trip  damaged" in ran.out


def test_the_graph_takes_no_other_choice(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    assert bot.run("history", "trip", "--graph", "--limit", "1").code == 2
    assert bot.run("history", "trip", "--graph", "--step", "1").code == 2


def test_last_is_the_session_saved_last_unless_one_has_that_name(bot: BotWorkspace) -> None:
    bot.play("first", TRIP)
    bot.play("second", TRIP)
    ran = bot.run("history", "@last", "--json")
    assert ran.json()["sessionId"] == "second"
    assert "@last is session second of agent bot" in ran.err
    bot.play("@last", TRIP)
    bot.play("third", TRIP)
    ran = bot.run("history", "@last", "--json")
    assert (ran.json()["sessionId"], ran.err) == ("@last", "")


def test_a_session_that_is_not_there_ends_with_4_and_a_suggestion(bot: BotWorkspace) -> None:
    ran = bot.run("history", "nope")
    assert (ran.code, ran.out) == (4, "")
    assert "[LOUSHO_SESSION_NOT_FOUND]" in ran.err
    assert bot.run("history", "@last").code == 4
    bot.play("chat-42", TRIP)
    assert "did you mean 'chat-42'?" in bot.run("history", "chat-43").err
    assert "did you mean" not in bot.run("history", "zebra").err
    error = bot.run("history", "nope", "--json").json()["error"]
    assert error["code"] == "LOUSHO_SESSION_NOT_FOUND"


@pytest.mark.parametrize("given", ["..", "", "a\x1bb", "x" * 201])
def test_f23_an_impossible_id_is_wrong_usage(bot: BotWorkspace, given: str) -> None:
    ran = bot.run("history", given)
    assert ran.code == 2
    assert "[LOUSHO_SESSION_ID_INVALID]" in ran.err
    assert "\x1b" not in ran.err


def test_two_agents_with_a_session_of_one_name_need_a_word(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.play("trip", PAYMENT, agent="other")
    ran = bot.run("history", "trip")
    assert ran.code == 2
    assert "several agents have session 'trip': bot, other" in ran.err
    assert bot.run("history", "trip", "-a", "other", "--json").json()["agent"] == "other"
    missing = bot.run("history", "trip", "-a", "nobody")
    assert missing.code == 4
    assert "[LOUSHO_AGENT_NOT_FOUND]" in missing.err


def test_a_damaged_session_ends_with_7(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.damage("trip")
    ran = bot.run("history", "trip")
    assert (ran.code, ran.out) == (7, "")
    assert "[LOUSHO_SESSION_FILE_CORRUPT]" in ran.err
