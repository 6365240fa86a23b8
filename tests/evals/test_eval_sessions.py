"""Sessions become cases that replay at once, and are run again on the agent as it is."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from eval_workspace import LOOKED_UP, EvalWorkspace, call

from lousho_cli import Agent, AgentExecutor, FileStore, tool
from lousho_cli.cli import app
from lousho_cli.evals.case_file import NotInTomlError, toml
from lousho_cli.testing import ScriptedModel

REFUNDED = [
    {
        "tool_calls": [
            {"name": "refund", "args": {"order": "42"}, "id": "one"},
            {"name": "refund", "args": {"order": "43"}, "id": "two"},
            {"name": "lookup", "args": {"order": "lost"}, "id": "three"},
            {"name": "nowhere", "args": {}, "id": "four"},
        ]
    },
    "Done.",
]


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> EvalWorkspace:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", "1")
    monkeypatch.delenv("CI", raising=False)
    workspace = EvalWorkspace(tmp_path, capfd)
    workspace.script(LOOKED_UP)
    return workspace


def lousho(*words: str) -> int:
    return app.run([*words, "--agent", "bot", "--quiet"])


def decide(capfd: pytest.CaptureFixture[str], *words: str) -> None:
    capfd.readouterr()
    app.run(["approvals", "--json"])
    (waiting,) = json.loads(capfd.readouterr().out)["approvals"]
    lousho("approve", waiting["id"], *words)


def case_of(bot: EvalWorkspace, name: str) -> Any:
    return tomllib.loads((bot.evals / f"{name}.toml").read_text())["cases"][0]


def replays_offline(bot: EvalWorkspace) -> bool:
    before = bot.noted()
    (bot.agent / "script.json").unlink()
    ran = bot.run("--replay", "--strict")
    return ran.code == 0 and bot.noted() == before


def test_a_session_becomes_a_case_that_replays_at_once(bot: EvalWorkspace) -> None:
    assert lousho("run", "chat", "Where is order 42?") == 0
    ran = bot.run("--from", "chat", "--json")
    assert ran.code == 0
    assert (ran.json()["steps"], ran.json()["leftOut"]) == (2, 0)
    assert case_of(bot, "chat") == {
        "label": "chat",
        "tools": "recorded",
        "input": ["Where is order 42?"],
        "expect": {"completed": True, "order": ["lookup"]},
    }
    assert bot.noted() == 1
    assert replays_offline(bot)


def test_decisions_edits_rejections_and_errors_of_a_session(
    bot: EvalWorkspace, capfd: pytest.CaptureFixture[str]
) -> None:
    bot.script(REFUNDED)
    lousho("run", "chat", "Refund them")
    decide(capfd, "--edit", '{"order": "42", "amount": 3}')
    decide(capfd, "--reject", "--note", "not that one")
    assert bot.run("--from", "@last", "--as", "Two refunds").code == 0
    case = case_of(bot, "two-refunds")
    assert case["decisions"] == {
        "refund": [{"edit": {"order": "42", "amount": 3}}, {"reject": "not that one"}]
    }
    cassette = json.loads(bot.cassette("two-refunds", "two-refunds").read_text())
    answers = [(each["tool"], each.get("error")) for each in cassette["runs"][0]["data"]["answers"]]
    assert answers == [("refund", None), ("lookup", "tool-error")]
    assert replays_offline(bot)


def test_what_a_human_looked_up_is_the_answer(bot: EvalWorkspace, capfd: pytest.CaptureFixture[str]) -> None:
    bot.script([call("refund", order="42"), "Done."])
    lousho("run", "chat", "Refund it")
    decide(capfd, "--result", '"already refunded"')
    assert bot.run("--from", "chat").code == 0
    assert "already refunded" in bot.cassette("chat", "chat").read_text()
    assert replays_offline(bot)


def test_the_open_end_of_a_session_is_left_out(bot: EvalWorkspace) -> None:
    bot.script([LOOKED_UP[0], call("refund", order="42"), "Done."])
    assert lousho("run", "chat", "Refund order 42") == 3
    ran = bot.run("--from", "chat")
    assert (ran.code, "its open last step is left out" in ran.err) == (0, True)
    case = case_of(bot, "chat")
    assert case["input"] == [{"text": "Refund order 42", "max_steps": 1}]
    assert case["expect"] == {"order": ["lookup"]}
    assert replays_offline(bot)


def test_a_session_of_which_nothing_is_finished_is_no_case(bot: EvalWorkspace) -> None:
    bot.script([call("refund", order="42"), "Done."])
    lousho("run", "chat", "Refund it")
    ran = bot.run("--from", "chat")
    assert (ran.code, "no model turn of session 'chat' has been finished" in ran.err) == (2, True)
    assert bot.run("--from", "nobody").code == 4


def test_messages_that_came_while_a_run_was_under_way(
    bot: EvalWorkspace, capfd: pytest.CaptureFixture[str]
) -> None:
    bot.script([LOOKED_UP[0], "It was delivered.", "Thanks."])
    lousho("run", "chat", "Where is order 42?")
    lousho("fork", "chat", "--from-step", "1", "--append-input", "Hurry", "--as", "hurried")
    lousho("resume", "hurried")
    assert bot.run("--from", "hurried").code == 0
    assert case_of(bot, "hurried")["input"] == [{"text": "Where is order 42?", "max_steps": 1}, "Hurry"]
    assert replays_offline(bot)


def test_messages_with_parts_and_several_at_once(bot: EvalWorkspace) -> None:
    @tool
    def lookup(order: str, hint: str = "") -> dict[str, str]:
        "Where an order is."
        return {"order": order}

    picture = {"role": "user", "content": [{"type": "text", "text": "What \x7f is this?"}]}
    AgentExecutor.execute_sync(
        agent=Agent("bot", tools=[lookup]),
        provider=ScriptedModel([call("lookup", order="42"), "There."]),
        input=[picture, {"role": "user", "content": "And where?"}],
        session_id="parts",
        checkpoint_store=FileStore(bot.home, agent="bot").checkpoints,
    )
    assert bot.run("--from", "parts").code == 0
    (turn,) = case_of(bot, "parts")["input"]
    assert [message["content"] for message in turn["messages"]] == [picture["content"], "And where?"]
    assert replays_offline(bot)


def test_what_a_sub_agent_answered_is_recorded_as_a_whole(bot: EvalWorkspace) -> None:
    sub = bot.agent / "subagents" / "clerk"
    sub.mkdir(parents=True)
    (sub / "agent.toml").write_text('model = "script:clerk.json"\n')
    (sub / "clerk.json").write_text(json.dumps(["It is on its way."]))
    bot.script([call("delegate_clerk", input="Where is 42?"), "It is on its way."])
    assert lousho("run", "chat", "Where is order 42?") == 0
    assert bot.run("--from", "chat").code == 0
    (sub / "clerk.json").unlink()
    assert bot.run("--drift", "--strict").code == 0
    assert replays_offline(bot)


def test_a_session_in_a_database(bot: EvalWorkspace) -> None:
    (bot.home / "config.toml").write_text('store = "sqlite:sessions.db"\n')
    lousho("run", "chat", "Where is order 42?", "--business-state", '{"customer": 7}')
    assert bot.run("--from", "chat").code == 0
    assert case_of(bot, "chat")["business_state"] == {"customer": 7}
    assert replays_offline(bot)


def test_a_name_that_is_taken_is_refused(bot: EvalWorkspace) -> None:
    lousho("run", "chat", "Where is order 42?")
    bot.run("--from", "chat")
    before = (bot.evals / "chat.toml").read_bytes()
    ran = bot.run("--from", "chat", "--as", "Chat!")
    assert (ran.code, "has an eval 'chat'" in ran.err) == (2, True)
    assert (bot.evals / "chat.toml").read_bytes() == before


def test_a_session_is_run_again_without_side_effects(bot: EvalWorkspace) -> None:
    bot.script([LOOKED_UP[0], call("refund", order="42"), "Done."])
    lousho("run", "chat", "Where is order 42?", "--max-steps", "1")
    bot.script(LOOKED_UP)
    lousho("run", "chat", "And?")
    kept = sorted((bot.agent / "checkpoints").iterdir())
    before = [file.read_bytes() for file in kept]
    assert bot.noted() == 1
    ran = bot.run("--drift", "--session", "chat", "--strict")
    assert ran.code == 0
    (bot.agent / "instructions.md").write_text("Be brief.")
    bot.script([call("lookup", order="42", hint="late"), call("refund", order="42"), "Done."])
    ran = bot.run("--drift", "--session", "chat", "--json")
    assert ran.code == 0
    case = ran.json()["cases"][0]
    assert (case["eval"], case["case"], case["comparison"]["verdict"]) == ("session", "chat", "drifted")
    assert case["comparison"]["parting"]["partedAt"] == 1
    assert case["comparison"]["agentChanges"] == ["instructions changed"]
    assert bot.run("--drift", "--session", "chat", "--strict").code == 1
    assert bot.noted() == 1
    assert [file.read_bytes() for file in kept] == before


def test_options_of_sessions_fit_each_other(bot: EvalWorkspace) -> None:
    lousho("run", "chat", "Where is order 42?")
    for words in (
        ["--session", "chat"],
        ["--as", "x"],
        ["--from", "chat", "--drift"],
        ["chat", "--from", "chat"],
    ):
        assert bot.run(*words).code == 2


@pytest.mark.parametrize(
    "value",
    [
        "",
        'a "b" \\ \n\t\x00\x7f\u202e é 😀',
        1,
        1.5,
        1e300,
        True,
        [],
        [1, "a"],
        {},
        {"a b": {"c": [1]}, "d": 2},
    ],
)
def test_values_are_written_as_toml(value: Any) -> None:
    assert tomllib.loads(f"x = {toml(value)}")["x"] == value


def test_null_has_no_form_in_toml() -> None:
    with pytest.raises(NotInTomlError):
        toml({"a": [None]})
