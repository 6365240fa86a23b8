from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from lousho_cli.errors import StorageError
from lousho_cli.trust import is_trusted, trust

posix = pytest.mark.skipif(sys.platform == "win32", reason="file modes are a POSIX matter")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / ".lousho"
    folder.mkdir(parents=True)
    return folder


def records(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file()]


def test_a_workspace_is_not_trusted_until_it_is(workspace: Path) -> None:
    assert not is_trusted(workspace)
    trust(workspace)
    trust(workspace)
    assert is_trusted(workspace)


def test_trust_holds_for_one_path_only(workspace: Path, tmp_path: Path) -> None:
    trust(workspace)
    assert not is_trusted(tmp_path / "other" / ".lousho")
    moved = workspace.parent.rename(tmp_path / "moved")
    assert not is_trusted(moved / ".lousho")


def test_a_path_is_the_same_however_it_is_reached(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(workspace)
    monkeypatch.chdir(workspace.parent)
    assert is_trusted(Path(".lousho"))
    assert is_trusted(workspace / ".." / ".lousho")
    (tmp_path / "link").symlink_to(workspace.parent, target_is_directory=True)
    assert is_trusted(tmp_path / "link" / ".lousho")


@pytest.mark.parametrize(
    ("value", "trusted"),
    [("1", True), ("true", True), ("YES", True), ("", False), ("0", False), ("on", False)],
)
def test_the_environment_trusts_for_the_process_only(
    workspace: Path, isolated_environment: Path, monkeypatch: pytest.MonkeyPatch, value: str, trusted: bool
) -> None:
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", value)
    assert is_trusted(workspace) is trusted
    assert records(isolated_environment) == []


@posix
def test_records_are_private_to_the_user(workspace: Path, isolated_environment: Path) -> None:
    old = os.umask(0)
    try:
        trust(workspace)
    finally:
        os.umask(old)
    (record,) = records(isolated_environment)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (record, record.parent, record.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"path": "/elsewhere"}', b"\xff"])
def test_a_damaged_record_is_no_trust(workspace: Path, isolated_environment: Path, content: bytes) -> None:
    trust(workspace)
    (record,) = records(isolated_environment)
    record.write_bytes(content)
    assert not is_trusted(workspace)


def test_a_state_folder_that_cannot_be_written_is_a_storage_error(
    workspace: Path, isolated_environment: Path
) -> None:
    trust(workspace)
    (record,) = records(isolated_environment)
    folder = record.parent
    record.unlink()
    folder.rmdir()
    folder.write_text("in the way")
    with pytest.raises(StorageError, match="cannot be written") as caught:
        trust(workspace)
    assert str(folder) in caught.value.message
    assert caught.value.code == "LOUSHO_STORAGE_FAILED"
