"""R5.3, F25: reading takes no lock, writes nothing, imports little, and lists by the ends of files only."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from store_bench import TWO_STEPS, Bench, calls

from lousho_cli import ApprovalDecision
from lousho_cli.errors import NotFoundError
from lousho_cli.stores import files
from lousho_cli.stores.approvals_reader import decision_data, pending_here, request_data, undecided
from lousho_cli.stores.journal_fold import fold_journal
from lousho_cli.stores.reader import load_journal, session_summary, summaries
from lousho_cli.stores.saves_reader import read_history, read_state

READ = """
import json, sys
from pathlib import Path
from lousho_cli.stores.backend import open_backends
from lousho_cli.stores.lineage import family
home = Path(sys.argv[1])
for backend in open_backends("file", home, None, 50):
    sessions = list(backend.summaries())
    listed = [session.session_id for session in sessions]
    for name in listed:
        backend.history(name), backend.state(name), family(backend, name)
    asked = [each for each in sessions if each.approval and backend.undecided(each.approval)]
heavy = ("asyncio", "pydantic", "filelock", "rich", "typer", "socket", "multiprocessing")
print(json.dumps([listed, len(asked), [name for name in heavy if name in sys.modules]]))
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def waiting(bench: Bench) -> list[Any]:
    asked = (undecided(bench.folder, each) for each in pending_here(bench.folder))
    return sorted((each for each in asked if each is not None), key=lambda pending: str(pending["createdAt"]))


def read_everything(bench: Bench) -> None:
    list(summaries(bench.folder))
    waiting(bench)
    for name in ("s", "p", "s.fork-1", "nobody"):
        session_summary(bench.folder, name)
        read_history(bench.folder, name, 50)
        load_journal(bench.folder, name, 50)
        try:
            read_state(bench.folder, name, 50)
        except NotFoundError:
            assert name == "nobody"
    request_data(bench.folder, "nothing")
    decision_data(bench.folder, "nothing")


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each read of stored data gives, from here on."""
    lengths: list[int] = []
    real = files.read_at

    def counted(fd: int, offset: int, length: int) -> bytes:
        data = real(fd, offset, length)
        lengths.append(len(data))
        return data

    monkeypatch.setattr(files, "read_at", counted)
    return lengths


def filled(bench: Bench) -> Bench:
    bench.run()
    bench.run("p", turns=[calls("pay", step=1)])
    bench.fork(from_step=1)
    return bench


def test_readers_import_neither_asyncio_nor_pydantic(bench: Bench) -> None:
    filled(bench)
    command = [sys.executable, "-c", READ, str(bench.home)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    listed, asked, heavy = json.loads(ran.stdout)
    assert sorted(listed) == ["p", "s", "s.fork-1"]
    assert asked == 1
    assert heavy == []


def times(bench: Bench) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_ino) for path in bench.home.rglob("*")}


@pytest.mark.parametrize("torn", [b"", b'{"seq":7,"at":"20', bytes(512)])
def test_readers_never_write_not_even_over_a_torn_end(
    bench: Bench, torn: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(bench)
    with bench.journal().open("ab") as file:
        file.write(torn)
    bench.history_file("p").write_bytes(b"{ torn")
    before, files_before = times(bench), bench.files()
    real_open = os.open

    def only_reading(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        assert flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) == 0, path
        return real_open(path, flags, *rest, **options)

    for name in ("mkdir", "replace", "unlink", "link", "ftruncate", "write", "chmod"):
        monkeypatch.setattr(os, name, None)
    monkeypatch.setattr(os, "open", only_reading)
    read_everything(bench)
    monkeypatch.undo()
    assert times(bench) == before
    assert bench.files() == files_before


def test_reading_a_workspace_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "nowhere")
    assert list(summaries(bench.folder)) == []
    assert read_history(bench.folder, "s", 50) == []
    assert bench.load() is None
    assert not (tmp_path / "nowhere").exists()


def test_f25_a_list_reads_only_the_ends_of_large_files(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(5):
        bench.run(f"s{n}", "x" * 3_000_000, [calls("echo", step=1), "done"])
    read = count_reads(monkeypatch)
    assert [(session.seq, session.status) for session in bench.sessions()] == [(4, "finished")] * 5
    assert sum(read) < 5 * 64 * 1024


def test_a_save_larger_than_any_window_is_found_from_the_end(bench: Bench) -> None:
    bench.run("s", "go", ["z" * 2_000_000])
    (listed,) = bench.sessions()
    assert (listed.seq, listed.status) == (2, "finished")
    with bench.journal().open("ab") as file:
        file.write(bytes(300_000))
    (listed,) = bench.sessions()
    assert (listed.seq, listed.status) == (2, "finished")


def test_any_kept_save_can_be_read_and_a_dropped_one_is_called_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, limit=3)
    bench.run()
    steps = {save.seq: save.step for save in bench.history()}
    assert list(steps) == [6, 5, 4]
    for seq, step in steps.items():
        assert read_state(bench.folder, "s", 3, seq).step == step
    with pytest.raises(NotFoundError, match="save 2 was dropped by the history limit") as caught:
        read_state(bench.folder, "s", 3, 2)
    assert caught.value.code == "LOUSHO_CHECKPOINT_NOT_FOUND"
    with pytest.raises(NotFoundError) as caught:
        read_state(bench.folder, "nobody", 3)
    assert caught.value.code == "LOUSHO_SESSION_NOT_FOUND"


def test_f04_a_list_goes_by_what_is_recorded_not_by_file_times(bench: Bench) -> None:
    bench.run()
    before = bench.sessions()
    os.utime(bench.journal(), (0, 0))
    assert bench.sessions() == before


def test_one_damaged_file_does_not_hide_the_others(bench: Bench) -> None:
    filled(bench)
    bench.journal("p").write_bytes(b'{"version": 7}\n')
    listed = {session.session_id: session.problem for session in bench.sessions()}
    assert set(listed) == {"s", "s.fork-1", "p"}
    assert [name for name, problem in listed.items() if problem is not None] == ["p"]


def test_what_waits_is_undecided_whatever_became_of_its_request(bench: Bench) -> None:
    ids = [str(bench.run(name, turns=[calls("pay", step=1)]).approval_id) for name in ("b", "a", "c")]
    assert [pending["id"] for pending in waiting(bench)] == ids
    decision = ApprovalDecision(id=ids[1], approved=False, by="me")
    asyncio.run(bench.store.approvals.decide(ids[1], decision))
    assert [pending["id"] for pending in waiting(bench)] == [ids[0], ids[2]]
    bench.folder.request(ids[0]).unlink()
    assert [pending["id"] for pending in waiting(bench)] == [ids[0], ids[2]]


def test_space_made_ready_behind_the_last_save_is_torn_however_much_it_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run()
    before, shown = bench.sessions(), bench.state()
    with bench.journal().open("ab") as file:
        file.truncate(bench.journal().stat().st_size + 5_000_000)
    assert bench.sessions() == before
    after = bench.state()
    assert (after.seq, list(after.log)) == (shown.seq, list(shown.log))
    with bench.journal().open("ab") as file:
        file.write(b'{"seq":')
    assert bench.sessions() == before
    assert bench.run("s", "more", [*TWO_STEPS, "again"]).text == "again"


def test_lines_longer_than_one_read_are_read_in_few(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.run("s", "x" * 700_000, [calls("echo", step=1), "y" * 300_000])
    size = bench.journal().stat().st_size
    read = count_reads(monkeypatch)
    journal = load_journal(bench.folder, "s", 50)
    assert [len(message["content"]) for message in journal.state.log] == [700_000, 0, 10, 300_000]
    assert journal.end == size
    # A line longer than one read is read again, by a larger one.
    assert sum(read) < 3 * size


def test_a_runner_that_goes_on_while_its_session_is_read_leaves_no_damage_to_see(bench: Bench) -> None:
    bench.run()
    path = bench.journal()
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    begun = len(b"".join(lines[:3]))

    class Growing:
        """Shows less of the file at each of the first reads: the save is half written, then more follow."""

        looks = 0

        def read(self, offset: int, length: int) -> bytes:
            self.looks += 1
            there = whole if self.looks > 2 else whole[: begun + 20] + bytes(len(whole) - begun - 20)
            return there[offset : offset + length]

    journal = fold_journal(path, Growing().read, "s", 50)
    assert journal.state.seq == len(lines) - 1
    assert journal.end == len(whole)
