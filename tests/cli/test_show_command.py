from __future__ import annotations

import json
from pathlib import Path

import pytest
from bot_workspace import PAYMENT, TRIP, BotWorkspace

from lousho_cli import PropagatingToolError, tool
from lousho_cli.execution.tools import Tool


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BotWorkspace:
    monkeypatch.chdir(tmp_path)
    return BotWorkspace(tmp_path, capsys)


def test_the_transcript_is_printed_as_it_is_stored(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP, input="Plan my trip")
    data = bot.run("show", "trip", "--json").json()
    assert data.items() >= {
        "sessionId": "trip", "agent": "bot", "status": "finished", "seq": 7, "stepIndex": 3,
        "finishReason": "stop", "businessState": None,
    }.items()  # fmt: skip
    assert data["usage"]["modelCalls"] == 3
    assert [message["role"] for message in data["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "tool", "assistant",
    ]  # fmt: skip
    assert data["messages"][0] == {"role": "system", "content": "Do the work."}
    assert data["messages"][2]["toolCalls"][0] == {
        "id": "w1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
    }  # fmt: skip
    assert json.loads(data["messages"][3]["content"]) == {"forecast": "sunny", "city": "Oslo"}
    assert not {"approvalId", "parent", "queued", "results"} & data.keys()


def test_a_save_is_shown_as_it_was(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    data = bot.run("show", "trip", "--at", "2", "--json").json()
    assert (data["seq"], data["stepIndex"], data["status"]) == (2, 1, "in-progress")
    assert [message["role"] for message in data["messages"]] == ["system", "user", "assistant"]
    ran = bot.run("show", "trip", "--at", "2")
    assert "result\tweather\tw1\tnone" in ran.out
    assert "lousho fork trip --at 2" in ran.err


def test_a_save_that_is_not_kept_says_what_became_of_it(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    absorbed = bot.run("show", "trip", "--at", "5")
    assert absorbed.code == 4
    assert "save 5 was absorbed by save 6" in absorbed.err
    assert "there is no save 99" in bot.run("show", "trip", "--at", "99").err


def test_a_paused_session_names_its_approval(bot: BotWorkspace) -> None:
    paused = bot.play("money", PAYMENT)
    ran = bot.run("show", "money", "--json")
    assert (ran.json()["status"], ran.json()["approvalId"]) == ("awaiting-approval", paused.approval_id)
    assert f"lousho approve {paused.approval_id}" in bot.run("show", "money").err


def test_input_that_waits_behind_open_calls_is_shown(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.run("fork", "trip", "--at", "2", "--append-input", "and\x1b[1m hurry", "--as", "f")
    data = bot.run("show", "f", "--json").json()
    assert data["queued"] == [{"role": "user", "content": "and\x1b[1m hurry"}]
    assert data["parent"] == {"sessionId": "trip", "seq": 2, "step": 1}
    ran = bot.run("show", "f")
    assert ran.out.splitlines()[-1] == "queued\tuser\tand\\x1b[1m hurry"
    assert "lousho resume f" in ran.err


def test_a_result_that_waits_for_an_earlier_call_is_shown_under_its_own(
    bot: BotWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(day: str = "sat") -> str:
        raise PropagatingToolError("the power went")

    fail.__name__, fail.__doc__ = "plan", "Plan a day."
    broken: Tool = tool(fail)
    monkeypatch.setattr("bot_workspace.plan", broken)
    turn = {"tool_calls": [{"name": "plan", "id": "p1"}, {"name": "weather", "id": "w1"}]}
    with pytest.raises(PropagatingToolError):
        bot.play("trip", [turn], concurrency=2)
    data = bot.run("show", "trip", "--json").json()
    assert data["messages"][-1]["role"] == "assistant"
    assert [result["toolCallId"] for result in data["results"]] == ["w1"]
    shown = bot.run("show", "trip").out
    assert "result\tplan\tp1\tnone" in shown
    assert "result\tweather\tw1\tok" in shown


def test_a_deleted_session_is_shown_at_its_saves_only(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    bot.run("delete", "trip", "--keep-history", "--yes")
    ran = bot.run("show", "trip")
    assert (ran.code, ran.out) == (4, "")
    assert "only its history is left" in ran.err
    assert "lousho history trip" in ran.err
    assert bot.run("show", "trip", "--at", "7", "--json").json()["messages"][-1]["content"] == "all planned"


def test_quiet_prints_the_transcript_only(bot: BotWorkspace) -> None:
    bot.play("trip", TRIP)
    assert "session trip of agent bot: stop, step 3, save 7" in bot.run("show", "trip").err
    ran = bot.run("show", "trip", "-q")
    assert ran.err == ""
    assert ran.out.splitlines()[-1] == "8\tassistant\tall planned"


def test_f34_text_from_models_cannot_steer_the_terminal(bot: BotWorkspace) -> None:
    bot.play("odd", ["\x1b[2J\u202e\x9b[bold]"], input="\x07")
    for arguments in (("show", "odd"), ("show", "odd", "--json"), ("--no-color", "show", "odd")):
        out = bot.run(*arguments).out
        assert not [char for char in "\x1b\u202e\x9b\x07" if char in out]
        assert "[bold]" in out
    assert bot.run("show", "odd", "--json").json()["messages"][-1]["content"] == "\x1b[2J\u202e\x9b[bold]"
