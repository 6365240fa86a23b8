"""A process dies before it synced what it did, the next one builds on that, and then the power goes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from lousho_cli import FileStore, create_agent
from lousho_cli.stores import files
from lousho_cli.testing import DiskState, FileRecording, ScriptedModel, disk_states, record_files

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be synced there")


class Died(BaseException):
    """The process is gone."""


@contextmanager
def dying_at_the_sync_of(folder: Path) -> Iterator[None]:
    """A process that is killed when it is about to sync this folder."""
    real = files.sync_folder

    def sync(path: Path) -> None:
        if path == folder:
            raise Died
        real(path)

    with (
        mock.patch.object(files, "sync_folder", sync),
        mock.patch("lousho_cli.stores.file.sync_folder", sync),
        mock.patch("lousho_cli.stores.prune_file.sync_folder", sync),
    ):
        try:
            yield
        except Died:
            return
        raise AssertionError("it did not die")


def after_the_end(recording: FileRecording) -> list[DiskState]:
    recording.mark("returned")
    return [state for state in disk_states(recording, "sectors") if "returned" in state.known]


def test_a_decision_that_a_dying_process_made_is_on_the_disk_when_it_is_made_again(tmp_path: Path) -> None:
    decision = tmp_path / "decision"
    with record_files(tmp_path) as recording:
        with dying_at_the_sync_of(tmp_path):
            files.create_once(decision, b"yes")
        assert not files.create_once(decision, b"no")
    assert [state.files.get("decision") for state in after_the_end(recording)] == [b"yes"]


def test_a_session_in_folders_that_nobody_synced_survives(tmp_path: Path) -> None:
    home = tmp_path / ".lousho"
    agent = create_agent(name="bot", provider=ScriptedModel(["Hello!"]), store=FileStore(home, "bot"))
    with record_files(tmp_path) as recording:
        # As an editor, or a workspace that was just set up, leaves them.
        system = vars(files)["os"]
        for folder in (
            home,
            home / "agents",
            home / "agents" / "bot",
            home / "agents" / "bot" / "checkpoints",
        ):
            system.mkdir(folder, 0o700)
        agent.send_sync("Hi", session_id="s")
    journals = [
        state.files.get(".lousho/agents/bot/checkpoints/s.jsonl") for state in after_the_end(recording)
    ]
    assert journals
    assert all(found and b'"kind":"finish"' in found for found in journals)


def test_a_deletion_that_a_dying_process_began_is_on_the_disk_when_it_is_made_again(tmp_path: Path) -> None:
    store = FileStore(tmp_path, "bot")
    create_agent(name="bot", provider=ScriptedModel(["Hello!"]), store=store).send_sync("Hi", session_id="s")
    with record_files(tmp_path) as recording:
        with dying_at_the_sync_of(tmp_path / "agents" / "bot" / "checkpoints"):
            asyncio.run(store.checkpoints.delete("s"))
        asyncio.run(store.checkpoints.delete("s"))
    assert not [s for s in after_the_end(recording) if "agents/bot/checkpoints/s.jsonl" in s.files]
