"""`lousho doctor` on a SQLite file and on a real Redis server."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from redis_process import forget_sessions, free_port, redis_client, redis_server
from scripted_workspace import ScriptedWorkspace, calls

from lousho_cli.cli import app
from lousho_cli.stores.sqlite_schema import SEQ_BITS

TOOLS = """
    @tool
    def look(n: int = 1) -> str:
        "Look."
        return "seen"

    @tool(needs_approval=True)
    def pay(amount: int = 5) -> str:
        "Pay."
        return "paid"
"""

Examine = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedWorkspace:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", "1")
    return ScriptedWorkspace(tmp_path).make([calls("look"), calls("pay"), "done"], TOOLS)


@pytest.fixture
def examine(capsys: pytest.CaptureFixture[str]) -> Examine:
    def look(*words: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = app.run(["doctor", "--json", *words])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, json.loads(captured.out)

    return look


def set_store(work: ScriptedWorkspace, store: str) -> None:
    (work.root / ".lousho" / "config.toml").write_text(f'default_agent = "bot"\nstore = "{store}"\n')


def play(session: str) -> None:
    """A session that waits for an approval."""
    assert app.run(["run", session, "hello", "--quiet"]) == 3


def codes(data: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(each["code"], each.get("sessionId")) for each in data["problems"]]


@pytest.fixture
def database(work: ScriptedWorkspace) -> Path:
    set_store(work, "sqlite:s.db")
    play("s")
    play("t")
    return work.root / ".lousho" / "s.db"


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(statement)
        connection.commit()


def test_a_healthy_database_has_no_problems(database: Path, examine: Examine) -> None:
    before = database.read_bytes()
    code, data = examine()
    assert (code, data["problems"], data["counts"]["sessions"]) == (0, [], 2)
    assert database.read_bytes() == before


def test_a_database_that_is_not_there_yet_is_none_to_complain_about(
    work: ScriptedWorkspace, examine: Examine
) -> None:
    set_store(work, "sqlite:new.db")
    assert examine()[0] == 0
    assert not (work.root / ".lousho" / "new.db").exists()


SECOND = f"id = (SELECT id << {SEQ_BITS} FROM sessions WHERE session_id = 's') + 2"
"""The record of the session's second save."""


@pytest.mark.parametrize(
    ("statement", "session"),
    [
        (f"UPDATE records SET data = replace(data, 'look', 'lool') WHERE {SECOND}", "s"),
        (f"DELETE FROM records WHERE {SECOND}", "s"),
        ("DELETE FROM sessions WHERE session_id = 's'", "s"),
        ("DELETE FROM checkpoint_history; DELETE FROM sessions", None),
        ("UPDATE sessions SET status = 'finished' WHERE session_id = 's'", "s"),
        ("UPDATE checkpoint_history SET seq = seq + 100 WHERE session_id = 's'", "s"),
    ],
)
def test_rows_that_contradict_their_records_are_damage(
    database: Path, examine: Examine, statement: str, session: str | None
) -> None:
    change(database, statement)
    code, data = examine()
    assert code == 7
    errors = [each for each in data["problems"] if each["severity"] == "error"]
    assert {(each["code"], each.get("sessionId")) for each in errors} == {("database-damaged", session)}


def test_a_file_that_is_no_database_is_damage(database: Path, examine: Examine) -> None:
    database.write_bytes(b"x" * 5000)
    code, data = examine()
    assert (code, codes(data)) == (7, [("database-damaged", None)])


def test_a_page_of_the_file_that_is_overwritten_is_damage(database: Path, examine: Examine) -> None:
    change(database, "PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(database.read_bytes())
    for start in range(4096, len(data), 4096):
        data[start + 100 : start + 1500] = bytes(1400)
    database.write_bytes(data)
    code, report = examine()
    assert (code, {each["code"] for each in report["problems"]}) == (7, {"database-damaged"})


def test_a_newer_database_is_named(database: Path, examine: Examine) -> None:
    change(database, "PRAGMA user_version = 99")
    code, data = examine()
    assert (code, codes(data)) == (7, [("newer-version", None)])


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_the_permissions_of_a_database_are_set(database: Path, examine: Examine) -> None:
    database.chmod(0o644)
    assert codes(examine()[1]) == [("permissions", None)]
    assert examine("--repair", "--yes")[1]["problems"] == []
    assert database.stat().st_mode & 0o777 == 0o600


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


def test_a_server_is_checked_value_by_value(
    work: ScriptedWorkspace, examine: Examine, redis_url: str
) -> None:
    forget_sessions(redis_url)
    set_store(work, redis_url)
    play("s")
    play("t")
    code, data = examine()
    assert (code, data["problems"], data["counts"]["sessions"]) == (0, [], 2)
    with redis_client(redis_url) as client:
        client.set("lousho:s", "{")
        client.delete(sorted(client.keys("lousho:t#history/*"))[0])
    code, data = examine()
    assert code == 7
    assert sorted(codes(data)) == [("history-damaged", "t"), ("value-damaged", "s")]
    forget_sessions(redis_url)


def test_a_server_that_is_not_there_is_exit_7(work: ScriptedWorkspace, examine: Examine) -> None:
    set_store(work, f"redis://user:secret@127.0.0.1:{free_port()}/0")
    code, data = examine()
    failed = [each for each in data["checks"] if each["status"] == "error"]
    assert (code, [each["code"] for each in failed]) == (7, ["LOUSHO_STORAGE_FAILED"])
    assert "secret" not in str(data)
