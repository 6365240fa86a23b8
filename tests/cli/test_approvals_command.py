from __future__ import annotations

from pathlib import Path

import pytest
from bot_workspace import PAYMENT, TRIP, BotWorkspace

from lousho_cli import FileStore
from lousho_cli.execution.records import ApprovalDecision
from lousho_cli.execution.sync import run_sync


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BotWorkspace:
    monkeypatch.chdir(tmp_path)
    return BotWorkspace(tmp_path, capsys)


def decide(bot: BotWorkspace, approval_id: str, approved: bool) -> None:
    approvals = FileStore(bot.home, agent="bot").approvals
    decision = ApprovalDecision(id=approval_id, approved=approved, by="ann")
    run_sync(lambda: approvals.decide(approval_id, decision))


def test_what_waits_is_listed_oldest_first(bot: BotWorkspace) -> None:
    first = bot.play("z", PAYMENT)
    second = bot.play("a", PAYMENT, agent="other")
    bot.play("trip", TRIP)
    listed = bot.run("approvals", "--json").json()["approvals"]
    assert [each["id"] for each in listed] == [first.approval_id, second.approval_id]
    created = listed[0].pop("createdAt")
    assert created <= listed[1]["createdAt"]
    assert listed[0] == {
        "id": first.approval_id, "sessionId": "z", "agent": "bot", "toolName": "pay", "toolCallId": "pay1",
        "args": {"amount": 5, "to": "Ann"}, "kind": "needs-approval",
    }  # fmt: skip
    only = bot.run("approvals", "-a", "other", "--json").json()["approvals"]
    assert [each["sessionId"] for each in only] == ["a"]


def test_in_a_pipe_each_request_is_one_line_of_fields(bot: BotWorkspace) -> None:
    paused = bot.play("money", PAYMENT)
    fields = bot.run("approvals").out.rstrip("\n").split("\t")
    assert fields[:4] == [paused.approval_id, "money", "bot", "pay"]
    assert fields[5:] == ['{"amount": 5, "to": "Ann"}', "needs-approval"]


@pytest.mark.parametrize("approved", [True, False])
def test_a_decided_request_waits_no_more(bot: BotWorkspace, approved: bool) -> None:
    paused = bot.play("money", PAYMENT)
    other = bot.play("more", PAYMENT)
    decide(bot, str(paused.approval_id), approved)
    listed = bot.run("approvals", "--json").json()["approvals"]
    assert [each["id"] for each in listed] == [other.approval_id]


def test_a_lost_request_file_is_made_up_for_by_the_session(bot: BotWorkspace) -> None:
    paused = bot.play("money", PAYMENT)
    before = bot.run("approvals", "--json").json()
    (bot.agent / "approvals" / f"{paused.approval_id}.json").unlink()
    assert bot.run("approvals", "--json").json() == before != {"approvals": []}


def test_nothing_waits_for_a_deleted_session(bot: BotWorkspace) -> None:
    bot.play("money", PAYMENT)
    bot.run("delete", "money", "--yes")
    ran = bot.run("approvals", "--json")
    assert (ran.code, ran.json()) == (0, {"approvals": []})


def test_what_is_damaged_is_reported_and_hides_nothing(bot: BotWorkspace) -> None:
    paused = bot.play("money", PAYMENT)
    bot.play("broken", PAYMENT)
    bot.damage("broken")
    (bot.agent / "approvals" / f"{paused.approval_id}~decision.json").write_text("{")
    ran = bot.run("approvals", "--json")
    assert ran.code == 0
    assert [each["id"] for each in ran.json()["approvals"]] == [paused.approval_id]
    assert ran.err.count("[LOUSHO_SESSION_FILE_CORRUPT]") == 2
