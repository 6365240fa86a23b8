"""Data of older versions loads, goes on and is upgraded without loss; newer data is refused (R3.15)."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from rules_kit import Data, check_sent, check_transcript, dump, kinds, results, roles, said

from lousho_cli import (
    Agent,
    AgentExecutor,
    ApprovalDecision,
    Checkpoint,
    ExecutionResult,
    FileStore,
    HistoryEntry,
    SDKError,
    Tool,
    compare_trajectories,
    resume_after_approval_sync,
    tool,
)
from lousho_cli.cli import app
from lousho_cli.errors import StorageError
from lousho_cli.stores.ids import encode_id
from lousho_cli.testing import ScriptedModel

SAMPLES = Path(__file__).parent.parent / "golden" / "ts" / "workspace"
SESSIONS = ("old", "bot:1", "paused")
OPENING = "Refund order 42 and mail the customer"
MAILED = {"to": "ann@example.com"}
WINDOWS = sys.platform == "win32"

TOOLS = """\
from pathlib import Path
from lousho_cli import tool

def note(line: str) -> None:
    with (Path(__file__).parents[4] / "ledger.txt").open("a") as ledger:
        ledger.write(line + "\\n")

@tool
def lookup_order(orderId: str) -> dict[str, str]:
    "Look an order up."
    note(f"lookup_order {orderId}")
    return {"status": "delivered"}

@tool(needs_approval=GATED)
def send_mail(to: str = "everybody") -> str:
    "Send a mail."
    note(f"send_mail {to}")
    return f"mailed {to}"

@tool
def close_ticket() -> str:
    "Close the ticket."
    note("close_ticket")
    return "closed"
"""


class Ran:
    """What a command line did."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def json(self, code: int = 0) -> Any:
        assert self.code == code, (self.code, self.out, self.err)
        return json.loads(self.out)


class Older:
    """A workspace with the old sessions of agent `bot`, and today's agent.

    Attributes:
        did: what the tools of the Python agent did.
    """

    def __init__(self, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.home = root / ".lousho"
        self.bot = self.home / "agents" / "bot"
        self.did: list[str] = []
        self.model = ScriptedModel([])
        self._capfd = capfd
        shutil.copytree(SAMPLES, self.home)
        if not WINDOWS:
            self.rename("bot:1", "bot:1")

    def rename(self, session: str, name: str) -> None:
        """Give the files of a session another name."""
        for folder in ("checkpoints", "checkpoint-history"):
            path = self.bot / folder / f"{encode_id(session)}.json"
            if path.exists():
                path.rename(path.with_name(f"{name}.json"))

    def checkpoint(self, session: str) -> Path:
        raw = self.bot / "checkpoints" / f"{session}.json"
        return raw if raw.exists() else raw.with_name(f"{encode_id(session)}.json")

    def install(self, *, gated: bool = False, reply: str = "all done") -> None:
        """The agent's own files, for the command line. The model's second turn is its last."""
        (self.bot / "tools").mkdir()
        (self.bot / "agent.toml").write_text('model = "script:script.json"\n')
        (self.bot / "instructions.md").write_text("Help with orders.\n")
        (self.bot / "script.json").write_text(json.dumps(["never", reply, "and more"]))
        (self.bot / "tools" / "tools.py").write_text(TOOLS.replace("GATED", str(gated)))

    def run(self, *words: str) -> Ran:
        self._capfd.readouterr()
        code = app.run(words)
        captured = self._capfd.readouterr()
        return Ran(code, captured.out, captured.err)

    def json(self, *words: str, code: int = 0) -> Any:
        return self.run(*words, "--json").json(code)

    def ledger(self) -> list[str]:
        path = self.root / "ledger.txt"
        return path.read_text().splitlines() if path.exists() else []

    def files(self) -> dict[str, tuple[int, bytes]]:
        found = (path for path in sorted(self.home.rglob("*")) if path.is_file())
        return {
            str(path.relative_to(self.home)): (path.stat().st_mtime_ns, path.read_bytes()) for path in found
        }

    def session_bytes(self, session: str) -> dict[str, bytes]:
        names = {f"{session}.json", f"{encode_id(session)}.json", f"{encode_id(session)}.jsonl"}
        return {name: data for name, (_, data) in self.files().items() if Path(name).name in names}

    # Through the Python API

    def store(self, limit: int = 50) -> FileStore:
        return FileStore(self.home, "bot", limit)

    def tools(self, gated: bool) -> list[Tool]:
        @tool
        def lookup_order(orderId: str) -> dict[str, str]:
            "Look an order up."
            self.did.append(f"lookup_order {orderId}")
            return {"status": "delivered"}

        @tool(needs_approval=gated)
        def send_mail(to: str = "everybody") -> str:
            "Send a mail."
            self.did.append(f"send_mail {to}")
            return f"mailed {to}"

        @tool
        def close_ticket() -> str:
            "Close the ticket."
            self.did.append("close_ticket")
            return "closed"

        return [lookup_order, send_mail, close_ticket]

    def agent(self, gated: bool = False) -> Agent:
        return Agent("bot", "Help with orders.", self.tools(gated))

    def execute(self, session: str, input: Any = None, *turns: Any, **options: Any) -> ExecutionResult:
        self.model = ScriptedModel(turns or ["all done"])
        store = self.store()
        return AgentExecutor.execute_sync(
            agent=self.agent(), input=input, provider=self.model, session_id=session,
            checkpoint_store=store.checkpoints, approval_store=store.approvals, **options,
        )  # fmt: skip

    def load(self, session: str) -> Checkpoint:
        found = asyncio.run(self.store().checkpoints.load(session))
        assert found is not None
        return found

    def history(self, session: str, limit: int = 50) -> list[HistoryEntry]:
        """Oldest first."""
        return list(asyncio.run(self.store(limit).checkpoints.history(session)))[::-1]

    def history_file(self, session: str) -> Any:
        return json.loads((self.bot / "checkpoint-history" / f"{encode_id(session)}.json").read_text())


@pytest.fixture
def older(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Older:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", "1")
    return Older(tmp_path, capfd)


def plain(checkpoint: Checkpoint) -> Data:
    """What a checkpoint says, without the engine's own numbers."""
    data: Data = checkpoint.model_dump(mode="json", by_alias=True, exclude_none=True)
    data.pop("engine", None)
    return data


# Reading


def test_a_checkpoint_without_a_status_is_in_progress(older: Older) -> None:
    loaded = older.load("old")
    assert (loaded.status, loaded.step_index, loaded.agent_id) == ("in-progress", 1, "bot")
    assert roles(loaded.messages) == ["system", "user", "assistant", "tool"]
    assert [each.id for each in loaded.tool_calls] == ["call_1", "call_2", "call_3"]
    usage = loaded.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (120, 30, 150)
    assert older.history("old") == []


def test_what_stands_behind_an_open_turn_is_queued(older: Older) -> None:
    loaded = older.load("bot:1")
    assert said(loaded.messages) == [OPENING]
    check_transcript(loaded.messages, open_end=True)
    assert loaded.business_state == {"ticket": 7}
    assert loaded.usage.cost_usd == 0.001


def test_the_saves_of_a_history_are_its_entries(older: Older) -> None:
    entries = older.history("bot:1")
    assert [(entry.seq, entry.step, entry.status, entry.saved_at) for entry in entries] == [
        (1, 1, "in-progress", "2026-10-01T08:00:00.000Z"),
        (2, 1, "in-progress", "2026-10-01T08:00:01.250Z"),
    ]
    assert [len(entry.checkpoint.messages) for entry in entries] == [3, 4]
    assert plain(entries[-1].checkpoint) == plain(older.load("bot:1"))
    assert [entry.seq for entry in older.history("bot:1", limit=1)] == [2]


def test_a_waiting_session_waits_for_its_approval(older: Older) -> None:
    loaded = older.load("paused")
    assert (loaded.status, loaded.approval_id) == ("awaiting-approval", "appr-1")
    (waiting,) = asyncio.run(older.store().approvals.list())
    pending = waiting.pending
    assert (pending.id, pending.session_id, pending.agent) == ("appr-1", "paused", "bot")
    assert (pending.tool_name, pending.tool_call_id, pending.args) == ("send_mail", "call_2", MAILED)
    assert not waiting.runs_later_calls
    snapshot = waiting.checkpoint()
    assert snapshot is not None
    assert dump(snapshot.messages) == dump(loaded.messages)


def test_the_commands_that_read_show_it_and_write_nothing(older: Older) -> None:
    before = older.files()
    sessions = {each["sessionId"]: each for each in older.json("sessions")["sessions"]}
    assert {name: each["status"] for name, each in sessions.items()} == {
        "old": "in-progress", "bot:1": "in-progress", "paused": "awaiting-approval",
    }  # fmt: skip
    assert {each["agent"] for each in sessions.values()} == {"bot"}
    assert older.json("history", "old")["entries"] == []
    assert [each["seq"] for each in older.json("history", "bot:1")["entries"]] == [2, 1]
    for session in SESSIONS:
        shown = older.json("show", session)
        assert (shown["sessionId"], shown["stepIndex"]) == (session, 1)
        assert shown["messages"][1]["content"] == OPENING
        assert older.run("show", session).code == 0
        assert older.run("history", session).code == 0
    assert older.json("show", "bot:1", "--at", "1")["messages"][-1]["role"] == "assistant"
    (waiting,) = older.json("approvals")["approvals"]
    assert (waiting["id"], waiting["sessionId"], waiting["agent"]) == ("appr-1", "paused", "bot")
    assert (waiting["toolName"], waiting["toolCallId"], waiting["args"]) == ("send_mail", "call_2", MAILED)
    for words in (("sessions",), ("approvals",), ("history", "bot:1", "--graph"), ("diff", "old", "bot:1")):
        assert older.run(*words).code == 0
    assert older.json("diff", "bot:1@1", "bot:1@2")["divergedAt"] == 1
    assert older.files() == before


def test_old_transcripts_compare(older: Older) -> None:
    same = compare_trajectories(older.load("old"), older.load("paused"))
    assert (same.diverged_at, [each.field for each in same.drift]) == (None, ["finishReason"])
    first, second = (entry.checkpoint for entry in older.history("bot:1"))
    assert compare_trajectories(first, second).diverged_at == 1


# Going on


def test_an_old_session_goes_on_with_exactly_the_open_calls(older: Older) -> None:
    done = older.execute("old", None, {"text": "all done", "usage": {"input_tokens": 10, "output_tokens": 1}})
    assert (done.text, done.finish_reason, done.steps) == ("all done", "stop", 2)
    assert sorted(older.did) == ["close_ticket", "send_mail ann@example.com"]
    assert results(done.messages) == {
        "call_1": {"status": "delivered"}, "call_2": "mailed ann@example.com", "call_3": "closed"
    }  # fmt: skip
    assert (done.usage.input_tokens, done.usage.output_tokens, done.usage.total_tokens) == (130, 31, 161)
    check_sent(older.model)


def test_queued_input_follows_the_results_once(older: Older) -> None:
    done = older.execute("bot:1", "and hurry")
    assert said(done.messages) == [OPENING, "and hurry"]
    assert roles(done.messages) == [
        "system", "user", "assistant", "tool", "tool", "tool", "user", "assistant"
    ]  # fmt: skip
    assert older.load("bot:1").business_state == {"ticket": 7}
    check_sent(older.model)


def test_input_that_repeats_the_opening_is_a_retry(older: Older) -> None:
    assert said(older.execute("old", OPENING).messages) == [OPENING]


def test_a_foreign_fingerprint_is_no_drift(older: Older, caplog: pytest.LogCaptureFixture) -> None:
    done = older.execute("bot:1", None, "all done", on_agent_drift="error")
    assert done.finish_reason == "stop"
    assert caplog.records == []


def test_old_sessions_go_on_by_command(older: Older) -> None:
    older.install()
    done = older.json("resume", "old")
    assert (done["text"], done["finishReason"], done["steps"]) == ("all done", "stop", 2)
    assert sorted(older.ledger()) == ["close_ticket", "send_mail ann@example.com"]
    again = older.json("run", "old", "thanks")
    assert (again["text"], again["steps"]) == ("and more", 1)
    assert older.json("resume", "bot:1")["text"] == "all done"
    assert older.run("resume", "old").code == 0
    assert len(older.ledger()) == 4


def test_a_waiting_session_refuses_a_message_and_stays_as_it_is(older: Older) -> None:
    older.install(gated=True)
    before = older.session_bytes("paused")
    refused = older.json("run", "paused", "hurry", code=3)
    assert refused["error"]["code"] == "LOUSHO_SESSION_AWAITING_APPROVAL"
    assert "appr-1" in refused["error"]["message"]
    assert (older.session_bytes("paused"), older.ledger()) == (before, [])


# Deciding


def results_shown(older: Older, session: str = "paused") -> list[tuple[str, str | None]]:
    """Each result's call, and the kind of its error."""
    messages = [each for each in older.json("show", session)["messages"] if each["role"] == "tool"]
    return [
        (each["toolCallId"], json.loads(each["content"])["kind"] if each.get("isError") else None)
        for each in messages
    ]


def test_approving_runs_the_call_and_not_the_later_ones(older: Older) -> None:
    older.install(gated=True)
    done = older.json("approve", "appr-1")
    assert (done["text"], done["finishReason"], done["sessionId"]) == ("all done", "stop", "paused")
    assert older.ledger() == ["send_mail ann@example.com"]
    assert results_shown(older) == [("call_1", None), ("call_2", None), ("call_3", "not-run")]
    assert older.json("approvals")["approvals"] == []
    assert (older.bot / "approvals" / "appr-1.json").exists()
    for words in (("approve", "appr-1"), ("approve", "appr-1", "--reject")):
        late = older.json(*words, code=4)
        assert late["error"]["code"] == "LOUSHO_APPROVAL_NOT_FOUND"
    assert older.ledger() == ["send_mail ann@example.com"]


def test_rejecting_runs_none_of_them(older: Older) -> None:
    older.install(gated=True)
    assert older.json("approve", "appr-1", "--reject", "--note", "not now")["text"] == "all done"
    assert older.ledger() == []
    assert results_shown(older) == [("call_1", None), ("call_2", "rejected"), ("call_3", "not-run")]


def test_a_recorded_decision_is_used_by_the_next_resume(older: Older) -> None:
    older.install(gated=True)
    assert older.json("approve", "appr-1", "--no-run")["status"] == "approved"
    assert older.ledger() == []
    older.json("run", "paused", "go on")
    assert older.ledger() == ["send_mail ann@example.com"]
    assert results_shown(older)[-1] == ("call_3", "not-run")
    assert said(older.load("paused").messages) == [OPENING, "go on"]


def test_edited_arguments_and_supplied_results_do_for_old_requests_too(older: Older) -> None:
    older.install(gated=True)
    older.json("approve", "appr-1", "--edit", '{"to": "bob@example.com"}')
    assert older.ledger() == ["send_mail bob@example.com"]


def test_a_supplied_result_does_for_an_old_request(older: Older) -> None:
    older.install(gated=True)
    older.json("approve", "appr-1", "--result", '"sent by hand"')
    assert older.ledger() == []
    assert results(older.load("paused").messages)["call_2"] == "sent by hand"
    assert results_shown(older)[-1] == ("call_3", "not-run")


def test_an_old_snapshot_goes_on_without_a_checkpoint_store(older: Older) -> None:
    before = older.session_bytes("paused")
    model = ScriptedModel(["all done"])
    done = resume_after_approval_sync(
        ApprovalDecision(id="appr-1", approved=True), older.store().approvals, None, model,
        {"agent": older.agent(gated=True)},
    )  # fmt: skip
    assert (done.text, kinds(done.messages)) == ("all done", [None, None, "not-run"])
    assert older.did == ["send_mail ann@example.com"]
    assert older.session_bytes("paused") == before
    check_sent(model)


def test_a_snapshot_that_names_the_later_calls_runs_them(older: Older) -> None:
    path = older.bot / "approvals" / "appr-1.json"
    request = json.loads(path.read_text())
    request["snapshot"]["remainingToolCalls"] = [{"id": "call_3"}]
    path.write_text(json.dumps(request))
    older.install(gated=True)
    older.json("approve", "appr-1")
    assert older.ledger() == ["send_mail ann@example.com", "close_ticket"]


def test_a_crash_after_the_decision_runs_the_call_no_second_time(older: Older) -> None:
    """The request went through an approval: one approval never covers two runs."""
    store = older.store()
    agent = older.agent(gated=True)
    dies = ScriptedModel([{"error": "the model died"}])
    with pytest.raises(SDKError, match="the model died"):
        resume_after_approval_sync(
            {"id": "appr-1", "approved": True}, store.approvals, None, dies, {"agent": agent},
            store.checkpoints,
        )  # fmt: skip
    done = older.execute("paused")
    assert (done.text, older.did) == ("all done", ["send_mail ann@example.com"])
    assert kinds(done.messages) == [None, None, "not-run"]


def test_a_request_that_was_deleted_is_made_again_from_its_session(older: Older) -> None:
    """The first SDK deletes a request when it reads it: what is shown, and runs, is what the model asked."""
    (older.bot / "approvals" / "appr-1.json").unlink()
    older.install(gated=True)
    (waiting,) = older.json("approvals")["approvals"]
    assert (waiting["id"], waiting["toolName"], waiting["args"]) == ("appr-1", "send_mail", MAILED)
    older.json("approve", "appr-1")
    assert older.ledger()[:1] == ["send_mail ann@example.com"]


@pytest.mark.parametrize("name", ["Appr_7", "req:7"])
def test_a_request_under_its_raw_name_is_found(older: Older, name: str) -> None:
    if WINDOWS and ":" in name:
        pytest.skip("no file name there")
    path = older.bot / "approvals" / "appr-1.json"
    path.with_name(f"{name}.json").write_text(path.read_text().replace("appr-1", name))
    path.unlink()
    checkpoint = older.checkpoint("paused")
    checkpoint.write_text(checkpoint.read_text().replace("appr-1", name))
    older.install(gated=True)
    (waiting,) = older.json("approvals")["approvals"]
    assert (waiting["id"], waiting["args"]) == (name, MAILED)
    older.json("approve", name)
    assert older.ledger() == ["send_mail ann@example.com"]
    assert results_shown(older)[-1] == ("call_3", "not-run")


# Forks


def test_a_kept_save_forks_and_its_source_stays_as_it_is(older: Older) -> None:
    older.install()
    before = older.session_bytes("bot:1")
    forked = older.json("fork", "bot:1", "--from-step", "1", "--tool-result", 'send_mail="not sent"')
    assert forked == {"sessionId": "bot:1.fork-1", "step": 1, "parent": {"sessionId": "bot:1", "seq": 2}}
    earlier = older.json("fork", "bot:1", "--at", "1", "--as", "earlier")
    assert earlier["parent"]["seq"] == 1
    assert older.json("resume", "bot:1.fork-1")["text"] == "all done"
    assert older.ledger() == ["close_ticket"]
    assert older.session_bytes("bot:1") == before
    fork = older.load("bot:1.fork-1")
    assert results(fork.messages)["call_2"] == "not sent"
    assert said(fork.messages) == [OPENING, "and hurry"]
    assert said(older.load("earlier").messages) == [OPENING]
    assert older.json("diff", "bot:1", "bot:1.fork-1")["divergedAt"] == 1
    assert {each["sessionId"] for each in older.json("sessions")["sessions"]} == {
        *SESSIONS, "bot:1.fork-1", "earlier"
    }  # fmt: skip


def test_a_session_without_history_says_that_nothing_is_kept_until_its_next_save(older: Older) -> None:
    older.install()
    refused = older.json("fork", "old", "--from-step", "1", code=4)
    assert refused["error"]["code"] == "LOUSHO_CHECKPOINT_NOT_FOUND"
    assert "steps kept: none" in refused["error"]["message"]
    older.json("resume", "old")
    assert older.json("fork", "old", "--from-step", "1")["step"] == 1


def test_the_name_of_an_old_session_is_taken(older: Older) -> None:
    for name in SESSIONS:
        assert older.run("fork", "bot:1", "--from-step", "1", "--as", name).code == 2


# The upgrade


def test_the_next_save_loses_nothing(older: Older) -> None:
    before = {session: older.history(session) for session in SESSIONS}
    current = {session: plain(older.load(session)) for session in SESSIONS}
    for session in ("old", "bot:1"):
        older.execute(session)
    older.install(gated=True)
    older.json("approve", "appr-1")
    for session in SESSIONS:
        after = older.history(session)
        for was, now in zip(before[session], after, strict=False):
            assert (was.seq, was.step, was.status) == (now.seq, now.step, now.status)
            assert was.saved_at == now.saved_at
            assert dump(was.checkpoint.messages) == dump(now.checkpoint.messages)
            assert plain(was.checkpoint) == plain(now.checkpoint)
        # The state it ended in is a save of the journal, whether or not the old history had it.
        ended = after[max(0, len(before[session]) - 1)]
        assert plain(ended.checkpoint) == current[session]
        assert after[-1].status == "finished"
        kept = older.history_file(session)
        assert (kept["version"], kept["sessionId"]) == (1, session)
        assert [(e["seq"], e["step"], e["status"], e["savedAt"], e["messages"]) for e in kept["entries"]] == [
            (e.seq, e.step, e.status, e.saved_at, len(e.checkpoint.messages)) for e in after
        ]
        shown = older.json("history", session)["entries"]
        assert [each["seq"] for each in shown] == [entry.seq for entry in after][::-1]


def test_a_history_that_lacks_the_newest_state_gets_it(older: Older) -> None:
    path = next((older.bot / "checkpoint-history").iterdir())
    entries = json.loads(path.read_text())
    path.write_text(json.dumps(entries[:1]))
    assert [len(entry.checkpoint.messages) for entry in older.history("bot:1")] == [3]
    assert roles(older.load("bot:1").messages)[-1] == "tool"
    older.execute("bot:1")
    assert [len(entry.checkpoint.messages) for entry in older.history("bot:1")][:2] == [3, 4]


def test_after_the_upgrade_the_old_files_no_longer_count(older: Older) -> None:
    for session in ("old", "bot:1"):
        older.execute(session)
        after = plain(older.load(session))
        checkpoint = older.checkpoint(session)
        checkpoint.write_text("{damaged")
        assert plain(older.load(session)) == after
    assert {each["sessionId"]: each["status"] for each in older.json("sessions")["sessions"]} == {
        "old": "finished", "bot:1": "finished", "paused": "awaiting-approval",
    }  # fmt: skip


def test_an_upgrade_that_fails_leaves_the_old_session(older: Older, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal is written whole or not at all."""
    from lousho_cli.stores import writer

    def full(*args: Any) -> None:
        raise StorageError("the disk is full")

    before = plain(older.load("bot:1"))
    with monkeypatch.context() as patch:
        patch.setattr(writer.JournalWriter, "append", full)
        with pytest.raises(StorageError, match="the disk is full"):
            older.execute("bot:1")
    assert plain(older.load("bot:1")) == before
    assert len(older.history("bot:1")) == 2
    assert said(older.execute("bot:1").messages) == [OPENING, "and hurry"]


@pytest.mark.parametrize("upgraded", [False, True], ids=["as it was", "upgraded"])
@pytest.mark.parametrize("session", SESSIONS)
def test_a_deleted_session_is_gone(older: Older, session: str, upgraded: bool) -> None:
    older.install()
    if upgraded:
        older.json(*(("approve", "appr-1") if session == "paused" else ("resume", session)))
    assert older.run("delete", session, "--yes").code == 0
    assert older.session_bytes(session) == {}
    assert session not in {each["sessionId"] for each in older.json("sessions")["sessions"]}
    assert older.json("show", session, code=4)["error"]["code"] == "LOUSHO_SESSION_NOT_FOUND"
    assert older.history(session) == []
    assert older.json("approvals")["approvals"] == [] or session != "paused"
    fresh = older.execute(session, "hello")
    assert (said(fresh.messages), fresh.text) == (["hello"], "all done")


@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_deleted_with_its_history_kept_keeps_it(older: Older, session: str) -> None:
    before = [plain(entry.checkpoint) for entry in older.history(session)]
    assert older.run("delete", session, "--keep-history", "--yes").code == 0
    kept = [plain(entry.checkpoint) for entry in older.history(session)]
    assert kept[: len(before)] == before
    assert asyncio.run(older.store().checkpoints.load(session)) is None
    assert session not in {each["sessionId"] for each in older.json("sessions")["sessions"]}


# File names

NAMES = ("bot:1", "Chat", "chat+mail", "a%20b", "+a", "50%", "Grüße an Ann", "con", "v1.2", "x~y")


def place(older: Older, session: str, name: str) -> None:
    """A copy of `bot:1` as session `session`, under another file name, and nothing else."""
    for folder in ("checkpoints", "checkpoint-history"):
        path = next(each for each in (older.bot / folder).iterdir() if each.name.startswith("bot"))
        text = path.read_text().replace('"bot:1"', json.dumps(session))
        shutil.rmtree(older.bot / folder)
        (older.bot / folder).mkdir()
        (older.bot / folder / f"{name}.json").write_text(text)
    shutil.rmtree(older.bot / "approvals")


@pytest.mark.parametrize("form", ["raw", "encoded"])
@pytest.mark.parametrize("session", NAMES)
def test_a_session_is_found_under_its_raw_and_its_encoded_name(older: Older, session: str, form: str) -> None:
    if WINDOWS and form == "raw" and session in ("bot:1", "con"):
        pytest.skip("no file name there")
    place(older, session, session if form == "raw" else encode_id(session))
    assert [(each["sessionId"], each["status"]) for each in older.json("sessions")["sessions"]] == [
        (session, "in-progress")
    ]
    assert len(older.history(session)) == 2
    assert said(older.execute(session).messages) == [OPENING, "and hurry"]
    (listed,) = older.json("sessions")["sessions"]
    assert (listed["sessionId"], listed["status"]) == (session, "finished")
    assert len(older.history(session)) > 2
    asyncio.run(older.store().checkpoints.delete(session))
    assert older.session_bytes(session) == {}


@pytest.mark.parametrize(("raw", "other"), [("chat+mail", "chatMail"), ("+a", "A"), ("a%20b", "a b")])
def test_a_raw_name_that_reads_like_another_ids_name_does_not_stand_in_its_way(
    older: Older, raw: str, other: str
) -> None:
    place(older, raw, raw)
    assert asyncio.run(older.store().checkpoints.load(other)) is None
    assert said(older.execute(other, "hello").messages) == ["hello"]
    assert said(older.load(raw).messages) == [OPENING]


def test_a_name_that_is_no_file_name_is_looked_up_encoded_only(older: Older) -> None:
    outside = older.bot / "outside.json"
    older.checkpoint("old").rename(outside)
    assert asyncio.run(older.store().checkpoints.load("../outside")) is None
    place(older, "../up", encode_id("../up"))
    assert said(older.execute("../up").messages) == [OPENING, "and hurry"]
    assert outside.exists()


def test_a_file_about_another_session_is_refused(older: Older) -> None:
    older.checkpoint("old").rename(older.bot / "checkpoints" / "new.json")
    with pytest.raises(StorageError, match="it is about session 'old'") as refused:
        older.load("new")
    assert refused.value.code == "LOUSHO_SESSION_FILE_CORRUPT"


# Damage, and newer versions


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', '{"messages": 3}', "\x00" * 8], ids=repr)
def test_a_damaged_checkpoint_is_reported_and_the_others_are_listed(older: Older, content: str) -> None:
    path = older.checkpoint("old")
    path.write_text(content)
    before = older.files()
    refused = older.json("show", "old", code=7)
    assert refused["error"]["code"] == "LOUSHO_SESSION_FILE_CORRUPT"
    assert "old.json" in refused["error"]["message"]
    listed = {each["sessionId"]: each["status"] for each in older.json("sessions")["sessions"]}
    assert listed["bot:1"] == "in-progress"
    assert listed["old"] == "damaged"
    with pytest.raises(StorageError):
        older.execute("old", "hello")
    after = older.files()
    assert {name: each for name, each in after.items() if "locks" not in name} == before


def test_calls_and_results_that_do_not_pair_up_are_damage(older: Older) -> None:
    path = older.checkpoint("old")
    data = json.loads(path.read_text())
    data["messages"][-1]["toolCallId"] = "call_9"
    path.write_text(json.dumps(data))
    with pytest.raises(StorageError, match="pair up") as refused:
        older.load("old")
    assert refused.value.code == "LOUSHO_SESSION_FILE_CORRUPT"


def edit_first_line(path: Path) -> None:
    first, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(first.replace(b'"version":1', b'"version":2') + b"\n" + rest)


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def refused_as_newer(older: Older, *words: str) -> str:
    error = older.json(*words, code=7)["error"]
    assert error["code"] == "LOUSHO_CHECKPOINT_VERSION"
    assert "version 2" in error["message"]
    assert "version 1" in error["message"]
    return str(error["message"])


def test_a_newer_journal_is_refused_and_left_alone(older: Older) -> None:
    older.install()
    older.json("resume", "old")
    edit_first_line(older.bot / "checkpoints" / "old.jsonl")
    before = older.session_bytes("old")
    commands: list[tuple[str, ...]] = [
        ("show", "old"), ("history", "old"), ("resume", "old"), ("run", "old", "hi"),
        ("fork", "old", "--from-step", "1"), ("diff", "old", "bot:1"),
    ]  # fmt: skip
    for words in commands:
        assert "old.jsonl" in refused_as_newer(older, *words)
    assert older.session_bytes("old") == before
    listed = {each["sessionId"]: each["status"] for each in older.json("sessions")["sessions"]}
    assert set(listed) == set(SESSIONS)
    assert listed["old"] not in ("finished", "in-progress")


REQUESTS: Mapping[str, Callable[[Path], None]] = {
    "request": lambda folder: edit_json(folder / "appr-1.json", version=2),
    "decision": lambda folder: edit_json(folder / "appr-1~decision.json", version=2),
}


@pytest.mark.parametrize("which", REQUESTS)
def test_a_newer_approval_is_refused_and_left_alone(older: Older, which: str) -> None:
    older.install(gated=True)
    older.json("approve", "appr-1", "--no-run")
    REQUESTS[which](older.bot / "approvals")
    before = {name: each for name, each in older.files().items() if "locks" not in name}
    for words in (("approve", "appr-1"), ("approve", "appr-1", "--reject"), ("resume", "paused")):
        refused_as_newer(older, *words)
    after = {name: each for name, each in older.files().items() if "locks" not in name}
    assert (after, older.ledger()) == (before, [])
