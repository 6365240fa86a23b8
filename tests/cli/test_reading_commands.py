from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bot_workspace import PAYMENT, TRIP, BotWorkspace

READING = (
    "history trip", "history trip --graph", "show trip", "show trip --at 2", "sessions", "approvals",
    "diff trip trip.fork-1", "diff trip@2 trip --json", "history trip --json",
)  # fmt: skip
HEAVY = (
    "asyncio", "filelock", "sqlite3", "lousho_cli.execution.record", "lousho_cli.execution.records",
    "lousho_cli.execution.executor", "lousho_cli.stores.file", "lousho_cli.stores.lease",
    "lousho_cli.agents.folder",
)  # fmt: skip
TYPER_ALONE = "import typer; app = typer.Typer(); app.command()(lambda: None); app([], standalone_mode=False)"


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BotWorkspace:
    monkeypatch.chdir(tmp_path)
    return BotWorkspace(tmp_path, capsys)


@pytest.fixture
def trip(bot: BotWorkspace) -> BotWorkspace:
    bot.play("trip", TRIP)
    bot.play("money", PAYMENT)
    bot.run("fork", "trip", "--from-step", "1")
    return bot


def test_commands_that_read_import_no_engine_and_run_no_code_of_the_workspace(trip: BotWorkspace) -> None:
    (trip.agent / "agent.toml").write_text("")
    (trip.agent / "tools").mkdir()
    (trip.agent / "tools" / "t.py").write_text("import pathlib\npathlib.Path('ran').touch()\n")
    script = (
        "import json, sys\n"
        f"{TYPER_ALONE}\n"
        "typers = set(sys.modules)\n"
        "from lousho_cli.cli.app import run\n"
        f"codes = [run(line.split()) for line in {READING!r}]\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "heavy += [name for name in sys.modules if name.startswith('pydantic') and name not in typers]\n"
        "print(json.dumps([codes, heavy]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    codes, imported = json.loads(ran.stdout.splitlines()[-1])
    assert codes == [0] * len(READING)
    assert imported == []
    assert not Path("ran").exists()


def test_commands_that_read_write_nothing(trip: BotWorkspace) -> None:
    before = trip.state_files()
    for line in READING:
        assert trip.run(*line.split()).code == 0
    assert trip.state_files() == before


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_commands_that_read_work_where_nothing_can_be_written(trip: BotWorkspace) -> None:
    folders = [trip.home, *(each for each in trip.home.rglob("*") if each.is_dir())]
    try:
        for folder in folders:
            folder.chmod(0o500)
        assert [trip.run(*line.split()).code for line in READING] == [0] * len(READING)
    finally:
        for folder in folders:
            folder.chmod(0o700)


def test_a_history_file_that_is_lost_or_behind_is_made_up_for_in_memory(trip: BotWorkspace) -> None:
    before = trip.run("history", "trip", "--json").json()
    file = trip.agent / "checkpoint-history" / "trip.json"
    for content in (b"", b"{", b'{"version": 1, "sessionId": "trip", "limit": 50, "entries": []}', None):
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        assert trip.run("history", "trip", "--json").json() == before
    assert not file.exists()


@pytest.mark.parametrize(
    "line", ["history x", "show x", "sessions", "approvals", "diff x y", "fork x --at 1"]
)
def test_without_a_workspace_none_is_made(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lousho_cli.cli import app

    monkeypatch.chdir(tmp_path)
    assert app.run(line.split()) == 2
    assert "lousho init" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
