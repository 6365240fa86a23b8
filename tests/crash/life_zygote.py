"""Run as a program: a process that has `lousho` imported, and forks a child for each command it is asked for.

Each child runs the command line's real entry point, as a process of its own. Reads a JSON line for each and
answers with one. Most of a command's time goes into starting Python and importing: a child saves that.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NoReturn

from life_calls import Fault, FileCalls

from lousho_cli import __main__ as program
from lousho_cli.execution.triggers import watching

Data = dict[str, Any]
NOTED = {"model.asking": "asked", "call.starting": "starting"}


class Zygote:
    """Serves one command at a time."""

    def __init__(self, streams: list[IO[bytes]]) -> None:
        self._streams = streams

    def warm_up(self, folder: str, commands: list[list[str]]) -> None:
        """Import what commands import, by running some in this very process."""
        os.chdir(folder)
        with Path(os.devnull).open("w") as nowhere:
            real = sys.stdout, sys.stderr
            sys.stdout = sys.stderr = nowhere
            try:
                for words in commands:
                    run_program(words)
            finally:
                sys.stdout, sys.stderr = real
        gc.collect()
        gc.freeze()

    def serve(self, asked: Data) -> Data:
        for stream in self._streams:
            stream.seek(0)
            stream.truncate()
        alive, ends = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(alive)
            self._be(asked)
        os.close(ends)
        after = asked.get("after")
        # The pipe ends with the child.
        if not select.select([alive], [], [], after)[0]:
            os.kill(child, signal.SIGKILL)
        os.close(alive)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out, err, calls = (self._text(stream) for stream in self._streams)
        return {"code": code, "out": out, "err": err, "calls": calls.split("\n")[:-1]}

    def _text(self, stream: IO[bytes]) -> str:
        stream.seek(0)
        return stream.read().decode()

    def _be(self, asked: Data) -> NoReturn:
        code = 70
        try:
            for number, stream in enumerate(self._streams[:2], 1):
                os.dup2(stream.fileno(), number)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.chdir(asked["cwd"])
            code = self._life(asked)
        finally:
            os._exit(code)

    def _life(self, asked: Data) -> int:
        ledger = os.open(asked["ledger"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        write = os.write

        def note(line: str) -> None:
            write(ledger, f"{line}\n".encode())

        calls = None
        if "calls" in asked:
            fault = asked["calls"]["fault"]
            calls = FileCalls(Path(asked["calls"]["root"]), Fault(**fault) if fault else None, note)
            calls.take_over()
        with watching(watcher(note, asked.get("die_at", ()), asked.get("nth", 1))):
            code = run_program(asked["words"])
        if calls is not None:
            write(self._streams[2].fileno(), "".join(f"{call}\n" for call in list(calls.made)).encode())
        return code


def watcher(note: Callable[[str], None], die_at: Sequence[str], nth: int) -> Callable[[str], None]:
    """Notes what is begun, and kills the process when it passes a point for the n-th time."""
    passed: Counter[str] = Counter()

    def watch(point: str) -> None:
        passed[point] += 1
        if point in NOTED:
            note(NOTED[point])
        if point in die_at and passed[point] == nth:
            note(f"died {point}")
            os.kill(os.getpid(), signal.SIGKILL)

    return watch


def run_program(words: list[str]) -> int:
    """`lousho WORDS`; its exit code."""
    sys.argv = ["lousho", *words]
    try:
        program.main()
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        return end.code if isinstance(end.code, int) else 0
    return 0


def main() -> None:
    with ExitStack() as stack:
        zygote = Zygote([stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)])
        zygote.warm_up(sys.argv[1], json.loads(sys.argv[2]))
        for line in sys.stdin:
            print(json.dumps(zygote.serve(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
