from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from bot_workspace import PAYMENT, TRIP, BotWorkspace


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BotWorkspace:
    monkeypatch.chdir(tmp_path)
    return BotWorkspace(tmp_path, capsys)


@pytest.fixture
def trip(bot: BotWorkspace) -> BotWorkspace:
    bot.play("trip", TRIP, input="Plan my trip")
    return bot


def messages(bot: BotWorkspace, session: str, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = bot.run("show", session, "--json", *arguments).json()["messages"]
    return found


def result_of(bot: BotWorkspace, session: str, call: str) -> Any:
    found = [m["content"] for m in messages(bot, session) if m.get("toolCallId") == call]
    assert len(found) == 1
    return json.loads(found[0])


def give_input(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text), encoding="utf-8"))


def test_a_fork_is_named_on_stdout_and_what_comes_next_on_stderr(trip: BotWorkspace) -> None:
    ran = trip.run("fork", "trip", "--from-step", "1")
    assert (ran.code, ran.out) == (0, "trip.fork-1\n")
    assert ran.err == ("trip.fork-1 is forked from trip, step 1 (save 3)\nnext: lousho resume trip.fork-1\n")
    quiet = trip.run("fork", "trip", "--from-step", "1", "-q", "-a", "bot")
    assert (quiet.out, quiet.err) == ("trip.fork-2\n", "")
    named = trip.run("fork", "trip", "--from-step", "1", "--as", "other way", "-a", "bot", "--workspace", ".")
    assert "next: lousho resume 'other way' --agent bot --workspace ." in named.err


def test_as_json_a_fork_tells_where_it_comes_from(trip: BotWorkspace) -> None:
    ran = trip.run("fork", "trip", "--at", "6", "--json")
    assert ran.json() == {"sessionId": "trip.fork-1", "step": 2, "parent": {"sessionId": "trip", "seq": 6}}
    assert ran.err == ""


def test_f27_a_fork_has_its_parents_steps_up_to_there_and_leaves_it_alone(trip: BotWorkspace) -> None:
    before = trip.state_files()
    assert trip.run("fork", "trip", "--from-step", "1").code == 0
    after = trip.state_files()
    assert {name: after[name] for name in before} == before
    assert messages(trip, "trip.fork-1") == messages(trip, "trip", "--at", "3")


def test_a_step_is_forked_from_its_newest_save(trip: BotWorkspace) -> None:
    trip.play("trip", PAYMENT, input="pay")
    newest = next(e for e in trip.run("history", "trip", "--json").json()["entries"] if e["step"] == 1)
    made = trip.run("fork", "trip", "--from-step", "1", "--json").json()
    assert made["parent"]["seq"] == newest["seq"]


@pytest.mark.parametrize("call", ["w1", "weather"])
def test_a_result_is_replaced_by_call_id_or_by_tool_name(trip: BotWorkspace, call: str) -> None:
    given = f'{call}={{"forecast": "rain = wet", "n": 12345678901234567890}}'
    assert trip.run("fork", "trip", "--from-step", "1", "--tool-result", given).code == 0
    assert result_of(trip, "trip.fork-1", "w1") == {"forecast": "rain = wet", "n": 12345678901234567890}
    assert result_of(trip, "trip", "w1") == {"forecast": "sunny", "city": "Oslo"}


@pytest.mark.parametrize("value", ["null", "false", "0", '""', "[]", '"123"'])
def test_falsy_results_and_texts_are_results(trip: BotWorkspace, value: str) -> None:
    assert trip.run("fork", "trip", "--at", "2", "--tool-result", f"weather={value}").code == 0
    assert result_of(trip, "trip.fork-1", "w1") == json.loads(value)


def test_a_tool_called_twice_up_to_there_needs_the_calls_id(trip: BotWorkspace) -> None:
    ran = trip.run("fork", "trip", "--from-step", "2", "--tool-result", "plan=1")
    assert ran.code == 2
    assert "'plan' was called 2 times" in ran.err
    assert "p1, p2" in ran.err
    assert trip.run("fork", "trip", "--from-step", "1", "--tool-result", "plan=1").code == 2
    assert trip.run("fork", "trip", "--from-step", "2", "--tool-result", "p2=1").code == 0
    assert result_of(trip, "trip.fork-1", "p2") == 1


def test_a_call_id_may_hold_an_equals_sign(bot: BotWorkspace) -> None:
    bot.play("s", [{"tool_calls": [{"name": "weather", "id": "call=="}]}, "done"])
    assert bot.run("fork", "s", "--from-step", "1", "--tool-result", 'call==="wet"').code == 0
    assert result_of(bot, "s.fork-1", "call==") == "wet"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("weather=rain", "weather='\"rain\"'"),
        ("weather={'a':1}", "is not JSON"),
        ("weather=NaN", "is not JSON"),
        ("weather", "is not CALL=JSON"),
        ("=1", "is not CALL=JSON"),
    ],
)
def test_what_is_no_result_is_wrong_usage_and_makes_nothing(
    trip: BotWorkspace, given: str, said: str
) -> None:
    before = trip.state_files()
    ran = trip.run("fork", "trip", "--from-step", "1", "--tool-result", given)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert trip.state_files() == before


def test_input_is_appended_behind_the_results(trip: BotWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    trip.run("fork", "trip", "--from-step", "1", "--append-input", "by train", "--as", "a")
    assert messages(trip, "a")[-1] == {"role": "user", "content": "by train"}
    give_input(monkeypatch, "zu Fuß\n".encode())
    trip.run("fork", "trip", "--at", "2", "--append-input", "-", "--as", "b")
    assert trip.run("show", "b", "--json").json()["queued"] == [{"role": "user", "content": "zu Fuß"}]
    assert trip.run("fork", "trip", "--from-step", "1", "--append-input", " ").code == 2


def test_the_business_state_is_replaced(trip: BotWorkspace) -> None:
    trip.run("fork", "trip", "--from-step", "1", "--business-state", '{"budget": 7}')
    assert trip.run("show", "trip.fork-1", "--json").json()["businessState"] == {"budget": 7}
    assert trip.run("fork", "trip", "--from-step", "1", "--business-state", "{").code == 2


@pytest.mark.parametrize("piped", [True, False])
def test_the_transcript_is_replaced_before_a_result_is(
    trip: BotWorkspace, monkeypatch: pytest.MonkeyPatch, piped: bool
) -> None:
    given = messages(trip, "trip", "--at", "3")
    given[1]["content"] = "Plan my week"
    given[2]["toolCalls"][0]["id"] = given[3]["toolCallId"] = "mine"
    if piped:
        give_input(monkeypatch, json.dumps(given).encode())
    else:
        Path("m.json").write_text(json.dumps(given), encoding="utf-8")
    where = "-" if piped else "m.json"
    ran = trip.run("fork", "trip", "--from-step", "1", "--messages", where, "--tool-result", "weather=5")
    assert ran.code == 0
    assert [m["content"] for m in messages(trip, "trip.fork-1")] == ["Do the work.", "Plan my week", "", "5"]
    assert result_of(trip, "trip.fork-1", "mine") == 5


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ('{"messages": []}', "is not a JSON list"),
        ('[{"role": "user", "content": "x"}, {"role": "robot"}]', "message 2 of m.json: role:"),
        ("[7]", "message 1 of m.json"),
        ('[{"role": "tool", "content": "1", "toolCallId": "w1"}]', "no call waits for one"),
    ],
)
def test_f32_a_transcript_that_is_none_is_refused_with_the_place(
    trip: BotWorkspace, content: str, said: str
) -> None:
    Path("m.json").write_text(content)
    ran = trip.run("fork", "trip", "--from-step", "1", "--messages", "m.json")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "LOUSHO_INTERNAL" not in ran.err
    assert trip.run("history", "trip.fork-1").code == 4


def test_a_file_that_cannot_be_read_and_two_readers_of_one_input_are_wrong_usage(trip: BotWorkspace) -> None:
    assert "nowhere.json" in trip.run("fork", "trip", "--at", "3", "--messages", "nowhere.json").err
    Path("latin.json").write_bytes(b'["\xe9"]')
    assert trip.run("fork", "trip", "--at", "3", "--messages", "latin.json").code == 2
    ran = trip.run("fork", "trip", "--at", "3", "--messages", "-", "--append-input", "-")
    assert ran.code == 2
    assert "standard input" in ran.err


def test_exactly_one_place_to_fork_from_is_needed(trip: BotWorkspace) -> None:
    for arguments in ([], ["--from-step", "1", "--at", "3"]):
        ran = trip.run("fork", "trip", *arguments)
        assert ran.code == 2
        assert "--from-step N, or --at SEQ" in ran.err
        assert "lousho history trip" in ran.err


@pytest.mark.parametrize("where", ["--from-step=9", "--from-step=-1", "--at=99", "--at=0", "--at=5"])
def test_f50_a_place_that_is_not_kept_ends_with_4_and_leaves_nothing(trip: BotWorkspace, where: str) -> None:
    before = trip.state_files()
    ran = trip.run("fork", "trip", where)
    assert (ran.code, ran.out) == (4, "")
    assert "[LOUSHO_CHECKPOINT_NOT_FOUND]" in ran.err
    assert "steps kept: 0, 1, 2, 3" in ran.err
    assert trip.state_files() == before


def test_f50_a_name_in_use_is_refused_and_others_are_counted(trip: BotWorkspace) -> None:
    assert trip.run("fork", "trip", "--from-step", "1", "--as", "trip").code == 2
    assert trip.run("fork", "trip", "--from-step", "1", "--as", "..").code == 2
    names = [trip.run("fork", "trip", "--from-step", "1", "-q").out.strip() for _ in range(3)]
    assert names == ["trip.fork-1", "trip.fork-2", "trip.fork-3"]
    assert trip.run("fork", "trip.fork-2", "--from-step", "1", "-q").out == "trip.fork-2.fork-1\n"
    assert trip.run("fork", "trip.fork-2", "--from-step", "0").code == 4


def test_a_deleted_session_can_be_forked_while_its_history_is_kept(trip: BotWorkspace) -> None:
    before = messages(trip, "trip", "--at", "3")
    trip.run("delete", "trip", "--keep-history", "--yes")
    assert trip.run("fork", "trip", "--from-step", "1", "--as", "again").code == 0
    assert messages(trip, "again") == before


def test_fork_run_goes_on_at_once_in_a_real_process(tmp_path: Path) -> None:
    agent = tmp_path / ".lousho" / "agents" / "bot"
    agent.mkdir(parents=True)
    (agent / "agent.toml").write_text('model = "script:script.json"')
    (agent / "script.json").write_text(json.dumps(["first", "second"]))

    def lousho(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lousho_cli", *arguments],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    assert lousho("run", "chat", "hello", "--trust").returncode == 0
    ran = lousho("fork", "chat", "--from-step", "0", "--append-input", "and you?", "--run", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout).items() >= {"sessionId": "chat.fork-1", "text": "first"}.items()
    assert "chat.fork-1 is forked from chat, step 0 (save 1)" in ran.stderr
    ran = lousho("fork", "chat", "--from-step", "1", "--append-input", "and you?", "--run", "-q")
    assert (ran.returncode, ran.stdout) == (0, "second\n"), ran.stderr
