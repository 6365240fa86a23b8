"""Work that is shared out to processes is done, whatever becomes of them."""

from __future__ import annotations

import os
from contextlib import closing
from multiprocessing import active_children, parent_process
from pathlib import Path

import pytest
from store_bench import Bench

from lousho_cli.stores import check_folder
from lousho_cli.stores.folder import agent_folder
from lousho_cli.stores.processes import shared_out


def double_or_die(number: int) -> int:
    """Kills a helping process at 3, fails in one at 4; the first process can do both."""
    if parent_process() is not None and number == 3:
        os._exit(9)
    if parent_process() is not None and number == 4:
        raise ValueError(number)
    return number * 2


def test_what_a_process_leaves_undone_is_done_by_the_first_one() -> None:
    assert sorted(shared_out(double_or_die, range(8), 2)) == [0, 2, 4, 6, 8, 10, 12, 14]
    assert active_children() == []


def test_an_iterator_that_is_given_up_leaves_no_process() -> None:
    with closing(shared_out(double_or_die, range(3), 2)) as results:
        assert next(results) in (0, 2, 4)
    assert active_children() == []


def test_many_sessions_are_reported_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    for name in ("b", "c", "a"):
        bench.run(name)
    bench.journal("b").write_bytes(b"x" + bench.journal("b").read_bytes()[1:])
    agent = bench.journal("b").parent.parent
    folder = agent_folder(agent.parent.parent, agent.name)
    alone = check_folder.check_folder(folder, 50, lambda done, total: None)
    monkeypatch.setattr(check_folder, "SHARED_FROM", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    told: list[tuple[int, int]] = []
    shared = check_folder.check_folder(folder, 50, lambda done, total: told.append((done, total)))
    assert shared == alone
    assert [each.session_id for each in shared.sessions] == ["a", "b", "c"]
    assert told == [(0, 3), (3, 3)]
