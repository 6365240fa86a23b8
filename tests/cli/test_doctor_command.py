"""`lousho doctor` on real files, damaged in each way a disk, a crash or a hand can."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from bot_workspace import PAYMENT, TRIP, BotWorkspace
from damaged_files import (
    HARMLESS,
    REPAIRED,
    UNREPAIRED,
    approvals,
    flip_a_bit,
    history,
    lines,
    lose_history,
    make_a_pipe,
    open_a_folder,
    open_to_others,
    tear_the_end,
)

from lousho_cli.doctor.installation import EXTRAS
from lousho_cli.stores.findings import SEVERITIES
from lousho_cli.stores.folder import AgentFolder
from lousho_cli.stores.lease import Lease
from lousho_cli.trust import trust

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions and pipes of POSIX")


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BotWorkspace:
    """A finished session `s` of six saves, a fork of it, and one that waits for an approval."""
    monkeypatch.chdir(tmp_path)
    workspace = BotWorkspace(tmp_path, capsys)
    (workspace.agent / "agent.toml").write_text('model = "demo"\n')
    workspace.play("s", TRIP)
    workspace.play("paused", PAYMENT)
    assert workspace.run("fork", "s", "--from-step", "1").code == 0
    return workspace


def examined(bot: BotWorkspace, *words: str) -> tuple[int, dict[str, Any]]:
    ran = bot.run("doctor", "--json", *words)
    assert "Traceback" not in ran.err
    return ran.code, ran.json()


def found(data: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return [(each["code"], each["severity"], each.get("sessionId")) for each in data["problems"]]


def contents(bot: BotWorkspace) -> dict[str, tuple[int, bytes]]:
    return {name: each for name, each in bot.state_files().items() if "/locks/" not in name}


def test_a_healthy_workspace_has_no_problems_and_is_not_written_to(bot: BotWorkspace) -> None:
    before = bot.state_files()
    code, data = examined(bot)
    assert (code, data["ok"], data["problems"]) == (0, True, [])
    assert data["counts"] == {
        "errors": 0, "warnings": 0, "notices": 0, "sessions": 3, "running": 0, "repairable": 0,
    }  # fmt: skip
    assert bot.state_files() == before
    assert {each["area"] for each in data["checks"]} == {
        "installation", "terminal", "workspace", "agents", "store",
    }  # fmt: skip


@pytest.mark.parametrize("name", UNREPAIRED)
def test_what_only_a_human_can_mend_is_named_and_left_alone(bot: BotWorkspace, name: str) -> None:
    damage, wanted = UNREPAIRED[name]
    damage(bot, "s")
    before = contents(bot)
    code, data = examined(bot)
    assert code == 7
    errors = [each for each in data["problems"] if each["severity"] == "error"]
    assert [each["code"] for each in errors] == [wanted]
    assert errors[0]["sessionId"] == ("taken" if wanted == "wrong-session" else "s")
    assert errors[0]["path"].endswith(".jsonl")
    assert errors[0]["fix"]
    assert examined(bot, "--repair", "--yes")[0] == 7
    assert contents(bot) == before


@posix
def test_a_pipe_in_the_place_of_a_journal_does_not_stop_the_look(bot: BotWorkspace) -> None:
    make_a_pipe(bot, "s")
    code, data = examined(bot)
    assert (code, found(data)) == (7, [("not-a-file", "error", "s")])


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_harmless_is_said_and_is_no_error(bot: BotWorkspace, name: str) -> None:
    damage, wanted, severity = HARMLESS[name]
    damage(bot, "s")
    code, data = examined(bot)
    assert code == 0
    assert [(code, severity) for code, severity, _ in found(data)] == [(wanted, severity)]


@pytest.mark.parametrize("name", REPAIRED)
def test_a_damaged_journal_keeps_what_can_be_kept(bot: BotWorkspace, name: str) -> None:
    damage, seq = REPAIRED[name]
    whole = lines(bot, "s")
    kept = seq or len(whole) - 1
    damage(bot, "s")
    damaged = bot.journal("s").read_bytes()
    others = {name: each for name, each in contents(bot).items() if "s.json" not in Path(name).name}
    assert found(examined(bot)[1]) == [("journal-damaged", "error", "s")]

    code, data = examined(bot, "--repair", "--dry-run")
    assert (code, [each["outcome"] for each in data["repairs"]]) == (7, ["planned"])
    assert bot.journal("s").read_bytes() == damaged

    code, data = examined(bot, "--repair", "--yes")
    assert (code, found(data)) == (0, [("kept-aside", "notice", "s")])
    (repair,) = data["repairs"]
    assert (repair["outcome"], repair["kept"]["saves"]) == ("repaired", kept)
    aside = Path(repair["aside"])
    assert (aside.name, aside.read_bytes()) == ("s.jsonl.damaged-1", damaged)
    if sys.platform != "win32":
        assert aside.stat().st_mode & 0o777 == 0o600
    assert lines(bot, "s")[1:] == whole[1 : kept + 1]
    newest = bot.run("history", "s", "--json").json()["entries"][0]
    assert (newest["seq"], newest["messages"]) == (kept, repair["kept"]["messages"])
    after = {name: each for name, each in contents(bot).items() if "s.json" not in Path(name).name}
    assert after == others
    listed = bot.run("sessions", "--json").json()["sessions"]
    assert {each["sessionId"] for each in listed} == {"s", "s.fork-1", "paused"}

    again = contents(bot)
    assert examined(bot, "--repair", "--yes")[1]["repairs"] == []
    assert contents(bot) == again


def test_a_repair_says_what_is_lost(bot: BotWorkspace) -> None:
    flip_a_bit(bot, "s")
    damaged = lines(bot, "s")
    start, end = len(b"".join(damaged[:4])), len(b"".join(damaged[:5])) - 1
    (repair,) = examined(bot, "--repair", "--yes")[1]["repairs"]
    assert repair["kept"] == {"saves": 3, "step": 1, "messages": 4}
    assert repair["lost"]["bytes"] == [[start, end]]
    assert repair["lost"]["missingSaves"] == [4]
    assert repair["lost"]["droppedSaves"] == list(range(5, len(damaged)))


def test_a_repaired_session_runs_on(bot: BotWorkspace) -> None:
    flip_a_bit(bot, "s")
    examined(bot, "--repair", "--yes")
    result = bot.play("s", TRIP, input="")
    assert result.finish_reason == "stop"
    assert examined(bot, "s")[0] == 0


def test_a_fork_whose_first_line_is_lost_keeps_its_parent(bot: BotWorkspace) -> None:
    before = bot.journal("s.fork-1").read_bytes()
    bot.damage("s.fork-1")
    lose_history(bot, "s.fork-1")
    assert examined(bot, "--repair", "--yes", "s.fork-1")[0] == 0
    assert bot.journal("s.fork-1").read_bytes() == before


def test_two_saves_of_one_number_are_not_gone_on_from(bot: BotWorkspace) -> None:
    """Two runners wrote: what follows may go on from either."""
    bot.play("other", ["a", "b"], input="x")
    whole = lines(bot, "s")
    bot.journal("s").write_bytes(b"".join([*whole[:4], lines(bot, "other")[2], *whole[4:]]))
    (repair,) = examined(bot, "--repair", "--yes")[1]["repairs"]
    assert repair["kept"]["saves"] == 3


def test_a_session_that_is_being_run_is_running_and_not_repaired(bot: BotWorkspace) -> None:
    flip_a_bit(bot, "s")
    tear_the_end(bot, "paused")
    folder = AgentFolder(bot.agent, "bot")
    leases = [Lease(folder, "s"), Lease(folder, "paused")]
    try:
        code, data = examined(bot)
        assert (code, data["counts"]["running"]) == (7, 2)
        assert found(data) == [("journal-damaged", "error", "s")]
        code, data = examined(bot, "--repair", "--yes")
        assert [(each["outcome"], each["sessionId"]) for each in data["repairs"]] == [("skipped", "s")]
        assert code == 7
    finally:
        for lease in leases:
            lease.release()


def test_only_the_sessions_named_are_looked_at_and_repaired(bot: BotWorkspace) -> None:
    flip_a_bit(bot, "s")
    bot.damage("paused")
    untouched = bot.journal("paused").read_bytes()
    code, data = examined(bot, "--repair", "--yes", "s")
    assert code == 0
    assert {each["sessionId"] for each in data["repairs"]} == {"s"}
    assert bot.journal("paused").read_bytes() == untouched
    assert examined(bot, "paused")[0] == 7
    missing = bot.run("doctor", "nowhere", "--json")
    assert (missing.code, missing.json()["error"]["code"]) == (4, "LOUSHO_SESSION_NOT_FOUND")


def test_history_leftovers_and_requests_are_mended(bot: BotWorkspace) -> None:
    before = bot.journal("s").read_bytes()
    mended = ("history damaged", "temporary file", "request without session")
    for name in mended:
        HARMLESS[name][0](bot, "s")
    code, data = examined(bot, "--repair", "--yes")
    assert (code, data["problems"], len(data["repairs"])) == (0, [], len(mended))
    assert bot.journal("s").read_bytes() == before
    assert json.loads(history(bot, "s").read_text())["sessionId"] == "s"


@posix
def test_permissions_are_a_warning_and_are_set(bot: BotWorkspace) -> None:
    open_to_others(bot, "s")
    open_a_folder(bot, "s")
    code, data = examined(bot)
    assert (code, {each["severity"] for each in data["problems"]}) == (0, {"warning"})
    assert len(data["problems"]) == 2
    examined(bot, "--repair", "--yes")
    assert bot.journal("s").stat().st_mode & 0o777 == 0o600
    assert bot.journal("s").parent.stat().st_mode & 0o777 == 0o700


def test_a_decision_that_cannot_be_read_is_an_error_and_can_be_made_again(bot: BotWorkspace) -> None:
    (pending,) = bot.run("approvals", "--json").json()["approvals"]
    assert bot.run("approve", pending["id"], "--reject", "--no-run").code == 0
    decision = approvals(bot) / f"{pending['id']}~decision.json"
    decision.write_text("{")
    code, data = examined(bot)
    assert (code, found(data)) == (7, [("approval-damaged", "error", "paused")])
    code, data = examined(bot, "--repair", "--yes")
    assert (code, found(data)) == (0, [("kept-aside", "notice", None)])
    assert [each["id"] for each in bot.run("approvals", "--json").json()["approvals"]] == [pending["id"]]


def test_a_damaged_request_is_read_from_its_session(bot: BotWorkspace) -> None:
    (pending,) = bot.run("approvals", "--json").json()["approvals"]
    (approvals(bot) / f"{pending['id']}.json").write_text("")
    code, data = examined(bot)
    assert (code, found(data)) == (0, [("request-damaged", "notice", "paused")])
    examined(bot, "--repair", "--yes")
    assert [each["id"] for each in bot.run("approvals", "--json").json()["approvals"]] == [pending["id"]]


def test_without_a_terminal_a_repair_needs_a_yes(bot: BotWorkspace) -> None:
    flip_a_bit(bot, "s")
    before = contents(bot)
    ran = bot.run("doctor", "--repair")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert contents(bot) == before
    assert bot.run("doctor", "--yes").code == 2


def test_a_wrong_setting_is_exit_2_and_stored_data_is_not_looked_at(bot: BotWorkspace) -> None:
    (bot.home / "config.toml").write_text("historylimit = 3\n")
    code, data = examined(bot)
    assert (code, data["ok"]) == (2, False)
    wrong = [each for each in data["checks"] if each["status"] == "error"]
    assert [(each["name"], each["code"]) for each in wrong] == [("settings", "LOUSHO_CONFIG_INVALID")]
    assert data["checks"][-1]["status"] == "skipped"


def test_agents_are_loaded_only_in_a_trusted_workspace(bot: BotWorkspace) -> None:
    ran = bot.root / "ran"
    (bot.agent / "tools").mkdir()
    (bot.agent / "tools" / "t.py").write_text(f"print('hi'); open({str(ran)!r}, 'w').close()\n")
    code, data = examined(bot)
    agent = next(each for each in data["checks"] if each["area"] == "agents")
    assert (code, agent["status"], ran.exists()) == (0, "skipped", False)
    trust(bot.home)
    code, data = examined(bot)
    agent = next(each for each in data["checks"] if each["area"] == "agents")
    assert (code, agent["status"], ran.exists()) == (0, "ok", True)
    (bot.agent / "tools" / "t.py").write_text("import nothing_of_that_name\n")
    assert examined(bot)[0] == 2


def test_a_key_is_never_shown(bot: BotWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ran = bot.run("doctor", "--json", "--verbose")
    assert "sk-secret" not in ran.out + ran.err
    (key,) = (each for each in ran.json()["checks"] if each["name"] == "OPENAI_API_KEY")
    assert key["status"] == "ok"


def test_without_a_workspace_the_installation_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bot: BotWorkspace
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    (tmp_path / ".lousho").rename(tmp_path / "elsewhere")
    code, data = examined(bot)
    assert (code, data["ok"]) == (0, True)
    assert data["checks"][-1]["status"] == "absent"
    assert bot.run("doctor", "--repair", "--yes").code == 2


def test_a_pipe_gets_a_line_for_each_check_problem_and_repair(bot: BotWorkspace) -> None:
    flip_a_bit(bot, "s")
    rows = [line.split("\t") for line in bot.run("doctor").out.splitlines()]
    assert {row[0]: len(row) for row in rows} == {"check": 6, "problem": 8}
    rows = [line.split("\t") for line in bot.run("doctor", "--repair", "--yes", "-q").out.splitlines()]
    assert [(row[0], row[1], len(row)) for row in rows] == [("repair", "repaired", 7)]


def test_every_extra_is_known() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"dev"}


def test_every_code_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
    assert [code for code in SEVERITIES if f"| `{code}` | {SEVERITIES[code]} |" not in text] == []


def test_a_workspace_that_is_named_is_looked_at(bot: BotWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.path.sep)
    code, data = examined(bot, "--workspace", str(bot.root))
    assert (code, data["counts"]["sessions"]) == (0, 3)


def test_a_pause_behind_calls_that_left_a_mark_is_no_damage(bot: BotWorkspace) -> None:
    (bot.agent / "tools").mkdir(exist_ok=True)
    (bot.agent / "tools" / "more.py").write_text(
        "from lousho_cli import tool\n"
        '@tool(on_interrupt="ask")\n'
        'def once() -> str:\n    "once"\n    return "done"\n'
        "@tool(needs_approval=True)\n"
        'def gated() -> str:\n    "gated"\n    return "done"\n'
    )
    calls: list[dict[str, Any]] = [
        {"name": name, "id": f"c_{name}", "args": {}} for name in ("once", "gated")
    ]
    (bot.agent / "marks.json").write_text(json.dumps([{"tool_calls": calls}, "end"]))
    assert bot.run("run", "marked", "go", "--model", "script:marks.json", "--trust").code == 3
    code, data = examined(bot, "marked")
    assert (code, found(data)) == (0, [])
