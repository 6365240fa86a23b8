"""`lousho eval --drift`: verdicts, what changed in the agent, trends, and updates of recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from eval_workspace import LOOKED_UP, LOOKUPS, EvalWorkspace, call

from lousho_cli.evals.drift_scores import CASES_KEPT, RUNS_KEPT, Scored, ScoredCase, after
from lousho_cli.evals.trend import WINDOW, trend_of
from lousho_cli.execution.messages import JsonObject

HINTED = [call("lookup", order="42", hint="late"), "It was delivered."]


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> EvalWorkspace:
    """The agent that looks an order up, with a recording of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", "1")
    monkeypatch.delenv("CI", raising=False)
    workspace = EvalWorkspace(tmp_path, capfd)
    workspace.script(LOOKED_UP)
    workspace.eval(LOOKUPS)
    assert workspace.run("--record").code == 0
    return workspace


def compared(bot: EvalWorkspace, *words: str) -> JsonObject:
    """The comparison of the one case."""
    found: JsonObject = bot.run("--drift", "--json", *words).json()["cases"][0]["comparison"]
    return found


def record_two_ways(bot: EvalWorkspace) -> None:
    first = json.loads(bot.cassette().read_text())
    bot.script(HINTED)
    bot.run("--record")
    second = json.loads(bot.cassette().read_text())
    bot.cassette().write_text(json.dumps({**first, "runs": [*first["runs"], *second["runs"]]}))


def test_several_new_runs_against_several_recorded_ones(bot: EvalWorkspace) -> None:
    record_two_ways(bot)
    ran = bot.run("--drift", "--runs", "3", "--strict")
    assert ran.code == 0
    assert (
        "flaky\tlookups\tforty-two\t3 of 3 new runs as recorded, 1 of 2 recorded runs seen again" in ran.out
    )
    bot.script([call("lookup", order="42", hint="soon"), "It was delivered."])
    ran = bot.run("--drift", "--runs", "3", "--strict")
    assert (ran.code, "flaky" in ran.out, "drift\t" in ran.out) == (1, False, True)


def test_arguments_have_the_strictness_of_the_eval_and_the_case(bot: EvalWorkspace) -> None:
    bot.script(HINTED)
    assert bot.run("--drift", "--strict").code == 1
    bot.eval(LOOKUPS.replace("[[cases]]", '[drift.args.lookup]\nhint = "ignore"\n\n[[cases]]'))
    ran = bot.run("--drift", "--strict")
    assert ran.code == 0
    assert "compared by rule: lookup.hint ignored" in ran.err
    bot.eval(LOOKUPS.replace("[cases.expect]", '[cases.drift]\nargs = { lookup = "ignore" }\n[cases.expect]'))
    assert bot.run("--drift", "--strict").code == 0
    bot.eval(LOOKUPS.replace("[[cases]]", '[drift.args.lookup]\nhint = "maybe"\n\n[[cases]]'))
    ran = bot.run("--drift")
    assert "lookups.toml, line 5: drift.args.lookup cannot be" in ran.err


def test_f52_the_report_lists_what_never_counts(bot: EvalWorkspace) -> None:
    assert "not compared: ids of tool calls, UUIDs" in bot.run("--drift").err
    report = bot.run("--drift", "--json").json()
    assert {"what": "UUIDs", "becomes": "<uuid>"} in report["normalised"]
    bot.run("--drift", "--junit", "out.xml")
    assert "UUIDs (&lt;uuid&gt;)" in Path("out.xml").read_text()


def test_what_changed_in_the_agent_is_named(bot: EvalWorkspace) -> None:
    assert compared(bot)["agentChanges"] == []
    (bot.agent / "instructions.md").write_text("Be brief.")
    tools = bot.agent / "tools" / "tools.py"
    tools.write_text(
        tools.read_text().replace('hint: str = ""', "hint: int = 1").replace("def count", "def tally")
    )
    (bot.agent / "other.json").write_text(json.dumps(LOOKED_UP))
    (bot.agent / "agent.toml").write_text('model = "script:other.json"\n')
    changes = compared(bot)["agentChanges"]
    assert [change.split(": ")[0] for change in changes] == [
        "model was script:script.json, is script:other.json",
        "instructions changed",
        "tool count is now called tally",
        "tool lookup takes other arguments",
    ]


def test_a_renamed_tool_answers_as_recorded_and_is_drift(bot: EvalWorkspace) -> None:
    tools = bot.agent / "tools" / "tools.py"
    tools.write_text(tools.read_text().replace("def lookup", "def find"))
    bot.script([call("find", order="42"), "It was delivered."])
    bot.eval(LOOKUPS.replace('called = [{ tool = "lookup", args = { order = "42" } }]', ""))
    ran = bot.run("--drift")
    assert ran.code == 0
    assert "drift\tlookups\tforty-two\ttools\tlookup\tfind" in ran.out
    assert "tool lookup is now called find" in ran.out


def test_a_call_that_no_recorded_one_fits_does_not_end_the_run(bot: EvalWorkspace) -> None:
    bot.script([call("count"), "It was delivered."])
    bot.eval(LOOKUPS.replace('called = [{ tool = "lookup", args = { order = "42" } }]', ""))
    ran = bot.run("--drift")
    assert (ran.code, "drift\tlookups\tforty-two\ttools\tlookup\tcount" in ran.out) == (0, True)


def test_an_update_is_shown_and_done_only_when_told(bot: EvalWorkspace) -> None:
    before = bot.cassette().read_bytes()
    assert "no recording would change" in bot.run("--update").err
    bot.script(HINTED)
    ran = bot.run("--update")
    assert ran.code == 0
    assert "update\tlookups\tforty-two\t1 new in the place of 1 runs, not done" in ran.out
    assert "1 recording would change: add --yes" in ran.err
    assert bot.cassette().read_bytes() == before
    assert bot.run("--update", "--json").json()["cases"][0]["update"]["written"] is False
    assert bot.cassette().read_bytes() == before
    ran = bot.run("--update", "--yes")
    assert (ran.code, "1 recording changed" in ran.err) == (0, True)
    assert bot.run("--drift", "--strict").code == 0
    (bot.agent / "script.json").unlink()
    assert bot.run("--replay", "--strict").code == 0


def test_no_update_while_a_gate_fails(bot: EvalWorkspace) -> None:
    before = bot.cassette().read_bytes()
    bot.eval('[[cases]]\nlabel = "never"\ninput = "hi"\n', "other")
    bot.run("other", "--record")
    bot.eval('[[cases]]\nlabel = "never"\ninput = "hi"\n[cases.expect]\nmax_steps = 0\n', "other")
    bot.script(HINTED)
    ran = bot.run("--update", "--yes")
    assert (ran.code, "no recording is changed while a gate fails" in ran.err) == (1, True)
    assert bot.cassette().read_bytes() == before


def test_f52_an_update_of_a_flaky_case_keeps_the_known_good_ways(bot: EvalWorkspace) -> None:
    record_two_ways(bot)
    bot.script(LOOKED_UP)
    assert "no recording would change" in bot.run("--update", "--yes").err
    assert len(json.loads(bot.cassette().read_text())["runs"]) == 2


def test_a_stable_case_of_a_changed_agent_is_updated_so_that_it_replays(bot: EvalWorkspace) -> None:
    (bot.agent / "instructions.md").write_text("Be brief.")
    assert bot.run("--replay").code == 1
    assert bot.run("--update", "--yes").code == 0
    assert bot.run("--replay").code == 0


def test_options_that_belong_together(bot: EvalWorkspace) -> None:
    assert bot.run("--yes").code == 2
    assert bot.run("--update", "--record").code == 2


def test_f52_a_slow_decline_is_seen() -> None:
    assert trend_of([1 - number / 100 for number in range(8)]).declines
    assert not trend_of([1.0] * 20).declines
    assert not trend_of([1.0, 0.9] * 10).declines
    assert not trend_of([0.9 + number / 100 for number in range(8)]).declines
    assert not trend_of([1.0, 0.9]).declines
    assert trend_of([0.95, *(1 - number / 50 + (-1) ** number * 0.02 for number in range(20))]).declines
    assert len(trend_of([1.0] * 50).values) == WINDOW


def test_f52_eight_recordings_each_a_little_lower_are_a_decline() -> None:
    cases: dict[str, ScoredCase] = {}
    for _ in range(8):
        cases = after(cases, {"a": Scored(0.99, "drifted")}, "2026-01-31T09:30:00+00:00")
        cases = after(cases, {"a": Scored(0.99, "drifted", is_recording=True)}, "2026-01-31T09:30:00+00:00")
    assert trend_of(cases["a"].levels).declines
    assert cases["a"].levels[-1] == pytest.approx(0.99**8)
    # A recording that is quite another one begins anew.
    assert after(cases, {"a": Scored(0.5, "drifted", is_recording=True)}, "")["a"] == ScoredCase()


def test_what_is_remembered_is_bounded() -> None:
    cases: dict[str, ScoredCase] = {f"old {number}": ScoredCase() for number in range(CASES_KEPT)}
    for _ in range(RUNS_KEPT + 5):
        cases = after(cases, {"a": Scored(1.0, "stable")}, "")
    assert (len(cases["a"].runs), len(cases), "old 0" in cases) == (RUNS_KEPT, CASES_KEPT, False)


def test_the_trend_is_shown(bot: EvalWorkspace) -> None:
    assert bot.run("--trend").code == 8
    bot.run("--drift")
    bot.script(HINTED)
    ran = bot.run("--drift", "--trend")
    assert "trend\tlookups\tforty-two\t\t1.000 0.750" in ran.out
    ran = bot.run("--trend", "--json")
    case = ran.json()["cases"][0]
    assert (case["trend"]["similarity"], case["runs"][1]["verdict"]) == ([1.0, 0.75], "drifted")
    assert ran.json()["runsKept"] == RUNS_KEPT
    assert "the newest 50 drift runs of a case are kept" in bot.run("--trend").err
    assert bot.run("other", "--trend").code == 8


def test_a_terminal_shows_the_picture_and_the_trend(
    bot: EvalWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "120")
    bot.script([call("count"), *HINTED])
    bot.eval(LOOKUPS.replace("max_steps", "# max_steps"))
    bot.run("--drift")
    for width, line in (("120", 'lookup {"order": "42"}'), ("60", '- lookup {"order": "42"}')):
        monkeypatch.setenv("COLUMNS", width)
        ran = bot.run("--drift", "--trend")
        assert "lookups/forty-two parts at step 1, similarity 0.50" in ran.out
        assert line in ran.out
        assert "count {}" in ran.out
        assert "██" in ran.out
