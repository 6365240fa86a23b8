"""A terminal that is typed into, as the reader of a document does."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import secrets
import select
import shlex
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

COLUMNS, LINES = 100, 40

# Ends the script at its first failing command but leaves the shell, its folder and its variables alive.
_STOP_AT_FAILURE = "set -E -o pipefail; trap 'return $?' ERR"
_GO_ON_AT_FAILURE = "trap - ERR; set +E +o pipefail"


class TerminalError(Exception):
    """The shell ended, or did not come back in time."""


@dataclass(frozen=True)
class Outcome:
    """What a command printed, stdout and stderr as they came, and its exit code."""

    output: str
    code: int


class Terminal:
    """One bash session. The folder and the variables a command sets are there for the next one.

    Commands write to a real terminal, as the document shows what is seen on one, but find nobody who answers.

    Args:
        folder: where it starts.
        private: a folder for the session's own files, outside `folder`.
        environment: the variables it starts with.
        seconds: how long one command may take.
    """

    def __init__(
        self, folder: Path, private: Path, environment: Mapping[str, str], *, seconds: float = 60
    ) -> None:
        self._script = private / "command.sh"
        self._seconds = seconds
        self._last_code = 0
        self._screen, self._tty = _open_screen()
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env={**environment, "TERM": "dumb", "COLUMNS": str(COLUMNS), "LINES": str(LINES)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def run(self, command: str, *, stop_at_failure: bool = False) -> Outcome:
        """Type `command`; with `stop_at_failure` its lines after the first that fails are not run.

        Raises:
            TerminalError: the command ended the shell or took too long.
        """
        before, after = f"(exit {self._last_code})", ":"
        if stop_at_failure:
            before, after = _STOP_AT_FAILURE, _GO_ON_AT_FAILURE
        self._script.write_text(f"{before}\n{command}\n", encoding="utf-8")
        # The mark goes through the terminal too, so that it comes after all that the command printed.
        mark = f"[{secrets.token_hex(8)}]"
        script, tty = shlex.quote(str(self._script)), shlex.quote(os.ttyname(self._tty))
        self._type(f". {script} >{tty} 2>&1 </dev/null; __code=$?; {after}; echo '{mark}'$__code. >{tty}\n")
        output, self._last_code = self._read_until(mark)
        return Outcome(output, self._last_code)

    def close(self) -> None:
        """End the shell and whatever it left running."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        self._input.close()
        os.close(self._screen)
        os.close(self._tty)

    @property
    def _input(self) -> IO[bytes]:
        return cast(IO[bytes], self._shell.stdin)

    def _type(self, line: str) -> None:
        self._input.write(line.encode())
        self._input.flush()

    def _read_until(self, mark: str) -> tuple[str, int]:
        seen = b""
        deadline = time.monotonic() + self._seconds
        while True:
            output, found, code = seen.partition(mark.encode())
            if found and code.endswith(b".\n"):
                return output.decode("utf-8", errors="replace"), int(code[:-2])
            readable, _, _ = select.select([self._screen], [], [], 0.05)
            if readable:
                seen += os.read(self._screen, 65536)
            elif self._shell.poll() is not None:
                raise TerminalError("ended the shell")
            elif time.monotonic() > deadline:
                raise TerminalError(f"did not end within {self._seconds:g} s")


def _open_screen() -> tuple[int, int]:
    """The two ends of a terminal that passes on what is written to it as it is."""
    screen, tty = pty.openpty()
    modes = termios.tcgetattr(tty)
    modes[1] &= ~termios.OPOST
    termios.tcsetattr(tty, termios.TCSANOW, modes)
    fcntl.ioctl(tty, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    return screen, tty
