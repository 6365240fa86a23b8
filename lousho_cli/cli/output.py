"""Printing: data goes to stdout, everything else to stderr, and no text can steer the terminal."""

from __future__ import annotations

import json
import sys
from typing import TextIO

from ..render.text import escape, escape_json


class OutputFailed(OSError):
    """Standard output could not be written: its disk is full, for instance."""


def print_json(value: object) -> None:
    """Print one JSON document on stdout, in ASCII: control and format characters are JSON escapes."""
    write_out(sys.stdout, escape_json(json.dumps(value, indent=2, allow_nan=False)) + "\n")


def print_text(text: str) -> None:
    """Print text for people on stdout, control and format characters shown escaped."""
    write_out(sys.stdout, escape(text) + "\n")


def write_out(stream: TextIO, text: str) -> None:
    """Write data.

    Raises:
        BrokenPipeError: the reader has gone away.
        OutputFailed: it cannot be written.
    """
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(error.errno, error.strerror) from error


def notice(text: str) -> None:
    """Print on stderr what is not data: progress, advice, warnings, errors."""
    sys.stderr.write(escape(text) + "\n")
