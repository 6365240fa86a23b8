"""What the commands say of sessions whose files lost something: refused, unchanged, removable."""

from __future__ import annotations

from pathlib import Path

import pytest
from bot_workspace import TRIP, BotWorkspace
from damaged_files import cut_to_nothing, flip_a_bit, history

from lousho_cli.errors import StorageError

CORRUPT = "LOUSHO_SESSION_FILE_CORRUPT"


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> BotWorkspace:
    monkeypatch.chdir(tmp_path)
    workspace = BotWorkspace(tmp_path, capsys)
    workspace.play("trip", TRIP)
    workspace.play("whole", TRIP)
    return workspace


def stored(bot: BotWorkspace) -> dict[str, tuple[int, bytes]]:
    """Everything but the lock files, which hold nothing."""
    return {name: file for name, file in bot.state_files().items() if Path(name).parent.name != "locks"}


@pytest.mark.parametrize("rest", [b"", b"\0" * 300, b'{"version":1,"sess'])
def test_an_emptied_journal_beside_a_history_of_saves_is_damage_to_every_command(
    bot: BotWorkspace, rest: bytes
) -> None:
    cut_to_nothing(bot, "trip")
    bot.journal("trip").write_bytes(rest)
    before = stored(bot)
    for command in (
        ["run", "trip", "again"], ["run", "trip"], ["resume", "trip"], ["history", "trip"], ["show", "trip"],
        ["show", "trip", "--at", "2"], ["fork", "trip", "--from-step", "1"], ["diff", "trip", "whole"],
        ["fork", "whole", "--from-step", "1", "--as", "trip"], ["delete", "trip", "--keep-history", "--yes"],
    ):  # fmt: skip
        ran = bot.run("--json", *command)
        assert (ran.code, ran.json()["error"]["code"]) == (7, CORRUPT), command
        assert "its history file lists saves up to" in ran.json()["error"]["message"]
    assert stored(bot) == before
    listed = {each["sessionId"]: each for each in bot.run("--json", "sessions").json()["sessions"]}
    assert listed["trip"]["status"] == "damaged"
    assert listed["whole"]["status"] == "finished"


def test_an_emptied_journal_can_be_deleted_and_its_name_used_again(bot: BotWorkspace) -> None:
    cut_to_nothing(bot, "trip")
    assert bot.run("delete", "trip", "--yes").code == 0
    assert not bot.journal("trip").exists()
    assert not history(bot, "trip").exists()
    assert bot.play("trip", TRIP).finish_reason == "stop"


def test_what_a_deleted_session_left_goes_before_the_first_save_of_a_new_one(
    bot: BotWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot.journal("trip").unlink()

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lousho_cli.stores.writer.create_file", fails)
    with pytest.raises(StorageError, match="No space left"):
        bot.play("trip", TRIP)
    assert not history(bot, "trip").exists()


def test_resume_and_run_without_a_message_notice_damage_of_a_finished_session(bot: BotWorkspace) -> None:
    flip_a_bit(bot, "trip")
    before = bot.state_files()
    for command in (["resume", "trip"], ["run", "trip"]):
        ran = bot.run("--json", *command)
        assert (ran.code, ran.json()["error"]["code"]) == (7, CORRUPT), command
    assert bot.state_files() == before
