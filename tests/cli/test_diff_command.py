from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bot_workspace import PAYMENT, TRIP, BotWorkspace, Turn


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BotWorkspace:
    monkeypatch.chdir(tmp_path)
    return BotWorkspace(tmp_path, capsys)


@pytest.fixture
def trip(bot: BotWorkspace) -> BotWorkspace:
    """The session trip, and its fork trip.fork-1 with other weather, played to the end."""
    bot.play("trip", TRIP)
    bot.run(
        "fork", "trip", "--from-step", "1", "--tool-result", 'weather={"forecast": "rain", "city": "Oslo"}'
    )
    rest: list[Turn] = [
        {"text": "Rain.", "tool_calls": [{"name": "weather", "args": {"city": "Rome"}}]},
        "go to Rome",
    ]
    bot.play("trip.fork-1", rest, input="")
    return bot


def test_where_two_runs_part_is_named(trip: BotWorkspace) -> None:
    ran = trip.run("diff", "trip", "trip.fork-1")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:4] == [
        "--- trip",
        "+++ trip.fork-1",
        "common origin: trip (step 1, save 3)",
        "first difference: step 1, result of weather",
    ]
    assert '!   weather result.forecast: "sunny" -> "rain"' in ran.out.splitlines()


def test_as_json_a_comparison_holds_steps_drift_and_differences(trip: BotWorkspace) -> None:
    data = trip.run("diff", "trip", "trip.fork-1", "--json").json()
    assert data["divergedAt"] == 1
    assert data["a"][0] == {
        "text": "",
        "tools": [
            {"name": "weather", "args": {"city": "Oslo"}, "result": {"forecast": "sunny", "city": "Oslo"}}
        ],
    }
    assert [step["text"] for step in data["b"]] == ["", "Rain.", "go to Rome"]
    assert data["drift"] == [
        {"field": "tools", "committed": "weather > plan > plan", "current": "weather > weather"}
    ]
    assert data["common"] == {"sessionId": "trip", "seq": 3, "step": 1}
    assert [(each["a"], each["b"], each["kind"]) for each in data["differences"]] == [
        (1, 1, "result"), (2, 2, "call"), (3, 3, "text"),
    ]  # fmt: skip
    assert data["differences"][0]["tools"][0]["result"] == [
        {"path": "forecast", "old": "sunny", "new": "rain"}
    ]


def test_f38_equal_and_different_runs_can_be_told_by_the_exit_code(trip: BotWorkspace) -> None:
    assert trip.run("diff", "trip", "trip.fork-1", "--exit-code").code == 1
    assert trip.run("diff", "trip", "trip.fork-1", "--exit-code", "--json").code == 1
    same = trip.run("diff", "trip", "trip", "--exit-code")
    assert same.code == 0
    assert "no difference" in same.out
    assert "common origin" not in same.out
    trip.run("fork", "trip", "--at", "2", "--as", "copy")
    assert trip.run("diff", "trip@2", "copy", "--exit-code").code == 0


def test_the_same_steps_that_end_otherwise_differ(trip: BotWorkspace) -> None:
    trip.run("fork", "trip", "--from-step", "3", "--as", "open")
    ran = trip.run("diff", "trip", "open", "--exit-code", "--json")
    assert (ran.code, ran.json()["divergedAt"]) == (1, None)
    assert ran.json()["drift"] == [{"field": "finishReason", "committed": "stop", "current": "in-progress"}]


def test_a_save_of_a_session_can_be_compared(trip: BotWorkspace) -> None:
    data = trip.run("diff", "trip@2", "trip@3", "--json").json()
    assert data["divergedAt"] == 1
    assert "result" not in data["a"][0]["tools"][0]
    assert data["b"][0]["tools"][0]["result"] == {"forecast": "sunny", "city": "Oslo"}
    assert "common" not in data
    assert trip.run("diff", "trip@2", "trip").out.startswith("--- trip@2\n+++ trip\n")
    assert trip.run("diff", "trip@99", "trip").code == 4
    assert trip.run("diff", "nope@2", "trip").code == 4
    assert trip.run("diff", "trip", "trip@x").code == 4


def test_an_exact_id_wins_over_the_save_it_looks_like(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.play("trip@2", ["another"])
    data = bot.run("diff", "trip@2", "@last@2", "--json").json()
    assert [step["text"] for step in data["a"]] == ["another"]
    assert [step["text"] for step in data["b"]] == ["another"]
    assert bot.run("diff", "trip@3", "trip", "--json").json()["divergedAt"] == 2
    long = "s" * 200
    bot.play(long, TRIP)
    assert bot.run("diff", f"{long}@3", "trip@3", "--exit-code").code == 0


def test_saves_of_a_deleted_session_can_be_compared(trip: BotWorkspace) -> None:
    trip.run("delete", "trip", "--keep-history", "--yes")
    assert trip.run("diff", "trip", "trip.fork-1").code == 4
    data = trip.run("diff", "trip@7", "trip.fork-1", "--json").json()
    assert (data["divergedAt"], data["common"]["seq"]) == (1, 3)


def test_the_common_origin_of_cousins_is_found_through_deleted_sessions(trip: BotWorkspace) -> None:
    trip.run("fork", "trip.fork-1", "--at", "4", "--as", "deep")
    trip.run("fork", "trip", "--from-step", "2", "--as", "cousin")
    trip.run("delete", "trip.fork-1", "--keep-history", "--yes")
    assert trip.run("diff", "deep", "cousin", "--json").json()["common"] == {
        "sessionId": "trip", "seq": 3, "step": 1,
    }  # fmt: skip
    assert trip.run("diff", "trip@2", "deep", "--json").json()["common"]["seq"] == 2
    trip.play("stranger", TRIP)
    assert "common" not in trip.run("diff", "deep", "stranger", "--json").json()


def test_a_session_that_took_the_name_of_a_deleted_parent_is_no_origin(trip: BotWorkspace) -> None:
    trip.run("fork", "trip.fork-1", "--at", "4", "--as", "deep")
    trip.run("delete", "trip.fork-1", "--yes")
    assert trip.run("fork", "trip", "--from-step", "2", "-q").out == "trip.fork-1\n"
    for other in ("trip", "trip.fork-1"):
        assert "common" not in trip.run("diff", "deep", other, "--json").json()
    family = trip.run("history", "trip", "--graph", "--json").json()["sessions"]
    assert [each["sessionId"] for each in family] == ["trip", "trip.fork-1"]


def test_a_count_and_the_whole_can_be_asked_for(trip: BotWorkspace) -> None:
    stat = trip.run("diff", "trip", "trip.fork-1", "--stat").out
    assert "0 same, 3 changed" in stat
    assert "Sunny." not in stat
    assert "all planned" in trip.run("diff", "trip", "trip", "--full").out
    assert "all planned" not in trip.run("diff", "trip", "trip").out


def test_a_paused_and_a_running_session_can_be_compared(bot: BotWorkspace) -> None:
    bot.play("a", PAYMENT)
    bot.play("b", PAYMENT)
    ran = bot.run("diff", "a", "b", "--exit-code")
    assert (ran.code, "no difference" in ran.out) == (0, True)


def test_f34_what_a_model_sent_cannot_break_the_json(bot: BotWorkspace) -> None:
    def turns(odd: str) -> list[Turn]:
        arguments: list[Any] = [odd, '{"a": NaN}', '{"a": 1e999}', "[" * 900 + "]" * 900, '{"b": "\\ud800"}']
        return [
            {
                "tool_calls": [
                    {"name": "weather", "args": text, "id": f"c{n}"} for n, text in enumerate(arguments)
                ]
            },
            "end",
        ]

    bot.play("a", turns('{"city": "\\u001b[2J"}'))
    bot.play("b", turns("no JSON"))
    ran = bot.run("diff", "a", "b", "--json")
    assert ran.code == 0
    data = ran.json()
    assert [tool["args"] for tool in data["a"][0]["tools"]] == [
        {"city": "\x1b[2J"}, '{"a": NaN}', '{"a": 1e999}', "[" * 900 + "]" * 900, {"b": "\ud800"},
    ]  # fmt: skip
    assert data["divergedAt"] == 1
    ran = bot.run("diff", "a", "b", "--full")
    assert (ran.code, "\x1b" in ran.out) == (0, False)


def test_f51_two_thousand_equal_steps_are_compared_in_no_time(bot: BotWorkspace) -> None:
    from lousho_cli import FileStore
    from lousho_cli.execution.records import Checkpoint
    from lousho_cli.execution.sync import run_sync

    transcript: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for n in range(2000):
        call = {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "weather", "arguments": f'{{"n": {n}}}'},
        }
        transcript.append({"role": "assistant", "content": "", "toolCalls": [call]})
        transcript.append({"role": "tool", "content": f'"{n}"', "toolCallId": f"c{n}", "toolName": "weather"})
    checkpoint = Checkpoint.model_validate({"messages": transcript, "stepIndex": 2000, "status": "finished"})
    store = FileStore(bot.home, agent="bot").checkpoints
    for name in ("a", "b"):
        run_sync(partial(store.save, name, checkpoint))
    began = time.perf_counter()
    ran = bot.run("diff", "a", "b", "--exit-code")
    assert time.perf_counter() - began < 5
    assert (ran.code, "no difference" in ran.out) == (0, True)
