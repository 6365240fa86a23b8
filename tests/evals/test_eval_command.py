"""`lousho eval`: gates, recordings, drift, reports and exit codes."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest
from eval_workspace import LOOKED_UP, LOOKUPS, EvalWorkspace, call

from lousho_cli.cli import app
from lousho_cli.workspace import create_workspace


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> EvalWorkspace:
    """The agent that looks an order up, and an eval that wants it to."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", "1")
    monkeypatch.delenv("CI", raising=False)
    workspace = EvalWorkspace(tmp_path, capfd)
    workspace.script(LOOKED_UP)
    workspace.eval(LOOKUPS)
    return workspace


def test_a_case_that_passes(bot: EvalWorkspace) -> None:
    ran = bot.run()
    assert (ran.code, ran.out) == (0, "passed\tlookups\tforty-two\n")
    assert "passed: lookups/forty-two" in ran.err
    assert bot.noted() == 1
    assert not (bot.agent / "checkpoints").exists()


def test_a_gate_that_fails_says_what_was_seen(bot: EvalWorkspace) -> None:
    bot.script([call("lookup", order="43"), "It was delivered."])
    ran = bot.run()
    assert ran.code == 1
    assert ran.out.startswith("failed\tlookups\tforty-two\tcalled\t")
    assert 'order is "43", wanted "42"' in ran.out


def test_nothing_to_run_is_not_green(bot: EvalWorkspace) -> None:
    assert bot.run("looukps").code == 8
    assert "did you mean lookups?" in bot.run("looukps").err
    assert bot.run("--tag", "slow").code == 8
    assert bot.run("--last-failed").code == 8
    assert bot.run("--replay").code == 8
    assert bot.run("--drift", "--json").json()["compared"] == 0
    (bot.evals / "lookups.toml").unlink()
    ran = bot.run("--json")
    assert ran.code == 8
    assert ran.json()["cases"] == []


def test_f52_a_recording_is_replayed_without_model_and_tools(bot: EvalWorkspace) -> None:
    assert bot.run("--record").code == 0
    assert bot.noted() == 1
    (bot.agent / "script.json").unlink()
    ran = bot.run("--replay", "--json")
    assert ran.code == 0
    assert (ran.json()["compared"], ran.json()["drifted"]) == (1, 0)
    assert bot.noted() == 1


def test_recording_again_what_did_not_change_leaves_the_file_as_it_is(bot: EvalWorkspace) -> None:
    bot.run("--record")
    before = bot.cassette().read_bytes()
    bot.run("--record")
    assert bot.cassette().read_bytes() == before


def test_a_replay_that_misses_names_the_first_difference(bot: EvalWorkspace) -> None:
    bot.run("--record")
    bot.eval(LOOKUPS.replace("Where is", "Where was"))
    ran = bot.run("--replay")
    assert ran.code == 1
    assert 'messages[0].content was "Where is order 42?", now it is "Where was order 42?"' in ran.out


def test_what_is_volatile_makes_no_difference_to_a_recording(bot: EvalWorkspace) -> None:
    assert bot.run("--record").code == 0
    bot.eval(LOOKUPS.replace("Where is order 42?", "Where is order no. 42?"))
    assert bot.run("--replay").code == 1
    (bot.root / ".lousho" / "config.toml").write_text("cassette_volatile = ['order.*42']\n")
    assert bot.run("--record").code == 0
    bot.eval(LOOKUPS)
    assert bot.run("--replay").code == 0


def test_in_ci_what_is_recorded_is_replayed(bot: EvalWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    bot.run("--record")
    (bot.agent / "script.json").unlink()
    monkeypatch.setenv("CI", "true")
    assert bot.run().code == 0
    monkeypatch.setenv("CI", "false")
    ran = bot.run()
    assert ran.code == 2
    assert "cannot read the script" in ran.err


def test_a_case_that_fails_is_not_recorded(bot: EvalWorkspace) -> None:
    bot.run("--record")
    before = bot.cassette().read_bytes()
    bot.script(["I do not know."])
    assert bot.run("--record").code == 1
    assert bot.cassette().read_bytes() == before


def test_recording_anew_shows_what_changes(bot: EvalWorkspace) -> None:
    bot.run("--record")
    bot.script([call("lookup", order="42", hint="late"), "It was delivered."])
    ran = bot.run("--record")
    assert ran.code == 0
    assert 'drift\tlookups\tforty-two\targs\tlookup {"order":"42"}' in ran.out


def test_several_runs_are_recorded_and_one_that_comes_close_is_enough(bot: EvalWorkspace) -> None:
    bot.run("--record", "--runs", "2")
    cassette = json.loads(bot.cassette().read_text())
    assert len(cassette["runs"]) == 2
    other = [call("lookup", order="42", hint="late"), "It was delivered."]
    bot.script(other)
    # One of the two runs goes another way, as an agent's run may.
    before = bot.cassette().read_text()
    bot.run("--record")
    cassette["runs"][1] = json.loads(bot.cassette().read_text())["runs"][0]
    bot.cassette().write_text(json.dumps(cassette))
    result = bot.run("--drift", "--json").json()["cases"][0]
    assert (result["drift"], result["runs"]) == ([], 2)
    assert bot.run("--replay").code == 0
    bot.cassette().write_text(before)
    assert bot.run("--drift", "--json").json()["cases"][0]["drift"] != []


def test_drift_is_soft_unless_strict_and_leaves_recordings_alone(bot: EvalWorkspace) -> None:
    bot.run("--record")
    before = bot.cassette().read_bytes()
    bot.script([call("lookup", order="42", hint="late"), "It was delivered."])
    ran = bot.run("--drift")
    assert (ran.code, bot.noted()) == (0, 1)
    assert ran.out.splitlines() == [
        "passed\tlookups\tforty-two",
        'drift\tlookups\tforty-two\targs\tlookup {"order":"42"}\tlookup {"hint":"late","order":"42"}',
        "parted\tlookups\tforty-two\t1\t0.75",
    ]
    assert bot.run("--drift", "--strict").code == 1
    assert bot.cassette().read_bytes() == before


def test_under_strict_a_case_without_a_recording_fails(bot: EvalWorkspace) -> None:
    bot.run("--record")
    bot.eval('[[cases]]\nlabel = "new"\ninput = "hi"\n', "new")
    ran = bot.run("--drift")
    assert (ran.code, "skipped\tnew\tnew\tnothing is recorded" in ran.out) == (0, True)
    assert bot.run("--drift", "--strict").code == 1
    assert bot.run("--replay").code == 1


def test_usage_is_compared_when_asked_for(bot: EvalWorkspace) -> None:
    bot.run("--record")
    bot.script(
        [LOOKED_UP[0], {"text": "It was delivered.", "usage": {"input_tokens": 5, "output_tokens": 2}}]
    )
    assert bot.run("--drift", "--json").json()["cases"][0]["drift"] == []
    drift = bot.run("--drift-usage", "--json").json()["cases"][0]["drift"]
    assert [each["field"] for each in drift] == ["usage"]


def test_tool_errors_are_recorded_and_replayed(bot: EvalWorkspace) -> None:
    bot.script([call("lookup", order="lost"), "It was delivered."])
    bot.eval(LOOKUPS.replace('order = "42"', 'order = "lost"'))
    assert bot.run("--record").code == 0
    assert bot.run("--replay").code == 0
    assert bot.noted() == 1


def test_a_call_that_waits_for_a_human_is_decided_by_the_case(bot: EvalWorkspace) -> None:
    bot.script([call("refund", order="42"), "Done."])
    expected = '[cases.expect]\ncalled = [{{ tool = "refund" }}]\n'
    case = '[[cases]]\nlabel = "refund"\ninput = "refund it"\n{}\n' + expected
    bot.eval(case.format(""))
    ran = bot.run("lookups")
    assert ran.code == 1
    assert 'paused on refund {"order": "42", "amount": 10}' in ran.out
    assert 'add refund = "approve"' in ran.out
    bot.eval(case.format("decisions = { refund = { edit = { order = '42', amount = 3 } } }"))
    assert bot.run("--record").code == 0
    answers = json.loads(bot.cassette("lookups", "refund").read_text())["runs"][0]["data"]["answers"]
    assert answers == [{"tool": "refund", "args": {"order": "42", "amount": 3}, "result": "refunded 3"}]
    assert bot.run("--replay").code == 0
    bot.eval(case.format('decisions = { refund = "reject" }'))
    assert bot.run().code == 0


def test_stubs_answer_in_the_place_of_tools(bot: EvalWorkspace) -> None:
    stubbed = LOOKUPS.replace('["Where', '["Where').replace(
        "[cases.expect]",
        'tools = "stub"\nstubs = [{ tool = "lookup", args = { order = "42" }, result = 1 }]\n[cases.expect]',
    )
    bot.eval(stubbed)
    assert (bot.run().code, bot.noted()) == (0, 0)
    bot.script([call("lookup", order="43"), "It was delivered."])
    ran = bot.run()
    assert ran.code == 1
    assert 'no stub answers lookup {"order": "43", "hint": ""}: order is "43", wanted "42"' in ran.out


def test_tools_that_answer_as_recorded_never_run(bot: EvalWorkspace) -> None:
    recorded = LOOKUPS.replace("[cases.expect]", 'tools = "recorded"\n[cases.expect]')
    bot.eval(recorded)
    ran = bot.run()
    assert (ran.code, "nothing is recorded" in ran.out) == (1, True)
    assert bot.noted() == 0
    bot.run("--record")
    assert (bot.run().code, bot.noted()) == (0, 1)
    bot.script([call("lookup", order="43"), "It was delivered."])
    ran = bot.run()
    assert 'the closest recorded call is lookup {"order": "42", "hint": ""}: order is "43"' in ran.out
    assert bot.noted() == 1


def test_no_case_sees_what_another_left_in_the_tools_modules(bot: EvalWorkspace) -> None:
    bot.script([call("count"), "Counted."])
    case = '[[cases]]\nlabel = "{}"\ninput = "count"\n'
    bot.eval(case.format("a") + case.format("b"))
    bot.run("--record", "-j", "1")
    kept = [json.loads(bot.cassette("lookups", name).read_text())["runs"][0] for name in "ab"]
    assert [run["data"]["answers"][0]["result"] for run in kept] == [1, 1]


def test_cases_are_chosen_by_name_tag_and_what_failed_last(bot: EvalWorkspace) -> None:
    bot.eval(
        '[[cases]]\nlabel = "a"\ninput = "hi"\n[cases.expect]\nmax_steps = 1\n'
        '[[cases]]\nlabel = "b"\ninput = "hi"\n',
        "more",
    )

    def ran(*words: str) -> list[str]:
        return [f"{each['eval']}/{each['case']}" for each in bot.run(*words, "--json").json()["cases"]]

    assert ran() == ["lookups/forty-two", "more/a", "more/b"]
    assert ran("--last-failed") == ["more/a"]
    assert ran("more/b", "lookups") == ["lookups/forty-two", "more/b"]
    assert ran("--tag", "smoke") == ["lookups/forty-two"]
    assert ran("--last-failed") == ["more/a"]
    assert (bot.home / "eval-state" / ".gitignore").read_text() == "*\n"


def test_no_case_is_begun_after_a_failure_if_so_wanted(bot: EvalWorkspace) -> None:
    case = '[[cases]]\nlabel = "{}"\ninput = "hi"\n[cases.expect]\nmax_steps = 0\n'
    bot.eval("".join(map(case.format, "abc")))
    report = bot.run("-x", "-j", "1", "--json").json()
    assert (report["failed"], report["leftOut"], report["total"]) == (1, 2, 3)


def test_a_wrong_file_is_told_before_anything_is_run(bot: EvalWorkspace) -> None:
    bot.eval("[[cases]]\nlabel = 'x'\ninput = 'hi'\n[cases.expect]\ncaled = []\n", "wrong")
    ran = bot.run("--json")
    assert ran.code == 2
    error = ran.json()["error"]
    assert error["code"] == "LOUSHO_EVALS_INVALID"
    assert "wrong.toml, line 5" in error["message"]
    assert "did you mean 'called'?" in error["hint"]
    assert bot.noted() == 0


def test_an_agent_that_does_not_load_cannot_be_evaluated(bot: EvalWorkspace) -> None:
    (bot.agent / "tools" / "broken.py").write_text("import nowhere_to_be_found\n")
    ran = bot.run()
    assert ran.code == 2
    assert "broken.py, line 1 does not import" in ran.err


def test_an_untrusted_workspace_runs_nothing(bot: EvalWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOUSHO_TRUST_WORKSPACE")
    ran = bot.run()
    assert (ran.code, bot.noted()) == (2, 0)
    assert "LOUSHO_WORKSPACE_UNTRUSTED" in ran.err
    assert bot.run("--trust").code == 0


def test_a_model_that_fails_fails_its_case(bot: EvalWorkspace) -> None:
    bot.script([{"error": "overloaded"}])
    ran = bot.run()
    assert (ran.code, "overloaded" in ran.out) == (1, True)


def test_modes_exclude_each_other(bot: EvalWorkspace) -> None:
    assert bot.run("--record", "--drift").code == 2
    assert bot.run("--runs", "2").code == 2


def test_the_report_is_what_json_prints(bot: EvalWorkspace) -> None:
    ran = bot.run("--json", "--report", "reports/out.json")
    assert json.loads((bot.root / "reports" / "out.json").read_text()) == ran.json()
    assert ran.json()["cases"][0].items() >= {
        "agent": "bot", "eval": "lookups", "case": "forty-two", "passed": True, "failures": [], "drift": [],
    }.items()  # fmt: skip


def test_what_a_sub_agent_asks_and_calls_is_recorded_too(bot: EvalWorkspace) -> None:
    helper = bot.agent / "subagents" / "helper"
    (helper / "tools").mkdir(parents=True)
    (bot.agent / "tools" / "tools.py").rename(helper / "tools" / "tools.py")
    (helper / "agent.toml").write_text('model = "script:script.json"\n')
    (bot.agent / "script.json").rename(helper / "script.json")
    bot.script([call("delegate_helper", input="order 42?"), "It was delivered."])
    bot.eval(LOOKUPS.replace('tool = "lookup", args = { order = "42" }', 'tool = "delegate_helper"'))
    assert bot.run("--record").code == 0
    assert bot.noted() == 1
    (helper / "script.json").unlink()
    (bot.agent / "script.json").unlink()
    assert bot.run("--replay").code == 0
    assert bot.noted() == 1


def test_turns_follow_each_other_in_one_conversation(bot: EvalWorkspace) -> None:
    bot.script(
        [call("lookup", order="42"), "It was delivered.", call("lookup", order="43"), "Delivered too."]
    )
    bot.eval(LOOKUPS.replace('order 42?"]', 'order 42?", "And 43?"]').replace('["delivered"]', '["too"]'))
    assert bot.run("--record").code == 0
    assert len(json.loads(bot.cassette().read_text())["runs"][0]["data"]["steps"]) == 4
    assert bot.run("--replay").code == 0


def test_a_recording_that_is_damaged_is_told_of_and_left_alone(bot: EvalWorkspace) -> None:
    bot.run("--record")
    bot.cassette().write_text('{"version": 1, "runs": [{"calls": []}]}')
    ran = bot.run("--replay")
    assert ran.code == 2
    assert "forty-two.json is no recording of an eval" in ran.err


def test_the_example_agent_comes_with_evals_that_pass_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    create_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", "1")
    monkeypatch.delenv("CI", raising=False)
    for words in ([], ["--replay"], ["--drift", "--strict"]):
        capfd.readouterr()
        assert app.run(["eval", "--json", *words]) == 0
        report = json.loads(capfd.readouterr().out)
        assert (report["passed"], report["total"], report["compared"]) == (6, 6, 6 if words else 0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent to processes")
def test_an_interrupted_eval_ends_with_the_signals_code(bot: EvalWorkspace) -> None:
    bot.script([{"text": "late", "delay": 600}])
    case = '[[cases]]\nlabel = "{}"\ninput = "hi"\n'
    # It fails at once, as nothing is recorded, and so tells that the run has begun.
    quick = case.format("quick") + 'tools = "recorded"\n'
    bot.eval(quick + case.format("slow"))
    process = bot.start("-j", "1")
    assert process.stderr is not None
    assert "lookups/quick" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in err
    assert "Traceback" not in err
