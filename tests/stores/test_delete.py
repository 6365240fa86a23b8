"""Deleting a session: all of it or all but its history, and what a crash in the middle leaves."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from store_bench import TWO_STEPS, Bench, calls, sealed, texts

from lousho_cli.errors import NotFoundError, SessionBusyError
from lousho_cli.stores import prune_file
from lousho_cli.stores.files import remove_file

AGAIN = [*TWO_STEPS, "again"]


class Crash(BaseException):
    """The process dies here."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.run()
    return bench


def test_a_deleted_session_is_gone_with_its_history(bench: Bench) -> None:
    bench.run("other")
    others = {name: data for name, data in bench.files().items() if "other" in name}
    bench.delete()
    assert bench.load() is None
    assert bench.history() == []
    assert [session.session_id for session in bench.sessions()] == ["other"]
    assert not bench.journal().exists()
    assert not bench.history_file().exists()
    assert {name: data for name, data in bench.files().items() if "other" in name} == others
    with pytest.raises(NotFoundError):
        bench.fork(from_step=1)


def test_deleting_what_is_not_there_makes_and_removes_nothing(bench: Bench) -> None:
    before = bench.files()
    bench.delete("nobody")
    bench.delete("nobody", keep_history=True)
    assert bench.files() == before


def test_a_name_can_be_used_again_and_begins_anew(bench: Bench) -> None:
    bench.delete()
    bench.run("s", "hello", ["hi"])
    assert texts(bench.loaded())[1:] == ["user: hello", "assistant: hi"]
    assert bench.seqs() == bench.kept_in_file()[::-1] == [2, 1]


def test_keep_history_keeps_the_saves_to_look_at_and_fork_from(bench: Bench) -> None:
    kept = bench.history()
    bench.delete(keep_history=True)
    assert bench.load() is None
    assert bench.sessions() == []
    assert bench.history() == kept
    assert bench.kept_in_file() == [save.seq for save in kept][::-1]
    assert len(asyncio.run(bench.store.checkpoints.history("s"))) == len(kept)
    assert bench.fork(from_step=1).step == 1
    bench.delete(keep_history=True)
    assert bench.history() == kept


def test_a_run_after_keep_history_begins_anew_behind_the_kept_saves(bench: Bench) -> None:
    kept = bench.seqs()
    bench.delete(keep_history=True)
    bench.run("s", "hello", ["hi"])
    assert texts(bench.loaded())[1:] == ["user: hello", "assistant: hi"]
    assert bench.seqs()[2:] == kept
    assert all(map(sealed, bench.journal().read_bytes().splitlines()))


def test_a_fork_never_takes_the_kept_history_of_a_deleted_session(bench: Bench) -> None:
    bench.fork(from_step=1)
    bench.run("s.fork-1", "")
    kept = bench.history("s.fork-1")
    assert len(kept) > 2
    bench.delete("s.fork-1", keep_history=True)
    assert bench.fork(from_step=2).session_id
    assert set(kept) <= set(bench.history("s.fork-1"))


def test_a_session_that_is_being_run_is_not_deleted(bench: Bench) -> None:
    session = asyncio.run(bench.store.checkpoints.open_session("s"))
    for keep_history in (False, True):
        with pytest.raises(SessionBusyError):
            bench.delete(keep_history=keep_history)
    asyncio.run(session.close())
    assert bench.loaded().status == "finished"


@pytest.mark.parametrize("survives", [0, 1, 2])
def test_a_crash_between_two_removals_leaves_no_session_and_a_second_try_finishes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, survives: int
) -> None:
    remove, done = remove_file, [0]

    def crashing(path: Path) -> bool:
        if done[0] == survives:
            raise Crash
        done[0] += 1
        return remove(path)

    monkeypatch.setattr(prune_file, "remove_file", crashing)
    with suppress(Crash):
        bench.delete()
    monkeypatch.undo()
    if survives:
        assert bench.load() is None
        assert bench.sessions() == []
        assert bench.history() == []
    else:
        assert bench.loaded().status == "finished"
        assert bench.seqs()
    bench.delete()
    assert bench.load() is None
    assert not bench.history_file().exists()


def test_a_crash_between_removals_does_not_leak_into_the_next_session_of_that_name(bench: Bench) -> None:
    bench.journal().unlink()
    bench.run("s", "hello", ["hi"])
    assert bench.seqs() == [2, 1]


def test_the_approvals_of_a_deleted_session_wait_for_nobody(bench: Bench) -> None:
    bench.run("p", turns=[calls("pay", step=1)])
    assert len(asyncio.run(bench.store.approvals.list())) == 1
    bench.delete("p")
    assert asyncio.run(bench.store.approvals.list()) == []
