"""R5.4, F22: the first failed save stops the run and hurts nothing; the run goes on once it is mended."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from store_bench import TWO_STEPS, Bench, calls, sealed, texts

from lousho_cli import ApprovalDecision
from lousho_cli.errors import SDKError, StorageError
from lousho_cli.execution.state import Record
from lousho_cli.stores import files, history_file, lease, system, writer

STORAGE = "LOUSHO_STORAGE_FAILED"
OPERATIONS = (
    "open", "write", "pwrite", "pread", "posix_fallocate", "fdatasync", "fsync", "ftruncate", "lseek",
    "replace", "link", "unlink", "mkdir", "chmod", "fchmod", "stat", "lstat", "fstat", "close",
)  # fmt: skip


class Disk:
    """The operating system's file calls, some of which fail.

    Attributes:
        fails: whether the n-th call, of that name and target, fails.
        error: the error number it fails with.
        done: the calls made, as `name target`.
        failed: the calls that failed.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails: Callable[[int, str, str], bool] = lambda n, name, target: False
        self.error = errno.ENOSPC
        self.done: list[str] = []
        self.failed: list[str] = []
        self._names: dict[int, str] = {}
        double = SimpleNamespace(**vars(os))
        for name in OPERATIONS:
            if hasattr(os, name):
                setattr(double, name, self._wrapped(name))
        for module in (files, lease, system, writer):
            monkeypatch.setattr(module, "os", double)
        # Which calls a run makes must not hang on the machine's speed.
        monkeypatch.setattr(history_file, "SHARED_SECONDS", 3600.0)

    def heal(self) -> None:
        self.fails = lambda n, name, target: False

    def _wrapped(self, name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            target = self._target(name, arguments)
            self.done.append(f"{name} {target}")
            fails = self.fails(len(self.done) - 1, name, target)
            if fails:
                self.failed.append(self.done[-1])
            if fails and name != "close":
                raise OSError(self.error, os.strerror(self.error))
            result = real(*arguments, **options)
            if name == "open":
                self._names[result] = target
            if fails:
                raise OSError(self.error, os.strerror(self.error))
            return result

        return call

    def _target(self, name: str, arguments: tuple[Any, ...]) -> str:
        if isinstance(arguments[0], int):
            return self._names.get(arguments[0], "?")
        path = Path(arguments[1 if name in ("replace", "link") else 0])
        return f"{path.parent.name}/{'*' if path.suffix == '.tmp' else path.name}"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    # With replacements that depend on the time, no two runs would make the same calls.
    monkeypatch.setattr(history_file, "SHARED_SECONDS", 0.0)
    return Disk(monkeypatch)


def bench_with_folder(root: Path) -> Bench:
    (root / ".lousho" / "agents" / "default").mkdir(parents=True)
    return Bench(root)


def litter(bench: Bench) -> list[str]:
    return [name for name in bench.files() if name.endswith(".tmp")]


def open_descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def went_on(bench: Bench) -> None:
    """The run resumes, and ends as if nothing had been."""
    checkpoint = bench.load()
    if checkpoint is None or checkpoint.status != "finished":
        bench.run()
    assert texts(bench.loaded()) == [
        "system: Be brief.", "user: go", "assistant: ", 'tool: "result 1"', "assistant: ", 'tool: "result 2"',
        "assistant: done",
    ]  # fmt: skip
    assert all(map(sealed, bench.journal().read_bytes().rstrip(b"\0").splitlines()))
    assert bench.seqs()[0] == bench.state().seq


def first_run(root: Path, disk: Disk) -> list[str]:
    """The calls that one undisturbed run makes."""
    bench_with_folder(root).run()
    done, disk.done = disk.done, []
    return done


ERRORS = [errno.ENOSPC, errno.EIO, errno.EACCES]
UNNEEDED = ("unlink", "close", "posix_fallocate")
"""Nothing depends on clearing away, nor on space that is reserved."""
CUTTING = ("stat", "pread", "ftruncate")
"""What cuts off reserved space when a journal is closed."""


def synced(done: list[str]) -> int:
    """How many saves these calls made durable."""
    return sum(call in ("fsync checkpoints/s.jsonl", "fdatasync checkpoints/s.jsonl") for call in done)


def wrong_saves(bench: Bench, whole: list[str], n: int) -> Iterator[str]:
    found = bench.state().seq if bench.journal().exists() else 0
    making = whole[n].endswith("default/checkpoints")
    if found != synced(whole[:n]) and not (making and found == 0):
        yield f"{synced(whole[:n])} saves were durable, and {found} are found"


def wrong_words(bench: Bench, problem: StorageError, why: str) -> Iterator[str]:
    if problem.code != STORAGE or str(bench.home) not in problem.message:
        yield f"does not name the file: {problem}"
    if why not in problem.message:
        yield f"does not say why: {problem}"


def problems_of_one_failure(bench: Bench, disk: Disk, whole: list[str] | None, n: int) -> Iterator[str]:
    """What goes wrong with a run whose n-th call fails; `whole` are the calls of a session's first run."""
    asked_before: list[int] = []

    def fails(at: int, name: str, target: str) -> bool:
        if at == n:
            asked_before.append(len(bench.did))
        return at == n

    disk.done, disk.fails = [], fails
    descriptors = open_descriptors()
    try:
        bench.run()
    except StorageError as problem:
        yield from wrong_words(bench, problem, os.strerror(disk.error))
        if len(bench.did) != asked_before[0]:
            yield "went on after it"
        if whole is not None:
            yield from wrong_saves(bench, whole, n)
    except OSError as problem:
        yield f"left as {problem!r}"
    else:
        call = disk.failed[-1].split()[0]
        tried_again = call == "replace" and disk.error == errno.EACCES
        cutting = call in CUTTING and not synced(disk.done[n:])
        if call not in UNNEEDED and not tried_again and not cutting:
            yield "failed unnoticed"
    disk.heal()
    if open_descriptors() != descriptors:
        yield "leaks a descriptor"
    if litter(bench) and not disk.failed[-1].startswith("unlink"):
        yield f"leaves litter: {litter(bench)}"


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_f22_whichever_call_fails_once_the_run_stops_there_and_goes_on_later(
    tmp_path: Path, disk: Disk, error: int
) -> None:
    whole = first_run(tmp_path / "whole", disk)
    disk.error = error
    problems = []
    for n, call in enumerate(whole):
        bench = bench_with_folder(tmp_path / str(n))
        problems += [f"{call}: {problem}" for problem in problems_of_one_failure(bench, disk, whole, n)]
        went_on(bench)
    assert not sorted(set(problems))


def unfinished(root: Path) -> Bench:
    """A run that its model left in the middle, with a torn end behind it."""
    bench = bench_with_folder(root)
    with pytest.raises(SDKError):
        bench.run(turns=TWO_STEPS[:1])
    with bench.journal().open("ab") as file:
        file.write(b'{"seq":4,"at":"2')
    bench.did.clear()
    return bench


def test_f22_whichever_call_of_a_resume_fails_nothing_runs_after_it(tmp_path: Path, disk: Disk) -> None:
    probe = unfinished(tmp_path / "whole")
    disk.done = []
    probe.run()
    problems = []
    for n, call in enumerate(list(disk.done)):
        bench = unfinished(tmp_path / str(n))
        known = bench.state().seq
        for problem in problems_of_one_failure(bench, disk, None, n):
            problems.append(f"{call}: {problem}")
        assert bench.state().seq >= known
        went_on(bench)
    assert not sorted(set(problems))


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_f22_a_disk_that_stays_broken_loses_nothing_that_was_saved(
    tmp_path: Path, disk: Disk, error: int
) -> None:
    broken = ("write", "pwrite", "fdatasync", "fsync", "ftruncate", "replace", "link", "unlink", "mkdir")
    whole = first_run(tmp_path / "whole", disk)
    disk.error = error
    for n, call in enumerate(whole):
        # What the holder's file says is for messages only: if it stays behind, nothing is wrong.
        closing = call == "unlink locks/s.json" or (call.startswith("ftruncate") and not synced(whole[n:]))
        if call.split()[0] not in broken or closing:
            continue
        bench = bench_with_folder(tmp_path / str(n))
        disk.done = []
        disk.fails = lambda at, name, target, n=n: at >= n and name in broken  # type: ignore[misc]
        with pytest.raises(StorageError) as caught:
            bench.run()
        disk.heal()
        assert caught.value.code == STORAGE
        found = bench.state().seq if bench.journal().exists() else 0
        assert found >= synced(whole[:n])
        went_on(bench)


def test_a_sync_that_fails_leaves_no_save_that_a_later_reader_would_trust(tmp_path: Path, disk: Disk) -> None:
    whole = first_run(tmp_path / "whole", disk)
    disk.error = errno.EIO
    syncs = [n for n in range(len(whole)) if synced(whole[n : n + 1])]
    assert len(syncs) == 6
    for before, n in enumerate(syncs):
        bench = bench_with_folder(tmp_path / str(n))
        disk.done = []
        disk.fails = lambda at, name, target, n=n: at == n  # type: ignore[misc]
        with pytest.raises(StorageError):
            bench.run()
        disk.heal()
        assert (bench.state().seq if bench.journal().exists() else 0) == before


def test_a_short_write_is_completed_and_half_a_write_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_with_folder(tmp_path)
    written = [0]

    def shortened(real: Callable[..., int]) -> Callable[..., int]:
        def short(fd: int, data: bytes, *offset: int) -> int:
            written[0] += 1
            if written[0] > 60:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(fd, bytes(data[:40]), *offset)

        return short

    with monkeypatch.context() as broken:
        for name in ("write", "pwrite"):
            if hasattr(os, name):
                broken.setattr(os, name, shortened(getattr(os, name)))
        with pytest.raises(StorageError):
            bench.run()
    whole = bench.journal().read_bytes()
    assert all(map(sealed, whole.splitlines()))
    assert whole.endswith(b"\n")
    went_on(bench)
    assert bench.journal().read_bytes().startswith(whole)


def test_a_resume_that_cannot_write_changes_nothing(tmp_path: Path, disk: Disk) -> None:
    bench = bench_with_folder(tmp_path)
    with pytest.raises(SDKError):
        bench.run(turns=TWO_STEPS[:1])
    before = bench.files()
    disk.error = errno.EROFS
    disk.fails = lambda n, name, target: name in ("write", "ftruncate", "fdatasync", "replace", "mkdir")
    bench.did.clear()
    with pytest.raises(StorageError) as caught:
        bench.run("s", "more")
    disk.heal()
    assert caught.value.code == STORAGE
    assert bench.did == []
    assert {k: v for k, v in bench.files().items() if "locks" not in k} == {
        k: v for k, v in before.items() if "locks" not in k
    }


def test_a_journal_that_vanishes_during_a_run_stops_it_until_it_is_back(tmp_path: Path) -> None:
    bench = bench_with_folder(tmp_path)

    def on_event(event: Any) -> None:
        if event.type == "tool.start":
            bench.journal().rename(bench.home / "away")

    with pytest.raises(StorageError, match=r"s\.jsonl") as caught:
        bench.run(on_event=on_event)
    assert caught.value.code == STORAGE
    assert bench.did == ["model", "echo-1"]
    (bench.home / "away").rename(bench.journal())
    went_on(bench)


def test_a_decision_that_cannot_be_written_is_not_taken(tmp_path: Path, disk: Disk) -> None:
    bench = bench_with_folder(tmp_path)
    approval_id = str(bench.run(turns=[calls("pay", step=1)]).approval_id)
    decision = ApprovalDecision(id=approval_id, approved=True, by="me")
    disk.done = []
    for name in ("open", "fchmod", "write", "fsync", "link"):
        disk.fails = lambda n, call, target, name=name: call == name and target != "?"  # type: ignore[misc]
        with pytest.raises(StorageError):
            asyncio.run(bench.store.approvals.decide(approval_id, decision))
        disk.heal()
        stored = asyncio.run(bench.store.approvals.get(approval_id))
        assert stored is not None
        assert stored.status == "pending"
        assert not litter(bench)


def test_a_session_that_cannot_be_looked_at_is_not_taken_for_deleted(tmp_path: Path, disk: Disk) -> None:
    bench = bench_with_folder(tmp_path)
    bench.run()
    disk.error = errno.EIO
    disk.fails = lambda n, call, target: call == "lstat" and target == "checkpoints/s.jsonl"
    with pytest.raises(StorageError, match=r"s\.jsonl could not be looked at"):
        asyncio.run(bench.store.checkpoints.delete("s"))
    disk.heal()
    assert bench.state().seq == 6


def test_a_lock_that_cannot_be_looked_at_is_no_other_runner(tmp_path: Path, disk: Disk) -> None:
    bench = bench_with_folder(tmp_path)

    async def scene() -> None:
        session = await bench.store.checkpoints.open_session("s")
        disk.error = errno.EIO
        disk.fails = lambda n, call, target: call == "stat" and target == "locks/s.lock"
        with pytest.raises(StorageError, match=r"s\.lock could not be looked at"):
            await session.save(Record("input", "in-progress", 0))
        disk.heal()
        await session.save(Record("input", "in-progress", 0))
        await session.close()

    asyncio.run(scene())
    assert bench.state().seq == 1
