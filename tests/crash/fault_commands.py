"""Commands in workspaces in which they have something to do, to be run with a file call that fails."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kill_checks import Watch
from kill_world import AGENT, load, make_workspace, next_words
from life_calls import CHANGING, Fault
from life_client import Death, Life, Lives

STORAGE = 7
NEEDED = ("fsync", "fdatasync", "write", "pwrite", "mkdir", "link", "replace")
"""What a save, a decision, a fork or a deletion hangs on."""
UNNEEDED = ("close", "unlink", "posix_fallocate")
"""What may fail without any harm."""


@dataclass(frozen=True)
class Command:
    """A command, and the workspace it is run in.

    Attributes:
        home: to be copied, never run in.
        words: of the command.
        code: its exit code where nothing fails.
        is_done: whether what it is for is done.
    """

    name: str
    home: Path
    words: tuple[str, ...]
    code: int
    is_done: Callable[[Path], bool]

    def copy(self, home: Path) -> Path:
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(self.home, home)
        return home


def commands(lives: Lives, root: Path) -> list[Command]:
    """Every command that changes something."""
    root.mkdir()
    new = make_workspace(root / "new")
    paused = copied(new, "paused")
    assert lives.run(paused, "run", "s", "go").code == 3
    waiting = (next_words(paused, "s") or ())[1]
    open_turn = copied(new, "open")
    assert lives.run(open_turn, "run", "s", "go", death=Death(points=("turn.saved",))).killed
    finished = copied(paused, "finished")
    assert lives.run(finished, "approve", waiting).code == 0
    damaged = copied(finished, "damaged")
    damage(damaged)
    return [
        Command("run", new, ("run", "s", "go"), 3, is_paused),
        Command("resume", open_turn, ("resume", "s"), 3, is_paused),
        Command("approve", paused, ("approve", waiting), 0, is_finished),
        Command("approve --no-run", paused, ("approve", waiting, "--no-run"), 0, is_finished),
        Command("reject", paused, ("approve", waiting, "--reject"), 0, is_finished),
        Command("fork", finished, ("fork", "s", "--from-step", "1", "--as", "f"), 0, has_fork),
        Command("delete", finished, ("delete", "s", "--yes"), 0, is_gone),
        Command("delete --keep-history", finished, ("delete", "s", "--yes", "--keep-history"), 0, is_gone),
        Command("prune", finished, ("prune", "s", "--yes"), 0, is_gone),
        Command("doctor --repair", damaged, ("doctor", "--repair", "--yes"), 0, is_mended),
    ]


def copied(home: Path, name: str) -> Path:
    return Path(shutil.copytree(home, home.with_name(name)))


def journal(home: Path) -> Path:
    return home / ".lousho" / "agents" / AGENT / "checkpoints" / "s.jsonl"


def damage(home: Path) -> None:
    lines = journal(home).read_bytes().split(b"\n")
    lines[5] = b"\0" * len(lines[5])
    journal(home).write_bytes(b"\n".join(lines))


def status(home: Path) -> str | None:
    found = load(home, "s")
    return None if found is None else str(found["status"])


def is_paused(home: Path) -> bool:
    return status(home) == "awaiting-approval"


def is_finished(home: Path) -> bool:
    return status(home) == "finished"


def is_gone(home: Path) -> bool:
    return status(home) is None


def has_fork(home: Path) -> bool:
    return load(home, "f") is not None


def is_mended(home: Path) -> bool:
    return b"\0" not in journal(home).read_bytes()


def again(command: Command, home: Path) -> tuple[str, ...]:
    """What a user does once what failed is mended."""
    if command.words[0] in ("run", "resume", "approve"):
        words = next_words(home, "s", 1)
        assert words is not None
        return words
    return command.words


def problems(command: Command, lives: Lives, home: Path, fault: Fault) -> Iterator[str]:
    """What is wrong with a command one of whose file calls fails, and with what follows once it is mended."""
    command.copy(home)
    talks = command.words[0] in ("run", "resume", "approve")
    watch = Watch(home, "s", load(home, "s"), failing=(STORAGE,)) if talks else None
    before = None if command.name == "doctor --repair" else load(home, "s")
    life = lives.run(home, *command.words, fault=fault)
    yield from wrong_end(command, home, life, fault)
    if not any(line.startswith("failed unlink") for line in life.noted):
        yield from (f"leaves litter: {path.name} {life}" for path in home.rglob("*.tmp"))
    try:
        if watch is not None:
            watch.after(life)
        elif before is not None:
            assert load(home, "s") in (before, None), "half a change"
        for _ in range(6):
            if command.is_done(home):
                break
            life = lives.run(home, *again(command, home))
            if watch is not None:
                watch.after(life)
            elif life.code:
                yield f"does not go on: {life}"
        else:
            yield "never comes to its end"
    except AssertionError as error:
        yield f"breaks a promise: {error}"


def wrong_end(command: Command, home: Path, life: Life, fault: Fault) -> Iterator[str]:
    """A command that cannot do its work says so, names the file, and does nothing more (R5.4).

    What `doctor` says is a report of its own, with each problem in its place.
    """
    failed = next((number for number, line in enumerate(life.noted) if line.startswith("failed ")), None)
    if failed is None:
        return
    call = life.noted[failed].removeprefix("failed ")
    told = life.err + life.out
    if life.code == STORAGE:
        if command.words[0] == "doctor":
            return
        if "[LOUSHO_STORAGE_FAILED]" not in told or str(home / ".lousho") not in told:
            yield f"does not name the file: {life}"
        if "Traceback" in told:
            yield f"shows a traceback: {life}"
        if {"asked", "starting"} & set(life.noted[failed + 1 :]) and not call.startswith(UNNEEDED):
            yield f"went on after it: {life}"
    elif life.code == command.code:
        # Another program may have a file open for a moment: a replacement that is refused is tried again.
        tried_again = call.startswith("replace") and fault.error == errno.EACCES
        if call.startswith(NEEDED) and "/locks" not in call and not tried_again:
            yield "failed unnoticed"
        if not command.is_done(home) and command.name != "approve --no-run":
            yield f"says it is done, and is not: {life}"
    elif command.words[0] != "doctor":
        yield f"ends with {life.code}: {life.err}{life.out[:300]}"


def changing(calls: tuple[str, ...]) -> list[int]:
    """Which calls change something."""
    return [number for number, call in enumerate(calls) if call.rpartition(" ")[0] in CHANGING]
