"""R5.4 on a file system that is really full, with a few free pages more each time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kill_checks import Watch
from kill_play import WARM_UP
from kill_world import make_workspace, next_words
from life_client import Lives

PAGE = 4096
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tmpfs is Linux's")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 kB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(place: Path, free: int) -> Path:
    """Use all of a file system but so many pages."""
    filler = place / "filler"
    status = os.statvfs(place)
    with filler.open("wb") as file:
        file.write(bytes((status.f_bavail - free) * status.f_frsize))
    return filler


def test_f22_a_full_file_system_stops_a_run_and_loses_nothing(tmp_path: Path, small: Path) -> None:
    stopped = 0
    with Lives(make_workspace(tmp_path / "warm"), WARM_UP) as lives:
        home = make_workspace(small / "home")
        for free in range(8):
            session = f"s{free}"
            filler = fill(small, free)
            watch = Watch(home, session, failing=(7,))
            life = lives.run(home, "run", session, "go")
            filler.unlink()
            watch.after(life)
            if life.code == 7:
                stopped += 1
                assert "[LOUSHO_STORAGE_FAILED]" in life.err, life
                assert str(home) in life.err, life
            assert not list(home.rglob("*.tmp"))
            while (words := next_words(home, session, 1)) is not None:
                watch.after(lives.run(home, *words))
            watch.check_end()
    assert stopped >= 3
