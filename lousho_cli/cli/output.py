"""Printing: data goes to stdout, everything else to stderr, and no text can steer the terminal."""

from __future__ import annotations

import json
import sys

from ..render.text import escape, escape_json


def print_json(value: object) -> None:
    """Print one JSON document on stdout, in ASCII: control and format characters are JSON escapes."""
    sys.stdout.write(escape_json(json.dumps(value, indent=2, allow_nan=False)) + "\n")


def print_text(text: str) -> None:
    """Print text for people on stdout, control and format characters shown escaped."""
    sys.stdout.write(escape(text) + "\n")


def notice(text: str) -> None:
    """Print on stderr what is not data: progress, advice, warnings, errors."""
    sys.stderr.write(escape(text) + "\n")
