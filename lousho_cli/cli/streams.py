"""The process's streams while an agent's code runs: tools can neither mix into the data nor eat the input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


def read_message(given: str | None) -> str | None:
    """The message of a command line; `-` reads all of standard input.

    Raises:
        ConfigurationError: standard input is not UTF-8.
    """
    if given != "-":
        return given
    from ..errors import ConfigurationError

    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"standard input is not UTF-8: {error}", hint="convert it first") from error
    return text.removesuffix("\n").removesuffix("\r")


@contextmanager
def private_stdout() -> Iterator[TextIO]:
    """Standard output for lousho alone: what tools print goes to standard error, also from their children."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    try:
        ours = os.dup(1)
    except OSError:
        yield sys.stdout
        return
    os.dup2(2, 1)
    stream = _text_stream(ours)
    # A tool may even close it: it gets one of its own.
    before, sys.stdout = sys.stdout, _text_stream(os.dup(2))
    try:
        with _quiet_stdin():
            yield stream
    finally:
        theirs, sys.stdout = sys.stdout, before
        with suppress(OSError, ValueError):
            theirs.close()
        try:
            stream.flush()
        finally:
            os.dup2(ours, 1)
            with suppress(OSError):
                stream.close()


def _text_stream(fd: int) -> TextIO:
    encoding = sys.stdout.encoding or "utf-8"
    return os.fdopen(fd, "w", encoding=encoding, errors="backslashreplace", buffering=1)


@contextmanager
def _quiet_stdin() -> Iterator[None]:
    """Leave a script's input alone: while tools run, standard input is empty unless it is a terminal."""
    try:
        if os.isatty(0):
            yield
            return
        ours = os.dup(0)
    except OSError:
        yield
        return
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    try:
        yield
    finally:
        os.dup2(ours, 0)
        os.close(ours)
