"""Sessions that layout version 1 has written load, go on, fork and are listed, in every store."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from make_v1 import SESSIONS, V1, Crew, Data, DictKV, Store, json_of, model

from lousho_cli import (
    AgentExecutor,
    ApprovalDecision,
    ExecutionResult,
    FileStore,
    KVStore,
    Message,
    SessionAwaitingApprovalError,
    SqliteStore,
    resume_after_approval_sync,
)
from lousho_cli.cli import app
from lousho_cli.execution.executor import get_checkpoint_history

KINDS = ("file", "sqlite", "kv")
STATUSES = {
    "finished": "finished", "open": "in-progress", "paused": "awaiting-approval",
    "decided": "awaiting-approval", "paid": "finished", "inside": "awaiting-approval", "Ann: ü": "finished",
    "finished.fork-1": "in-progress",
}  # fmt: skip
EXPECTED: Data = json.loads((V1 / "expected.json").read_text(encoding="utf-8"))


class Golden:
    """A copy of one store's files, opened by today's code.

    Attributes:
        expected: what was stored, as the code of that time read it.
        crew: today's agents and what their tools did.
    """

    def __init__(self, kind: str, root: Path) -> None:
        self.root = root
        self.expected: Data = EXPECTED[kind]
        self.crew = Crew()
        self.store = _open(kind, root)
        self.model = model()

    def run(self, name: str, session: str, input: str | None = None) -> ExecutionResult:
        return AgentExecutor.execute_sync(
            agent=self.crew.agent(name), input=input, provider=self.model, session_id=session,
            checkpoint_store=self.store.checkpoints, approval_store=self.store.approvals,
            on_agent_drift="error",
        )  # fmt: skip

    def decide(self, name: str, session: str, approved: bool = True) -> ExecutionResult:
        return resume_after_approval_sync(
            ApprovalDecision(id=self.approval_id(session), approved=approved), self.store.approvals, None,
            self.model, {"agent": self.crew.agent(name), "on_agent_drift": "error"}, self.store.checkpoints,
        )  # fmt: skip

    def load(self, session: str) -> Data:
        loaded = asyncio.run(self.store.checkpoints.load(session))
        assert loaded is not None
        return json_of(loaded)

    def history(self, session: str) -> list[Data]:
        """Newest first."""
        entries = asyncio.run(get_checkpoint_history(self.store.checkpoints, session))
        return [
            {"seq": each.seq, "step": each.step, "status": each.status, "savedAt": each.saved_at,
             "messages": json_of(each.checkpoint)["messages"]}
            for each in entries or ()
        ]  # fmt: skip

    def approval_id(self, session: str) -> str:
        return str(self.expected["sessions"][session]["checkpoint"]["approvalId"])


def _open(kind: str, root: Path) -> Store:
    if kind == "file":
        shutil.copytree(V1 / "workspace", root / ".lousho")
        return FileStore(root / ".lousho", "bot")
    if kind == "kv":
        return KVStore(DictKV(json.loads((V1 / "kv.json").read_text(encoding="utf-8"))))
    with closing(sqlite3.connect(root / "sessions.db")) as connection:
        connection.executescript((V1 / "sqlite.sql").read_text(encoding="utf-8"))
    return SqliteStore(root / "sessions.db")


@pytest.fixture(params=KINDS)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    return Golden(request.param, tmp_path)


def contains(whole: Any, part: Any) -> bool:
    """Whether all that `part` says is said by `whole`, which may say more."""
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(
            key in whole and contains(whole[key], value) for key, value in part.items()
        )
    if isinstance(part, list):
        return (
            isinstance(whole, list)
            and len(whole) == len(part)
            and all(contains(a, b) for a, b in zip(whole, part, strict=True))
        )
    return bool(whole == part)


def results(messages: Sequence[Message]) -> Data:
    return {str(m.tool_call_id): json.loads(str(m.content)) for m in messages if m.role == "tool"}


def said(messages: Sequence[Message]) -> list[Any]:
    return [message.content for message in messages if message.role == "user"]


@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_loads_as_it_was_stored(golden: Golden, session: str) -> None:
    expected = golden.expected["sessions"][session]
    loaded = golden.load(session)
    assert loaded["messages"] == expected["checkpoint"]["messages"]
    assert loaded["status"] == STATUSES[session]
    assert contains(loaded, expected["checkpoint"])
    assert golden.history(session) == expected["history"]


def test_what_waits_is_listed(golden: Golden) -> None:
    waiting = [json_of(each.pending) for each in asyncio.run(golden.store.approvals.list())]
    assert contains(sorted(waiting, key=lambda each: str(each["sessionId"])), golden.expected["approvals"])
    assert {each["sessionId"] for each in waiting} == {"paused", "inside"}
    decided = asyncio.run(golden.store.approvals.list(status="approved"))
    assert [each.pending.session_id for each in decided] == ["decided"]
    used = asyncio.run(golden.store.approvals.list(status="consumed"))
    (paid,) = used
    assert paid.decision is not None
    assert (paid.pending.session_id, paid.decision.by) == ("paid", "ann")
    assert paid.decision.arguments == {"amount": 3}


def test_a_finished_session_goes_on(golden: Golden) -> None:
    before = golden.expected["sessions"]["finished"]
    done = golden.run("bot", "finished", "more")
    assert (done.text, done.steps, golden.crew.did) == ("and more", 1, [])
    loaded = golden.load("finished")
    assert loaded["messages"][:-2] == before["checkpoint"]["messages"]
    assert golden.history("finished")[2:] == before["history"]


def test_a_result_out_of_order_is_not_run_again(golden: Golden) -> None:
    done = golden.run("bot", "open")
    assert (done.text, golden.crew.did) == ("all found", ["slow 1"])
    assert list(results(done.messages).items()) == [("c1", "slow result 1"), ("c2", {"n": 2, "text": "é"})]
    assert (done.usage.input_tokens, done.usage.output_tokens) == (250, 25)
    assert len(golden.model.calls) == 1
    turn = golden.model.calls[0].messages[2].model_dump(mode="json", by_alias=True)
    assert (turn["reasoning"], turn["signature"]) == ("two things", "c2ln")


def test_a_waiting_session_is_decided(golden: Golden) -> None:
    with pytest.raises(SessionAwaitingApprovalError):
        golden.run("payer", "paused", "hurry")
    done = golden.decide("payer", "paused")
    assert (done.text, golden.crew.did) == ("paid and checked", ["pay 5", "quick 9"])
    assert done.usage.model_calls == 3


def test_a_waiting_session_is_rejected(golden: Golden) -> None:
    done = golden.decide("payer", "paused", approved=False)
    assert (results(done.messages)["p1"]["kind"], golden.crew.did) == ("rejected", ["quick 9"])


def test_a_decision_that_nobody_used_is_used(golden: Golden) -> None:
    done = golden.run("payer", "decided")
    assert (done.text, golden.crew.did) == ("paid and checked", ["pay 5", "quick 9"])


def test_a_session_that_waits_inside_a_sub_agent_goes_on_there(golden: Golden) -> None:
    done = golden.decide("lead", "inside")
    assert (done.text, results(done.messages)) == ("the soup is served", {"d1": "soup"})
    assert golden.crew.did == ["pay 1"]
    assert len(golden.model.calls) == 2


def test_a_fork_goes_on(golden: Golden) -> None:
    done = golden.run("bot", "finished.fork-1")
    assert (done.text, golden.crew.did) == ("all found", [])
    assert results(done.messages) == {"c1": "slow result 1", "c2": "another"}
    assert said(done.messages) == ["go, bot", "and hurry"]


@pytest.mark.parametrize("session", SESSIONS)
def test_every_kept_save_forks_and_the_source_stays_as_it_is(golden: Golden, session: str) -> None:
    before = golden.load(session)
    for entry in golden.expected["sessions"][session]["history"]:
        forked = AgentExecutor.fork_sync(
            session_id=session, at=entry["seq"], checkpoint_store=golden.store.checkpoints
        )
        loaded = golden.load(forked.session_id)
        assert (forked.step, loaded["status"]) == (entry["step"], "in-progress")
        assert loaded["messages"] == entry["messages"]
        assert loaded["engine"]["parent"]["seq"] == entry["seq"]
    assert golden.load(session) == before
    assert golden.history(session) == golden.expected["sessions"][session]["history"]


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_the_command_line_lists_and_shows_them(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = Golden(kind, tmp_path)
    monkeypatch.chdir(tmp_path)
    if kind == "sqlite":
        (tmp_path / ".lousho").mkdir()
        (tmp_path / ".lousho" / "config.toml").write_text('store = "sqlite:sessions.db"\n')
        shutil.copy(tmp_path / "sessions.db", tmp_path / ".lousho" / "sessions.db")

    def show(*words: str) -> Any:
        capfd.readouterr()
        code = app.run((*words, "--json"))
        out, err = capfd.readouterr()
        assert code == 0, (out, err)
        return json.loads(out)

    listed = {each["sessionId"]: each["status"] for each in show("sessions")["sessions"]}
    assert listed == STATUSES
    for session in SESSIONS:
        expected = golden.expected["sessions"][session]
        assert [
            (each["seq"], each["step"], each["status"], each["savedAt"], each["messages"])
            for each in show("history", session)["entries"]
        ] == [
            (each["seq"], each["step"], each["status"], each["savedAt"], len(each["messages"]))
            for each in expected["history"]
        ]
        assert show("show", session)["messages"] == expected["checkpoint"]["messages"]
    approvals = show("approvals")["approvals"]
    assert {each["id"] for each in approvals} == {golden.approval_id("paused"), golden.approval_id("inside")}
    assert show("diff", "finished", "finished.fork-1")["divergedAt"] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="the bytes of a text file may differ there")
def test_reading_changes_no_file(tmp_path: Path) -> None:
    golden = Golden("file", tmp_path)

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    before = files()
    for session in SESSIONS:
        golden.load(session)
        golden.history(session)
    asyncio.run(golden.store.approvals.list(status=None))
    assert files() == before
