"""What a durable save in files costs, beside a bare loop that appends and syncs the same bytes.

    python -m benchmarks.file_saves [TURNS ...]      default: 100 1000 3000

A table: the ratio of the two for async and for sync tools, and whether the end of a run costs what its
beginning did; then bytes, memory, what the system was asked for, and many sessions at once.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from . import bounds, workload
from .lousho_file import Run, journal_lines, sessions_per_second
from .workload import Segments

PIECE = 50
_TRACED = "write,pwrite64,fdatasync,fsync,rename,fallocate,ftruncate"


@dataclass(frozen=True)
class SideBySide:
    """A run that took turns with a bare loop.

    Attributes:
        ratio: of the wall time a save, the median over the pieces.
        ours, bare: milliseconds of wall time a save, medians.
        cpu, bare_cpu: milliseconds of CPU time a save, medians.
        late: CPU time of the last tenth of the run over that of its first.
    """

    ratio: float
    ours: float
    bare: float
    cpu: float
    bare_cpu: float
    late: float


def side_by_side(folder: Path, turns: int, *, sync_tools: bool = False, piece: int = PIECE) -> SideBySide:
    """Run a session, and after every `piece` turns a bare loop over as many saves, on the same disk."""
    bare = bounds.BareAppend(folder / "bare", journal_lines(folder / "lines"))
    theirs = Segments(piece)

    def between() -> None:
        theirs.start()
        bare.run(2 * piece)
        theirs.stop()

    run = Run(folder / "run", turns, sync_tools=sync_tools, piece=piece, between=between)
    asyncio.run(run.execute())
    bare.close()
    pieces = len(theirs.wall)
    ours, tenth = run.segments, max(1, pieces // 10)
    milliseconds = 1000 / (2 * piece)
    return SideBySide(
        ratio=workload.ratio(ours.wall[:pieces], theirs.wall),
        ours=median(ours.wall[:pieces]) * milliseconds,
        bare=median(theirs.wall) * milliseconds,
        cpu=median(ours.cpu[:pieces]) * milliseconds,
        bare_cpu=median(theirs.cpu) * milliseconds,
        late=median(ours.cpu[pieces - tenth : pieces]) / median(ours.cpu[:tenth]),
    )


def asked_of_the_system(folder: Path, turns: int) -> Counter[str] | None:
    """How often each call was made in one whole run, by name; None where it cannot be traced."""
    log = folder / "calls"
    code = f"import asyncio; from benchmarks.lousho_file import Run; from pathlib import Path; \
asyncio.run(Run(Path({str(folder / 'traced')!r}), {turns}).execute())"
    command = ["strace", "-f", "-o", str(log), "-e", f"trace={_TRACED}", sys.executable, "-c", code]
    if shutil.which("strace") is None or subprocess.run(command, check=False).returncode:
        return None
    return Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE))


def size_of(folder: Path) -> int:
    """The bytes that the files of a folder take on the disk."""
    return sum(os.lstat(path).st_blocks * 512 for path in folder.rglob("*"))


def memory_at_its_most(folder: Path, turns: int) -> int:
    """The most memory a run needs, in bytes."""
    run = Run(folder / "memory", turns)
    with workload.peak_memory() as peak:
        asyncio.run(run.execute())
    return peak.bytes


def main() -> None:
    sizes = [int(each) for each in sys.argv[1:]] or [100, 1000, 3000]
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        print("turns   tools  ratio  ms a save: ours  bare   CPU: ours  bare   end / beginning")
        for turns in sizes:
            for sync in (False, True):
                here = folder / f"{turns}-{sync}"
                got = side_by_side(here, turns, sync_tools=sync, piece=min(PIECE, turns // 4))
                print(
                    f"{turns:<7} {'sync' if sync else 'async':<6} {got.ratio:5.2f}  {got.ours:15.3f} "
                    f"{got.bare:5.3f}  {got.cpu:10.3f} {got.bare_cpu:5.3f}  {got.late:8.2f}",
                    flush=True,
                )
                shutil.rmtree(here)
        turns = 1000
        text = workload.transcript_bytes(turns)
        memory = memory_at_its_most(folder, turns)
        print(
            f"{turns} turns: on disk {size_of(folder / 'memory') / text:.2f} of the transcript as JSON,",
            end=" ",
        )
        print(f"memory {memory / text:.2f} of it")
        print(f"calls: {dict(asked_of_the_system(folder, turns) or {})}")
        bare = bounds.threads_per_second(folder, journal_lines(folder / "lines"), 16, 3200)
        ours = 2 * sessions_per_second(folder / "crowd", 16, 100)
        print(f"16 sessions: {ours:.0f} saves/s, 16 bare threads: {bare:.0f}, ratio {ours / bare:.2f}")
        rate = sessions_per_second(folder / "waiting", 200, 10, latency=1.0)
        print(f"200 sessions with a model of 1 s: {rate / 200:.0%} of what would be ideal")


if __name__ == "__main__":
    main()
