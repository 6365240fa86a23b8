"""The least that durable saves can cost here: bytes appended and forced to disk, nothing else."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path


class BareAppend:
    """Appends lines to one file, each with a data sync.

    Args:
        path: the file.
        lines: what each save writes, from the first on; again from the start when they run out.
    """

    def __init__(self, path: Path, lines: Sequence[bytes]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._lines = lines
        self._next = 0

    def run(self, saves: int) -> None:
        fd, lines, count = self._fd, self._lines, len(self._lines)
        for n in range(self._next, self._next + saves):
            os.write(fd, lines[n % count])
            os.fdatasync(fd)
        self._next += saves

    def close(self) -> None:
        os.close(self._fd)


def threads_per_second(folder: Path, lines: Sequence[bytes], threads: int, saves: int) -> float:
    """Saves per second of `threads` threads that append to a file each, `saves` in all."""
    bare = [BareAppend(folder / f"bare-{n}", lines) for n in range(threads)]
    workers = [threading.Thread(target=one.run, args=(saves // threads,)) for one in bare]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - began
    for one in bare:
        one.close()
    return saves // threads * threads / seconds
