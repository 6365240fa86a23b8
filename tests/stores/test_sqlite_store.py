"""The SQLite store keeps the rules: history, forks, deletion, decisions, pruning."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlite_bench import TWO_STEPS, SqliteBench, close, contents, save
from store_bench import Turns, calls

from lousho_cli import ApprovalDecision, ConfigurationError, StoredApproval
from lousho_cli.errors import NotFoundError, SDKError, SessionAwaitingApprovalError
from lousho_cli.execution.checkpoint import checkpoint_of
from lousho_cli.execution.records import PendingApproval
from lousho_cli.execution.state import Record, State, apply
from lousho_cli.stores import sqlite_prune
from lousho_cli.stores.lease import Lease, LockFiles
from lousho_cli.stores.memory import MemoryStore
from lousho_cli.stores.sqlite import SqliteStore


@pytest.fixture
def bench(tmp_path: Path) -> SqliteBench:
    return SqliteBench(tmp_path)


def test_a_session_is_there_for_the_next_process(bench: SqliteBench, tmp_path: Path) -> None:
    result = bench.run()
    again = SqliteBench(tmp_path)
    assert contents(again.loaded()) == [message.content for message in result.messages]
    assert [(e.seq, e.step, e.status) for e in again.history()] == [
        (6, 3, "finished"), (5, 2, "in-progress"), (4, 2, "in-progress"), (3, 1, "in-progress"),
        (2, 1, "in-progress"), (1, 0, "in-progress"),
    ]  # fmt: skip
    assert again.run(text="more", turns=[*TWO_STEPS, "again"]).text == "again"
    assert again.seqs()[:2] == [8, 7]


def test_looking_at_what_is_not_there_finds_nothing(bench: SqliteBench) -> None:
    assert bench.load() is None
    assert bench.history() == []
    assert asyncio.run(bench.store.checkpoints.kept_saves("s")) is None
    assert asyncio.run(bench.store.approvals.get("a")) is None
    assert bench.approvals(None) == []
    bench.delete()
    asyncio.run(bench.store.approvals.consume("a"))
    with pytest.raises(NotFoundError):
        bench.decide("a")


def test_a_session_that_was_opened_and_never_saved_leaves_nothing(bench: SqliteBench) -> None:
    close(bench.take())
    assert bench.load() is None
    assert bench.sql("SELECT * FROM sessions") == []


@pytest.mark.parametrize("id", ["", ".", "..", "a\nb", "a" * 201, "\ud800"])
def test_what_can_be_no_id_is_refused_everywhere(bench: SqliteBench, id: str) -> None:
    checkpoints, approvals = bench.store.checkpoints, bench.store.approvals
    for call in (checkpoints.load, checkpoints.history, checkpoints.delete, checkpoints.open_session):
        with pytest.raises(ConfigurationError, match="cannot be a session id"):
            asyncio.run(call(id))
    with pytest.raises(ConfigurationError, match="cannot be an approval id"):
        asyncio.run(approvals.get(id))


@pytest.mark.parametrize("id", ["../../x", "a/b", "C:\\x", "CON", "%", "_", "' OR 1=1 --", "ß", "e\u0301"])
def test_f23_any_other_text_is_a_session_of_its_own(bench: SqliteBench, tmp_path: Path, id: str) -> None:
    bench.run("other")
    bench.run(id, turns=["hello"])
    assert contents(bench.loaded(id)) == ["Be brief.", "go", "hello"]
    bench.delete(id)
    assert bench.load(id) is None
    assert bench.loaded("other").status == "finished"
    assert {path.name for path in tmp_path.iterdir()} == {"s.db", "s.db.locks"}


@pytest.mark.parametrize("limit", [0, 1, 3, 50])
def test_the_history_is_that_of_the_memory_store(tmp_path: Path, limit: int) -> None:
    bench = SqliteBench(tmp_path, limit)
    memory = SqliteBench(tmp_path, limit)
    other: Any = MemoryStore(limit)
    memory.store = other
    turns = [calls("echo", "echo", "echo", step=n) for n in range(8)]
    for each in (bench, memory):
        each.run(turns=[*turns, "done"], tool_concurrency=1)
    assert bench.seqs() == memory.seqs()
    assert len(bench.seqs()) == min(limit, 18)
    assert [contents(e.checkpoint) for e in bench.history()] == [
        contents(e.checkpoint) for e in memory.history()
    ]
    assert bench.sql("SELECT seq FROM checkpoint_history ORDER BY seq DESC") == [(n,) for n in bench.seqs()]
    assert bench.sql("SELECT messages FROM checkpoint_history ORDER BY seq") == [
        (len(e.checkpoint.messages),) for e in bench.history()[::-1]
    ]
    for at in (1, 3, 5, 9):
        assert fork_error(bench, at) == fork_error(memory, at)


def fork_error(bench: SqliteBench, at: int) -> str:
    try:
        bench.fork(at=at, new_session_id=f"f{at}")
    except NotFoundError as error:
        return str(error)
    return "forked"


def test_what_a_smaller_limit_dropped_stays_dropped(bench: SqliteBench, tmp_path: Path) -> None:
    bench.run()
    small = SqliteBench(tmp_path, 2)
    assert small.seqs() == [6, 5]
    small.run(text="more", turns=[*TWO_STEPS, "again"])
    assert bench.seqs() == [8, 7]
    with pytest.raises(NotFoundError, match=r"save 3 was dropped by the history limit \(steps kept: 0, 1\)"):
        bench.fork(at=3)


def test_a_save_that_rewrites_the_past_leaves_older_saves_readable(bench: SqliteBench) -> None:
    session = bench.take()
    for text in ("one", "two", "three"):
        save(session, text)
    asyncio.run(
        session.save(Record("save", "in-progress", 1, rewrite=1, add=[{"role": "user", "content": "b"}]))
    )
    whole = apply(State("s"), Record("save", "in-progress", 4, 1, add=[{"role": "user", "content": "c"}]))
    close(session)
    asyncio.run(bench.store.checkpoints.save("s", checkpoint_of(whole)))
    assert [contents(entry.checkpoint) for entry in bench.history()] == [
        ["c"], ["one", "b"], ["one", "two", "three"], ["one", "two"], ["one"],
    ]  # fmt: skip


@pytest.mark.parametrize("odd", ["\ud83d", "\u0000", "\u2028", "\ufeff", "👩\u200d👩", "x" * 1_000_000])
def test_f34_any_text_comes_back_as_it_was(bench: SqliteBench, odd: str) -> None:
    session = bench.take()
    save(session, odd)
    close(session)
    assert contents(bench.loaded()) == [odd]


def test_a_fork_leaves_its_source_alone_and_needs_it_no_more(bench: SqliteBench) -> None:
    bench.run()
    before = bench.rows()
    fork = bench.fork(from_step=1, patch={"append_input": "other way"})
    assert (fork.session_id, fork.step) == ("s.fork-1", 1)
    assert bench.fork("s.fork-1", from_step=1).session_id == "s.fork-1.fork-1"
    assert bench.rows() == before
    assert bench.seqs("s.fork-1") == [4]
    bench.delete()
    bench.delete("s.fork-1")
    turns = [*TWO_STEPS[:1], "forked"]
    assert bench.run("s.fork-1.fork-1", "", turns).text == "forked"
    assert contents(bench.loaded("s.fork-1.fork-1"))[-2:] == ["other way", "forked"]
    assert bench.seqs("s.fork-1.fork-1")[-1] == 5


def test_a_name_that_is_taken_or_held_is_refused(bench: SqliteBench) -> None:
    bench.run()
    bench.run("deleted")
    bench.delete("deleted", keep_history=True)
    for name in ("s", "deleted"):
        with pytest.raises(ConfigurationError, match="exists already"):
            bench.fork(from_step=1, new_session_id=name)
    held = bench.take("s.fork-1")
    assert bench.fork(from_step=1).session_id == "s.fork-2"
    with pytest.raises(SDKError) as caught:
        bench.fork(from_step=1, new_session_id="s.fork-1")
    assert caught.value.code == "LOUSHO_SESSION_BUSY"
    close(held)
    assert bench.fork(from_step=1).session_id == "s.fork-1"


def test_a_deleted_session_keeps_its_history_if_asked(bench: SqliteBench) -> None:
    bench.run()
    bench.delete(keep_history=True)
    assert bench.load() is None
    assert bench.seqs() == [6, 5, 4, 3, 2, 1]
    assert bench.fork(from_step=2).checkpoint.step_index == 2
    assert bench.run(turns=["anew"]).text == "anew"
    assert contents(bench.loaded()) == ["Be brief.", "go", "anew"]
    bench.delete()
    assert bench.history() == []
    assert bench.is_gone()


def test_a_request_waits_until_it_is_decided_and_its_decision_is_used_once(bench: SqliteBench) -> None:
    approval_id = bench.pause()
    (pending,) = bench.approvals()
    assert (pending.pending.id, pending.pending.tool_name, pending.status) == (approval_id, "pay", "pending")
    assert pending.checkpoint() == bench.load()
    with pytest.raises(SessionAwaitingApprovalError):
        bench.run(text="hello?")
    assert bench.approve(approval_id).text == "paid"
    assert bench.did.count("pay-1") == 1
    assert bench.approvals() == []
    (used,) = bench.approvals("consumed")
    assert used.decision is not None
    assert used.decision.by
    assert used.decided_at is not None
    assert datetime.fromisoformat(used.decided_at).utcoffset() == timedelta(0)
    with pytest.raises(NotFoundError, match="already approved by"):
        bench.approve(approval_id, approved=False)


def test_of_many_deciders_one_wins_and_all_are_told_who(bench: SqliteBench) -> None:
    approval_id = bench.pause()
    answers: list[StoredApproval] = []

    def decide(n: int) -> None:
        answers.append(bench.decide(approval_id, approved=bool(n % 2), by=f"d{n}", note="why"))

    threads = [threading.Thread(target=decide, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len({(a.status, a.decision and a.decision.by, a.decided_at) for a in answers}) == 1
    stored = asyncio.run(bench.store.approvals.get(approval_id))
    assert stored is not None
    assert (stored.status, stored.decision) == (answers[0].status, answers[0].decision)


DECISIONS: list[dict[str, Any]] = [
    {"approved": True, "result": None}, {"approved": True, "result": {"a": [1, 2**70, "ß\u0000"]}},
    {"approved": True, "arguments": {"n": 7}}, {"approved": False, "note": 'no\n"really"'},
]  # fmt: skip


@pytest.mark.parametrize("given", DECISIONS)
def test_a_decision_comes_back_as_it_was_made(bench: SqliteBench, given: dict[str, Any]) -> None:
    approval_id = bench.pause()
    bench.decide(approval_id, by="ann", **given)
    stored = asyncio.run(bench.store.approvals.get(approval_id))
    assert stored is not None
    assert stored.decision == ApprovalDecision(id=approval_id, by="ann", **given)


def test_saving_a_request_again_keeps_the_decision(bench: SqliteBench) -> None:
    approval_id = bench.pause()
    pending = bench.approvals()[0].pending
    bench.decide(approval_id, by="ann")
    asyncio.run(bench.store.approvals.save(pending, bench.loaded()))
    assert [stored.decision and stored.decision.by for stored in bench.approvals("approved")] == ["ann"]


@pytest.mark.parametrize("approved", [True, False])
def test_a_lost_request_is_rebuilt_from_the_session_that_waits(bench: SqliteBench, approved: bool) -> None:
    approval_id = bench.pause()
    before = bench.approvals()[0].pending
    bench.sql("DELETE FROM approvals")
    (rebuilt,) = bench.approvals()
    assert rebuilt.pending == before
    assert rebuilt.checkpoint() == bench.load()
    assert bench.approve(approval_id, approved).finish_reason == "stop"
    assert bench.did.count("pay-1") == approved


def test_requests_are_listed_oldest_first_and_only_while_their_session_waits(bench: SqliteBench) -> None:
    first, second, third = (bench.pause(name) for name in ("z", "y", "x"))
    assert [stored.pending.id for stored in bench.approvals()] == [first, second, third]
    bench.delete("y")
    bench.delete("x", keep_history=True)
    assert [stored.pending.id for stored in bench.approvals()] == [first]
    bench.decide(first)
    assert bench.approvals() == []
    assert [stored.pending.id for stored in bench.approvals("approved")] == [first]
    assert {stored.pending.id for stored in bench.approvals(None)} == {first}


def test_an_approval_of_a_run_without_a_session_keeps_its_snapshot(bench: SqliteBench) -> None:
    pending = PendingApproval(id="a1", tool_name="pay", tool_call_id="c1", args={"n": 1})
    bench.run()
    snapshot = bench.loaded()
    asyncio.run(bench.store.approvals.save(pending, snapshot))
    (stored,) = bench.approvals()
    kept = stored.checkpoint()
    assert kept is not None
    assert contents(kept) == contents(snapshot)


def ages(bench: SqliteBench, days: dict[str, int]) -> None:
    """Sessions that are that many days old."""
    for session, age in days.items():
        at = (datetime.now(UTC) - timedelta(days=age)).isoformat(timespec="microseconds")
        bench.sql("UPDATE sessions SET saved_at = ? WHERE session_id = ?", at.replace("+00:00", "Z"), session)


@pytest.mark.parametrize("instant", [False, True])
def test_prune_removes_old_finished_sessions_with_all_they_have(bench: SqliteBench, instant: bool) -> None:
    for name in ("old", "young", "unfinished", "deleted", "held"):
        bench.run(name)
    bench.approve(bench.pause("old-approved"))
    waiting = bench.pause("paused")
    unfinished = bench.take("unfinished")
    save(unfinished)
    close(unfinished)
    bench.delete("deleted", keep_history=True)
    names = ["old", "paused", "unfinished", "deleted", "held", "old-approved"]
    ages(bench, dict.fromkeys(names, 31) | {"young": 29})
    held = bench.take("held")
    age = timedelta(days=30)
    pruned = asyncio.run(bench.store.prune(datetime.now(UTC) - age if instant else age))
    close(held)
    assert pruned == ["deleted", "old", "old-approved"]
    assert all(map(bench.is_gone, pruned))
    assert [stored.pending.id for stored in bench.approvals(None)] == [waiting]
    for name in ("young", "paused", "unfinished", "held"):
        assert bench.load(name) is not None
        assert bench.seqs(name)
    assert bench.is_sound()


def test_prune_spares_a_session_that_was_used_since_it_was_looked_at(
    bench: SqliteBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run()
    ages(bench, {"s": 31})

    def late(locks: LockFiles, session_id: str) -> Lease:
        bench.run(text="just in time", turns=["hello"] * 9)
        return Lease(locks, session_id)

    monkeypatch.setattr(sqlite_prune, "Lease", late)
    assert asyncio.run(bench.store.prune(timedelta(days=30))) == []
    assert contents(bench.loaded())[-1] == "hello"


def test_prune_takes_no_instant_without_a_time_zone(bench: SqliteBench) -> None:
    with pytest.raises(ConfigurationError, match="no time zone"):
        asyncio.run(bench.store.prune(datetime(2020, 1, 1)))  # noqa: DTZ001


def test_a_store_is_used_from_many_threads_and_loops(bench: SqliteBench) -> None:
    problems: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for text in ("one", "two", "three"):
                bench.run(name, text, ["answer"] * 3)
                bench.history(name)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(f"s{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert [len(bench.loaded(f"s{n}").messages) for n in range(6)] == [7] * 6


def test_sessions_of_one_loop_run_side_by_side(bench: SqliteBench) -> None:
    async def scene() -> None:
        sessions = [await bench.store.checkpoints.open_session(f"s{n}") for n in range(5)]
        for step in range(20):
            await asyncio.gather(*(s.save(Record("save", "in-progress", step)) for s in sessions))
        for session in sessions:
            await session.close()

    asyncio.run(scene())
    assert [bench.loaded(f"s{n}").step_index for n in range(5)] == [19] * 5


@pytest.mark.parametrize("path", ["", ":memory:", "/"])
def test_a_path_that_names_no_file_is_refused(path: str) -> None:
    with pytest.raises(ConfigurationError, match="names no file"):
        SqliteStore(path)


def test_the_pause_of_a_batch_survives_the_process(bench: SqliteBench, tmp_path: Path) -> None:
    turns: Turns = [calls("echo", "pay", "echo", step=1), "all done"]
    approval_id = bench.run(turns=turns).approval_id
    assert approval_id is not None
    later = SqliteBench(tmp_path)
    later.decide(approval_id)
    assert later.run(text="", turns=turns).text == "all done"
    assert (bench.did, later.did) == (["model", "echo-1"], ["pay-1", "echo-1", "model"])
