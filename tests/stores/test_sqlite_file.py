"""The file of a SQLite store: who may read it, its versions, damage, full disks, and what a save costs."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_bench import TWO_STEPS, SqliteBench, close, contents, save
from store_bench import python

from lousho_cli import ConfigurationError
from lousho_cli.errors import SDKError, StorageError
from lousho_cli.execution.messages import MessageData
from lousho_cli.execution.state import Record
from lousho_cli.stores.sqlite_schema import APPLICATION_ID, MIGRATIONS, VERSION

CORRUPT = "LOUSHO_SESSION_FILE_CORRUPT"
NEWER = "LOUSHO_CHECKPOINT_VERSION"

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such file modes")


@pytest.fixture
def bench(tmp_path: Path) -> SqliteBench:
    return SqliteBench(tmp_path)


def refuses(bench: SqliteBench, code: str) -> str:
    """Every use of the store is refused with `code`, and asks no model; the last message."""
    bench.did.clear()
    uses = (bench.load, bench.history, bench.run, bench.approvals, bench.take, bench.delete)
    for use in (*uses, lambda: bench.fork(from_step=1)):
        with pytest.raises(SDKError) as caught:
            use()
        assert caught.value.code == code, use
        assert str(bench.path) in caught.value.message
    assert bench.did == []
    return caught.value.message


@posix
def test_files_are_for_their_owner_alone_from_the_first_instant(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        bench = SqliteBench(tmp_path / "new" / "folder")
        session = bench.take()
        save(session)
        found = {path.name: mode(path) for path in bench.path.parent.iterdir()}
        assert found == {"s.db": 0o600, "s.db-wal": 0o600, "s.db-shm": 0o600, "s.db.locks": 0o700}
        assert {mode(path) for path in bench.path.with_name("s.db.locks").iterdir()} == {0o600}
        close(session)
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_f23_links_are_refused_and_what_they_point_at_is_untouched(bench: SqliteBench, suffix: str) -> None:
    target = bench.path.with_name("target")
    target.write_bytes(b"mine")
    bench.path.with_name(f"s.db{suffix}").symlink_to(target)
    assert "is a link" in refuses(bench, "LOUSHO_STORAGE_FAILED")
    assert target.read_bytes() == b"mine"


@posix
def test_a_link_to_nowhere_makes_no_file_there(bench: SqliteBench) -> None:
    bench.path.symlink_to(bench.path.with_name("nowhere"))
    refuses(bench, "LOUSHO_STORAGE_FAILED")
    assert not bench.path.with_name("nowhere").exists()


def test_a_folder_in_its_place_is_refused(bench: SqliteBench) -> None:
    bench.path.mkdir()
    refuses(bench, "LOUSHO_STORAGE_FAILED")


def old_file(bench: SqliteBench, version: int) -> None:
    """The store as an older version wrote it."""
    bench.run()
    rows = bench.sql("SELECT seq, saved_at, status, approval_id FROM sessions")
    lines = bench.sql("SELECT 's', id & 255, data FROM records")
    history = bench.sql("SELECT * FROM checkpoint_history")
    with closing(sqlite3.connect(bench.path, isolation_level=None)) as connection:
        for table in ("sessions", "records", "checkpoint_history", "approvals"):
            connection.execute(f"DROP TABLE {table}")
        for migration in MIGRATIONS[:version]:
            migration(connection)
        values = ("s", 1, 1, *rows[0])
        connection.execute(
            "INSERT INTO sessions (session_id, fence, first_seq, seq, saved_at, status, approval_id)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        connection.executemany("INSERT INTO records VALUES (?, ?, ?)", lines)
        if version > 1:
            connection.executemany("INSERT INTO checkpoint_history VALUES (?, ?, ?, ?, ?, ?, ?)", history)
        connection.execute(f"PRAGMA user_version = {version}")


def test_an_older_file_gets_a_history_that_begins_with_its_next_save(bench: SqliteBench) -> None:
    old_file(bench, 1)
    assert bench.history() == []
    assert bench.sql("PRAGMA user_version") == [(VERSION,)]
    assert contents(bench.loaded())[-1] == "done"
    bench.run(text="more", turns=[*TWO_STEPS, "again"])
    assert bench.seqs() == [8, 7]
    assert contents(bench.history()[0].checkpoint)[-2:] == ["more", "again"]
    assert bench.fork(at=7).checkpoint.step_index == 0


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_file_of_any_older_version_has_the_tables_of_the_present_one_and_all_it_had(
    bench: SqliteBench, tmp_path: Path, version: int
) -> None:
    old_file(bench, version)
    (tmp_path / "new").mkdir()
    new = SqliteBench(tmp_path / "new")
    new.run()
    assert contents(bench.loaded()) == contents(new.loaded())
    tables = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%' ORDER BY name"
    assert bench.sql(tables) == new.sql(tables)
    assert bench.seqs() == (new.seqs() if version > 1 else [])
    assert bench.run(text="more", turns=[*TWO_STEPS, "again"]).text == "again"
    assert bench.is_sound()


def test_a_history_that_was_dropped_is_added_again(bench: SqliteBench) -> None:
    bench.run()
    bench.sql("DROP TABLE checkpoint_history")
    assert bench.history() == []
    bench.run(text="more", turns=[*TWO_STEPS, "again"])
    assert bench.seqs() == [8, 7]


def test_a_file_that_was_only_begun_is_finished(bench: SqliteBench) -> None:
    bench.path.touch(0o600)
    bench.sql("PRAGMA journal_mode = WAL")
    bench.run()
    assert bench.sql("PRAGMA application_id") == [(APPLICATION_ID,)]
    assert bench.sql("PRAGMA journal_mode") == [("wal",)]


def test_a_newer_file_is_refused_and_not_touched(bench: SqliteBench) -> None:
    bench.run()
    bench.sql("PRAGMA user_version = 99")
    before = bench.path.read_bytes()
    message = refuses(bench, NEWER)
    assert "version 99" in message
    assert f"version {VERSION}" in message
    assert bench.path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_not_touched(bench: SqliteBench) -> None:
    bench.sql("CREATE TABLE customers (name)")
    before = bench.path.read_bytes()
    with pytest.raises(ConfigurationError, match="another program"):
        bench.run()
    assert bench.path.read_bytes() == before


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "text": lambda data: b"dear diary, " * 1000,
    "zeros": lambda data: bytes(len(data)),
    "short": lambda data: data[:50],
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_f03_a_file_that_is_no_database_is_reported(bench: SqliteBench, kind: str) -> None:
    bench.run()
    damaged = DAMAGE[kind](bench.path.read_bytes())
    bench.path.write_bytes(damaged)
    refuses(bench, CORRUPT)
    assert bench.path.read_bytes() == damaged


def test_f03_a_damaged_page_never_passes_for_the_truth(bench: SqliteBench) -> None:
    bench.run(turns=[*TWO_STEPS[:2], "done " * 2000])
    whole, truth = bench.path.read_bytes(), contents(bench.loaded())
    seen = []
    for start in range(4096, len(whole), 512):
        bench.path.write_bytes(whole[:start] + b"\xff\0" * 128 + whole[start + 256 :])
        try:
            seen.append(contents(bench.loaded()) == truth)
        except StorageError as error:
            seen.append(error.code == CORRUPT)
    assert all(seen)
    assert len(seen) > 20


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET data = replace(data, 'result 1', 'result 2') WHERE id & 255 = 3",
        "UPDATE records SET data = '{}' WHERE id & 255 = 3",
        "UPDATE records SET data = x'ff' WHERE id & 255 = 3",
        "DELETE FROM records WHERE id & 255 = 3",
        "DELETE FROM records WHERE id & 255 = 6",
        "DELETE FROM records WHERE id & 255 = 1",
        "UPDATE sessions SET seq = 7",
    ],
)
def test_a_changed_or_missing_save_is_reported_with_what_can_be_read(
    bench: SqliteBench, statement: str
) -> None:
    bench.run()
    bench.sql(statement)
    before = bench.rows()["records"]
    for use in (bench.load, bench.history, bench.run, bench.take):
        with pytest.raises(
            StorageError, match=r"(saves up to \d \(step \d\)|no saves) are readable"
        ) as error:
            use()
        assert error.value.code == CORRUPT
    assert bench.rows()["records"] == before


def test_a_damaged_approval_is_reported(bench: SqliteBench) -> None:
    bench.pause()
    for text in ("{", "[]", '{"id": 7}', b"\xff"):
        bench.sql("UPDATE approvals SET pending = CAST(? AS TEXT)", text)
        with pytest.raises(StorageError) as caught:
            bench.approvals()
        assert caught.value.code == CORRUPT


def test_r5_4_a_file_that_vanished_stops_the_run_before_anything_further(bench: SqliteBench) -> None:
    session = bench.take()
    save(session, "saved")
    moved = bench.path.with_name("moved.db")
    bench.path.rename(moved)
    with pytest.raises(StorageError, match=r"s\.db could not be written"):
        save(session, "lost")
    moved.rename(bench.path)
    save(session, "back again")
    close(session)
    assert contents(bench.loaded()) == ["saved", "back again"]


def test_a_file_that_was_replaced_is_not_written_behind_anybodys_back(bench: SqliteBench) -> None:
    bench.run()
    copy = bench.path.read_bytes()
    session = bench.take()
    bench.path.rename(bench.path.with_name("moved.db"))
    bench.path.write_bytes(copy)
    with pytest.raises(StorageError, match="was replaced while"):
        save(session, "lost")
    close(session)
    assert contents(bench.loaded())[-1] == "done"


FILL = """
import asyncio, resource, sys
import sqlite_bench as b
from lousho_cli.errors import StorageError
bench = b.SqliteBench(b.Path(sys.argv[1]))
session = bench.take()
for n in range(3):
    b.save(session, f"small {n}")
limit = bench.path.with_name("s.db-wal").stat().st_size + 20_000
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
for _ in range(2):
    try:
        b.save(session, "large" * 100_000)
    except StorageError as error:
        print(error.code, error.message, flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
b.save(session, "space again")
"""


@posix
def test_f22_a_full_disk_is_an_error_and_leaves_the_last_save(bench: SqliteBench) -> None:
    with python(FILL, bench.path.parent, cwd=Path(__file__).parent) as process:
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out.count("LOUSHO_STORAGE_FAILED") == 2
    assert str(bench.path) in out
    assert contents(bench.loaded()) == ["small 0", "small 1", "small 2", "space again"]
    assert bench.seqs() == [4, 3, 2, 1]
    assert bench.is_sound()


def test_a_write_lock_that_is_never_let_go_is_an_error_that_names_the_file(
    bench: SqliteBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lousho_cli.stores.sqlite_database.BUSY_SECONDS", 0.1)
    session = bench.take()
    save(session, "before")
    with closing(sqlite3.connect(bench.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="database is locked") as caught:
            save(session, "meanwhile")
        assert str(bench.path) in caught.value.message
        assert contents(bench.loaded()) == ["before"]
    save(session, "after")
    close(session)
    assert contents(bench.loaded()) == ["before", "after"]


def written(bench: SqliteBench) -> int:
    return bench.path.with_name("s.db-wal").stat().st_size


def turn(n: int) -> Record:
    message: MessageData = {"role": "assistant", "content": f"{n:04} " + "x" * 500}
    return Record("turn", "in-progress", n, add=[message])


def test_f25_a_save_writes_the_same_at_any_length(bench: SqliteBench) -> None:
    async def scene() -> dict[int, list[int]]:
        session = await bench.store.checkpoints.open_session("s")
        costs: dict[int, list[int]] = {100: [], 3000: []}
        for n in range(1, 3041):
            near = next((at for at in costs if at <= n < at + 40), None)
            if near is not None:
                # An empty log, so that what is added to it can be told.
                bench.sql("PRAGMA wal_checkpoint(TRUNCATE)")
            await session.save(turn(n))
            if near is not None:
                costs[near].append(written(bench))
        await session.close()
        return costs

    costs = asyncio.run(scene())
    average = {at: sum(cost) / len(cost) for at, cost in costs.items()}
    assert average[3000] <= average[100] * 1.25
    assert max(average.values()) <= 8 * 1024
    assert max(costs[3000]) < 48 * 1024
    assert bench.loaded().step_index == 3040
    assert len(bench.seqs()) == 50
    assert bench.path.stat().st_size < 3040 * 2000
    assert bench.is_sound()


SAVE = """
import sys
import sqlite_bench as b
session = b.SqliteBench(b.Path(sys.argv[1])).take()
for _ in range(int(sys.argv[2])):
    b.save(session)
"""


def syncs(folder: Path, saves: int) -> int:
    """How often a process that makes that many saves waits for the disk."""
    folder.mkdir()
    trace = folder / "trace"
    command = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(trace)]
    command += [sys.executable, "-c", SAVE, str(folder), str(saves)]
    subprocess.run(command, cwd=Path(__file__).parent, check=True)
    return len(trace.read_text().splitlines())


@pytest.mark.skipif(shutil.which("strace") is None, reason="counts system calls")
def test_a_save_is_one_sync(tmp_path: Path) -> None:
    assert syncs(tmp_path / "many", 40) - syncs(tmp_path / "few", 20) == 20


def test_a_run_that_is_killed_leaves_a_history_that_is_made_up_for(bench: SqliteBench) -> None:
    bench.run()
    session = bench.take("killed")
    for n, text in enumerate(("one", "two", "three"), 1):
        record = Record("turn", "in-progress", n, add=[{"role": "assistant", "content": text}])
        asyncio.run(session.save(record))
    listed = "SELECT seq, messages FROM checkpoint_history WHERE session_id = 'killed' ORDER BY seq"
    assert bench.sql(listed) == [(1, 1)]
    assert bench.seqs("killed") == [3, 2, 1]
    assert [entry.checkpoint.step_index for entry in bench.history("killed")] == [3, 2, 1]
    close(session)
    assert bench.sql(listed) == [(1, 1), (2, 2), (3, 3)]
    assert bench.sql("SELECT seq, agent FROM sessions WHERE session_id = 's'") == [(6, "bot")]
