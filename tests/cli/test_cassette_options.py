"""`--cassette FILE`, with `--record` or `--replay`, as a user meets them."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted_workspace import ScriptedWorkspace, calls

PAY = """
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        "Pay."
        note(f"pay{amount}")
        return f"paid {amount}"
    @tool
    def work() -> str:
        "Work."
        note("work")
        return "ok"
"""
TURNS = [calls("work"), calls("pay", pay={"amount": 3}), "all done"]
TAPE = ("--cassette", "tape.json")


@pytest.fixture
def bot(tmp_path: Path) -> ScriptedWorkspace:
    return ScriptedWorkspace(tmp_path).make(TURNS, PAY)


def recorded(bot: ScriptedWorkspace) -> list[Any]:
    runs: list[Any] = json.loads((bot.root / "tape.json").read_text())["runs"]
    return list(runs[0]["calls"])


def record(bot: ScriptedWorkspace) -> None:
    paused = bot.json("run", "s", "go", *TAPE, code=3)
    assert bot.run("approve", paused["approvalId"], *TAPE).returncode == 0


def without_model(bot: ScriptedWorkspace) -> None:
    (bot.agent / "script.json").unlink()
    (bot.agent / "agent.toml").write_text('model = "no-such:model"\n')


def test_a_run_over_several_commands_is_recorded_and_replayed_without_a_model(bot: ScriptedWorkspace) -> None:
    record(bot)
    assert len(recorded(bot)) == 3
    before = (bot.root / "tape.json").read_bytes()
    without_model(bot)
    paused = bot.json("run", "t", "go", *TAPE, "--replay", code=3)
    assert paused["approval"]["args"] == {"amount": 3}
    done = bot.json("approve", paused["approvalId"], *TAPE, "--replay")
    assert (done["text"], done["status"]) == ("all done", "finished")
    assert bot.noted() == ["work", "pay3"] * 2
    assert (bot.root / "tape.json").read_bytes() == before


def test_a_replay_that_lacks_an_answer_fails_and_asks_no_model(bot: ScriptedWorkspace) -> None:
    record(bot)
    failed = bot.run("run", "t", "something else", *TAPE, "--replay")
    assert failed.returncode == 1
    assert "[LOUSHO_CASSETTE_MISS]" in failed.stderr
    assert 'messages[1].content was "go", now it is "something else"' in failed.stderr
    assert "Traceback" not in failed.stderr
    out = bot.json("run", "u", "something else", *TAPE, "--replay", code=1)
    assert out["error"]["code"] == "LOUSHO_CASSETTE_MISS"
    lines = bot.run("run", "v", "something else", *TAPE, "--replay", "--events").stdout.splitlines()
    assert json.loads(lines[-1])["error"]["code"] == "LOUSHO_CASSETTE_MISS"


def test_a_miss_can_be_mended_by_a_resume_that_records(bot: ScriptedWorkspace) -> None:
    record(bot)
    assert bot.run("run", "t", "something else", *TAPE, "--replay").returncode == 1
    assert bot.run("resume", "t", *TAPE).returncode == 3
    assert len(recorded(bot)) == 5


def test_recording_asks_again_and_begins_anew_for_a_new_session(bot: ScriptedWorkspace) -> None:
    record(bot)
    bot.script(["quick"])
    done = bot.run("run", "t", "go", *TAPE, "--record")
    assert done.stdout == "quick\n"
    assert "the old cassette is kept as tape.json.old" in done.stderr
    assert [call["response"]["content"] for call in recorded(bot)] == ["quick"]
    assert not (bot.root / "tape.json.old").exists()


def test_recording_goes_on_where_a_session_does(bot: ScriptedWorkspace) -> None:
    paused = bot.json("run", "s", "go", *TAPE, "--record", code=3)
    assert bot.run("approve", paused["approvalId"], *TAPE, "--record").returncode == 0
    assert len(recorded(bot)) == 3
    assert not (bot.root / "tape.json.old").exists()


def test_a_failed_recording_keeps_the_old_cassette_and_says_so(bot: ScriptedWorkspace) -> None:
    record(bot)
    before = (bot.root / "tape.json").read_bytes()
    bot.script([calls("work"), {"error": "overloaded"}])
    failed = bot.run("run", "t", "go", *TAPE, "--record")
    assert failed.returncode == 1
    assert "the recording was interrupted; tape.json.old is the cassette as it was before" in failed.stderr
    assert (bot.root / "tape.json.old").read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="a kill as POSIX has it")
def test_a_kill_leaves_whole_files_and_the_resume_replays_the_right_turn(bot: ScriptedWorkspace) -> None:
    bot.make(
        TURNS,
        PAY
        + """
    @tool
    def stuck() -> str:
        "Never ends the first time."
        first = "stuck" not in LEDGER.read_text()
        note("stuck")
        if first:
            os.kill(os.getpid(), signal.SIGKILL)
        return "free"
    """,
    )
    bot.script([calls("work"), calls("stuck"), "all done"])
    killed = bot.run("run", "s", "go", *TAPE, "--record")
    assert killed.returncode == -signal.SIGKILL
    assert len(recorded(bot)) == 2
    bot.script(["not this", "nor this", "all done"])
    assert bot.run("resume", "s", *TAPE).stdout == "all done\n"
    without_model(bot)
    assert bot.run("run", "t", "go", *TAPE, "--replay").stdout == "all done\n"


def test_a_sub_agent_with_a_model_of_its_own_is_replayed_too(bot: ScriptedWorkspace) -> None:
    clerk = bot.agent / "subagents" / "clerk"
    clerk.mkdir(parents=True)
    (clerk / "agent.toml").write_text('model = "script:script.json"\n')
    (clerk / "instructions.md").write_text("Look.\n")
    (clerk / "script.json").write_text('["Found."]')
    bot.script([calls("delegate_clerk", delegate_clerk={"input": "Look."}), "all done"])
    assert bot.run("run", "s", "go", *TAPE).returncode == 0
    assert len(recorded(bot)) == 3
    (clerk / "agent.toml").write_text('model = "no-such:model"\n')
    without_model(bot)
    assert bot.run("run", "t", "go", *TAPE, "--replay").stdout == "all done\n"


def test_no_key_reaches_the_cassette(bot: ScriptedWorkspace) -> None:
    bot.script([calls("work"), "the key is sk-abcdefghijklmnop1234, the token correct-horse-battery"])
    env = {"ACME_TOKEN": "correct-horse-battery"}
    assert bot.run("run", "s", "use sk-zyxwvutsrqponmlk1234", *TAPE, env=env).returncode == 0
    text = (bot.root / "tape.json").read_text()
    assert "sk-" not in text
    assert "horse" not in text
    assert text.count("<redacted>") == 3


def test_patterns_in_the_configuration_make_no_difference(bot: ScriptedWorkspace) -> None:
    config = bot.root / ".lousho" / "config.toml"
    config.write_text(config.read_text() + 'cassette_volatile = ["ord_[0-9]+"]\n')
    bot.script(["sent"])
    assert bot.run("run", "s", "where is ord_1?", *TAPE).returncode == 0
    assert bot.run("run", "t", "where is ord_2?", *TAPE, "--replay").stdout == "sent\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--replay"], "--replay needs a file"),
        (["--record"], "--record needs a file"),
        (["--cassette", ""], "--cassette needs a file"),
        ([*TAPE, "--record", "--replay"], "exclude each other"),
        ([*TAPE, "--replay"], "there is no cassette tape.json"),
        (["--cassette", "."], "is a link, a folder or no file"),
    ],
)
def test_wrong_usage_is_told_before_anything_runs(
    bot: ScriptedWorkspace, words: list[str], message: str
) -> None:
    failed = bot.run("run", "s", "go", *words)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert message in failed.stderr
    assert not (bot.agent / "checkpoints").exists()
