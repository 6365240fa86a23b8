"""A model as the judge: rubrics as soft checks, recorded and replayed, and arguments that mean the same."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from eval_workspace import LOOKED_UP, LOOKUPS, EvalWorkspace, call

from lousho_cli.evals.judging import Meanings
from lousho_cli.testing import ScriptedModel

RUBRIC = '\n[[cases.expect.judge]]\nrubric = "It is kind."\nthreshold = 0.5\n'


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> EvalWorkspace:
    """The agent that looks an order up, a rubric, and a judge that is not content."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", "1")
    monkeypatch.delenv("CI", raising=False)
    workspace = EvalWorkspace(tmp_path, capfd)
    workspace.script(LOOKED_UP)
    workspace.eval(LOOKUPS + RUBRIC)
    (workspace.home / "config.toml").write_text('[judge]\nmodel = "script:judge.json"\n')
    says(workspace, '{"score": 0.25, "reason": "It is short."}')
    return workspace


def says(bot: EvalWorkspace, answer: str) -> None:
    (bot.agent / "judge.json").write_text(json.dumps([answer]))


SHORT = "soft\tlookups\tforty-two\tjudge\tIt is kind.: 0.25, wanted 0.5: It is short."


def test_a_rubric_is_a_soft_check_when_asked_for(bot: EvalWorkspace) -> None:
    assert "soft" not in bot.run().out
    ran = bot.run("--judge")
    assert (ran.code, SHORT in ran.out) == (0, True)
    says(bot, 'Here you are: {"score": 0.5, "reason": "Kind enough."}')
    ran = bot.run("--judge", "--json")
    assert ran.json()["cases"][0]["warnings"] == []
    assert ran.json()["cases"][0]["judgements"] == [
        {"rubric": "It is kind.", "threshold": 0.5, "score": 0.5, "reason": "Kind enough."}
    ]


def test_what_the_judge_says_is_recorded_and_replayed(bot: EvalWorkspace) -> None:
    assert SHORT in bot.run("--record", "--judge").out
    (bot.agent / "judge.json").unlink()
    (bot.agent / "script.json").unlink()
    ran = bot.run("--replay", "--judge", "--strict")
    assert (ran.code, SHORT in ran.out) == (0, True)
    assert bot.run("--replay", "--strict").out == "passed\tlookups\tforty-two\n"


def test_what_was_not_judged_at_the_recording_is_told(bot: EvalWorkspace) -> None:
    bot.run("--record")
    ran = bot.run("--replay", "--judge")
    assert ran.code == 0
    assert "It is kind.: not judged: the recording of lookups/forty-two has no answer" in ran.out


@pytest.mark.parametrize(
    "answer", ["Fine.", '{"score": 2}', '{"score": true}', "{}", "[1]", '{"score": "1"}']
)
def test_an_answer_that_cannot_be_read_is_no_judgement(bot: EvalWorkspace, answer: str) -> None:
    says(bot, answer)
    ran = bot.run("--judge")
    assert (ran.code, "not judged: the judge's answer cannot be read" in ran.out) == (0, True)


def test_there_must_be_a_judge(bot: EvalWorkspace) -> None:
    (bot.home / "config.toml").unlink()
    ran = bot.run("--judge")
    assert (ran.code, "[judge]" in ran.err, bot.noted()) == (2, True, 0)
    (bot.home / "config.toml").write_text('[judge]\nmodell = "demo"\n')
    assert bot.run("--judge").code == 2


def test_arguments_that_mean_the_same_are_no_drift(bot: EvalWorkspace) -> None:
    bot.eval(LOOKUPS.replace("[[cases]]", '[drift.args.lookup]\nhint = "judged"\n\n[[cases]]'))
    bot.script([call("lookup", order="42", hint="it is late"), "It was delivered."])
    bot.run("--record")
    bot.script([call("lookup", order="42", hint="late it is"), "It was delivered."])
    assert bot.run("--drift", "--strict").code == 1
    assert bot.run("--drift", "--strict", "--judge").code == 1
    says(bot, '{"score": 1, "reason": "Another order."}')
    assert bot.run("--drift", "--strict", "--judge").code == 0


def test_a_judge_is_asked_once_about_two_values_whichever_comes_first() -> None:
    model = ScriptedModel(['{"score": 1, "reason": ""}'])
    meanings = Meanings()
    assert not meanings("a", "b")
    assert not meanings("b", "a")
    assert asyncio.run(meanings.ask(lambda: model))
    assert meanings("a", "b")
    assert meanings("b", "a")
    assert not asyncio.run(meanings.ask(lambda: model))
    assert len(model.calls) == 1
