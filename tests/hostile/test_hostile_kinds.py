"""Pipes, sockets, folders, devices, links and 100 MB of one line in a file's place."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_sample import Sample, contents, make_sample

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the kinds of files of POSIX"),
    pytest.mark.timeout(120),
]

INTERNAL = "LOUSHO_INTERNAL"
WAYS = ("sessions", "history trip", "show trip", "approvals", "agents", "doctor", "diff trip trip.fork-1")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return make_sample(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def sample(whole: Sample, tmp_path: Path) -> Sample:
    return whole.copy(tmp_path / "home")


def pipe(path: Path, outside: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path, outside: Path) -> None:
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


def folder(path: Path, outside: Path) -> None:
    path.mkdir()


def link_to_a_device(path: Path, outside: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_itself(path: Path, outside: Path) -> None:
    path.symlink_to(path)


def dangling_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "none")


KINDS = (pipe, a_socket, folder, link_to_a_device, link_to_itself, dangling_link)
Put = Callable[[Path, Path], None]
TARGETS = (
    "journal", "history", "request", "decision", "older checkpoint", "agent.toml", "config.toml", "eval",
    "cassette",
)  # fmt: skip


def lousho(sample: Sample, command: str, *, memory: int = 0) -> tuple[int, str]:
    """Run a command in a process of its own; its exit code and all that it said."""

    def limited() -> None:
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    done = subprocess.run(
        [sys.executable, "-m", "lousho_cli", *command.split()],
        cwd=sample.root, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False,
        preexec_fn=limited, env={**os.environ, "LOUSHO_TRUST_WORKSPACE": "1"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def calm(capsys: pytest.CaptureFixture[str], sample: Sample, command: str) -> int:
    """Run a command in this process: it ends in no fault of lousho. Returns its exit code."""
    from lousho_cli.cli import app

    capsys.readouterr()
    code = app.run(["--workspace", str(sample.home), *command.split()])
    said = "".join(capsys.readouterr())
    assert INTERNAL not in said, (command, said)
    assert "Traceback" not in said, (command, said)
    return code


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_no_file_is_neither_waited_for_nor_followed(
    sample: Sample, target: str, kind: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("LOUSHO_TRUST_WORKSPACE", "1")
    monkeypatch.chdir(tmp_path)
    path = sample.files[target]
    path.unlink()
    kind(path, tmp_path / "outside")
    before = contents(sample.root)
    codes = {way: calm(capsys, sample, way) for way in WAYS}
    assert contents(sample.root) == before
    calm(capsys, sample, "eval")
    for way in (
        "run trip more",
        "resume pause",
        f"approve {sample.waiting} --reject",
        "fork trip --from-step 1",
    ):
        codes[way] = calm(capsys, sample, way)
    if target == "journal":
        assert codes["run trip more"] == codes["history trip"] == codes["show trip"] == 7
        assert codes["sessions"] == 0
    if target == "config.toml":
        assert codes["history trip"] == (0 if kind is dangling_link else 7)
    assert not (tmp_path / "outside").exists()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything"
)
@pytest.mark.parametrize("target", TARGETS)
def test_a_file_that_may_not_be_read_is_named(
    sample: Sample, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sample.files[target].chmod(0)
    for way in (*WAYS, "run trip more"):
        calm(capsys, sample, way)


GIGABYTE = 1024**3
MEGABYTES = 100


def one_line_of(content: bytes) -> bytes:
    return content * (MEGABYTES * 1024 * 1024 // len(content))


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("content", [b"\0", b"[", b"x", b'{"seq":1,', b"[],", b"9"], ids=repr)
@pytest.mark.parametrize("target", TARGETS)
def test_a_line_of_100_megabytes_fills_no_memory(sample: Sample, target: str, content: bytes) -> None:
    path = sample.files[target]
    path.write_bytes(b"[" + one_line_of(content))
    before = path.stat()
    for way in (*WAYS, "eval", "run trip more"):
        code, said = lousho(sample, way, memory=GIGABYTE)
        assert 0 <= code <= 8, (way, code, said[-2000:])
        assert INTERNAL not in said, (way, said[-2000:])
        assert "Traceback" not in said, (way, said[-2000:])
        if way != "run trip more" or target == "journal":
            assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
