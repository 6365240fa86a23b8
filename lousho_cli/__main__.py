"""The command `lousho`, and `python -m lousho_cli`."""

from __future__ import annotations

import os
import sys

from ._version import __version__


def main() -> None:
    """Run the command line and exit with its code. A reader that has gone away ends it quietly, with 1."""
    _open_closed_streams()
    try:
        code = _run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffer would raise again when the interpreter flushes it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except KeyboardInterrupt:
        # While the command line itself is being imported; a command reports its own.
        code = 130
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write(f"standard output could not be written: {error.strerror}. [LOUSHO_STORAGE_FAILED]\n")
        code = 7
    sys.exit(code)


def _open_closed_streams() -> None:
    """Give a process without standard streams empty ones, or the next files would get their numbers."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        # Answered before anything heavy is imported: scripts and prompts ask for it often.
        print(f"lousho {__version__}")
        return 0
    from .cli.app import run

    return run(arguments)


if __name__ == "__main__":
    main()
