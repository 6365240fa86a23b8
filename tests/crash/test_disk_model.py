"""The disk model: what may be lost after a power cut, what may not, and what is torn how."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from lousho_cli.stores import files
from lousho_cli.testing import FileRecording, disk_states, record_files
from lousho_cli.testing.file_operations import Allocate, SyncFile, Write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be synced there")


def left(recording: FileRecording, name: str = "f") -> set[bytes | None]:
    """What a power cut at the very end may leave of a file."""
    end = len(recording.operations)
    return {state.files.get(name) for state in disk_states(recording) if state.cut == end}


def ever_left(recording: FileRecording, name: str = "f") -> set[bytes | None]:
    """What a power cut at any point may leave of a file."""
    return {state.files.get(name) for state in disk_states(recording)}


def system() -> Any:
    """The calls of the system as the file store makes them."""
    return vars(files)["os"]


def new_file(root: Path, data: bytes, *, synced: bool, named: bool) -> FileRecording:
    with record_files(root) as recording:
        fd = files.create_file(root / "f")
        files.write_all(fd, data)
        if synced:
            files.full_sync(fd)
        if named:
            files.sync_folder(root)
        system().close(fd)
    return recording


def test_what_was_synced_with_its_folder_stays(tmp_path: Path) -> None:
    assert left(new_file(tmp_path, b"abc", synced=True, named=True)) == {b"abc"}


def test_a_name_may_be_lost_until_its_folder_is_synced(tmp_path: Path) -> None:
    assert left(new_file(tmp_path, b"abc", synced=True, named=False)) == {None, b"abc"}


def test_a_write_is_torn_at_every_byte_and_a_file_may_have_grown_without_its_data(tmp_path: Path) -> None:
    recording = new_file(tmp_path, b"abc", synced=False, named=True)
    assert {b"", b"a", b"ab", b"abc", b"a\0\0", b"ab\0", b"\0\0\0"} <= ever_left(recording)
    assert {b"", b"abc", b"\0\0\0"} <= left(recording)
    assert None not in left(recording)


def test_a_later_sector_may_be_there_without_an_earlier_one(tmp_path: Path) -> None:
    found = left(new_file(tmp_path, b"a" * 512 + b"b" * 10, synced=False, named=True))
    assert b"\0" * 512 + b"b" * 10 in found
    assert b"7" * 512 + b"b" * 10 in found


def test_a_rename_may_be_there_without_the_data(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    with record_files(tmp_path) as recording:
        files.replace_file(tmp_path / "f", b"new", durable=False)
    assert {b"old", b"new", b"", b"\0\0\0"} <= left(recording)
    with record_files(tmp_path) as recording:
        files.replace_file(tmp_path / "f", b"newer", durable=True)
    assert left(recording) == {b"newer"}


def test_removed_and_linked_names_may_come_back_or_be_missing(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    with record_files(tmp_path) as recording:
        system().link(tmp_path / "f", tmp_path / "g")
        files.remove_file(tmp_path / "f")
    found = {(state.files.get("f"), state.files.get("g")) for state in disk_states(recording)}
    assert found == {(b"old", None), (b"old", b"old"), (None, b"old"), (None, None)}


def test_a_file_in_a_folder_that_is_lost_is_lost(tmp_path: Path) -> None:
    with record_files(tmp_path) as recording:
        system().mkdir(tmp_path / "d")
        assert files.create_once(tmp_path / "d" / "f", b"x")
    assert left(recording, "d/f") == {None, b"x"}
    with record_files(tmp_path) as recording:
        files.sync_folder(tmp_path)
    assert left(recording, "d/f") == {b"x"}


def test_of_two_writes_the_later_may_be_there_alone(tmp_path: Path) -> None:
    recording = FileRecording(names={"f": 1}, contents={1: b""})
    recording.operations = [Write(1, 0, b"aa"), Write(1, 2, b"bb")]
    assert {b"", b"aa", b"aabb", b"\0\0bb"} <= left(recording)


def test_preallocated_space_is_zeros_until_it_is_written(tmp_path: Path) -> None:
    recording = FileRecording(names={"f": 1}, contents={1: b"a"})
    recording.operations = [Allocate(1, 4), Write(1, 1, b"b"), SyncFile(1)]
    assert left(recording) == {b"ab\0\0"}
    recording.operations.pop()
    assert {b"a", b"ab", b"a\0\0\0", b"ab\0\0"} <= left(recording)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system cannot preallocate")
def test_every_operation_is_recorded_as_it_was_done(tmp_path: Path) -> None:
    with record_files(tmp_path) as recording:
        fd = files.create_file(tmp_path / "f")
        system().posix_fallocate(fd, 0, 8)
        system().pwrite(fd, b"abc", 2)
        files.cut_file(fd, 6)
        files.data_sync(fd)
        system().close(fd)
        files.sync_folder(tmp_path)
    assert left(recording) == {(tmp_path / "f").read_bytes()} == {b"\0\0abc\0"}


def test_what_was_known_at_a_cut_comes_with_its_states(tmp_path: Path) -> None:
    with record_files(tmp_path) as recording:
        files.replace_file(tmp_path / "f", b"1", durable=True)
        recording.mark("returned")
    for state in disk_states(recording):
        assert "returned" not in state.known or state.files["f"] == b"1"
    assert any(state.known == () for state in disk_states(recording))
    target = tmp_path / "again"
    target.mkdir()
    next(iter(disk_states(recording))).write_to(target)
    assert (target / "f").read_bytes() == b"1"
