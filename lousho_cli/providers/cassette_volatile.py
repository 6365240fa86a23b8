"""What changes from run to run and does not make a request another one.

    what                                               becomes
    ids of tool calls                                  call_1, call_2, ... by their place in the transcript
    UUIDs                                              <uuid>
    instants with seconds: 2026-01-31T09:30:00Z,       <instant>
      also with a space for the T, a fraction, a zone
    paths in a folder for temporary files              <tmp>, and the file's name if it has an ending:
                                                       <tmp>/report.txt
    lengths of time: 12 ms, 0.53 s, 1.5 seconds        <duration>

Dates, times of day without seconds, and whole seconds are kept: people mean them. Add your own patterns with
`volatile`: what they match becomes <volatile>.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable

from ..errors import ConfigurationError

_UUID = r"(?P<uuid>\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b)"
_INSTANT = (
    r"(?P<instant>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"(?: ?Z\b| ?UTC\b|[+-]\d\d(?::?\d\d)?)?(?!\d))"
)
_DURATION = (
    r"(?P<duration>(?<![\w.])(?:\d+(?:\.\d+)? ?(?:ms|µs|us|ns|milliseconds)|\d+\.\d+ ?(?:s|secs?|seconds))\b)"
)
_TEMPORARY_FOLDERS = (
    r"(?:/private)?/tmp",
    r"(?:/private)?/var/tmp",
    r"(?:/private)?/var/folders/\w+/\w+/T",
    r"[A-Za-z]:[\\/]Users[\\/][^\\/\s\"']+[\\/]AppData[\\/]Local[\\/]Temp",
    r"[A-Za-z]:[\\/](?:Windows[\\/])?Temp",
)
KNOWN = (
    ("ids of tool calls", "call_1, call_2, ... by their place"),
    ("UUIDs", "<uuid>"),
    ("instants with seconds", "<instant>"),
    ("paths in a folder for temporary files", "<tmp>"),
    ("lengths of time", "<duration>"),
)
"""What is replaced, in words, and what it becomes."""

_TEMPORARY_NAME = re.compile(r"^tmp\w{6,}|\d{4,}")


class Volatile:
    """Replaces what changes from run to run.

    Args:
        patterns: regular expressions of your own.

    Raises:
        ConfigurationError: a pattern is none.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._own = [_compiled(pattern) for pattern in patterns]
        folders = "|".join((*_TEMPORARY_FOLDERS, re.escape(tempfile.gettempdir())))
        path = rf"(?P<path>(?<![\w/.])(?:{folders})(?:[\\/][^\\/\s\"'<>|:*?,;)\]}}]+)+)"
        self._known = re.compile("|".join((_UUID, _INSTANT, path, _DURATION)))

    def text(self, text: str) -> str:
        for pattern in self._own:
            text = pattern.sub("<volatile>", text)
        return self._known.sub(_placeholder, text)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(
            f"the volatile pattern {pattern!r} is no regular expression: {error}",
            hint="correct it, or escape its special characters",
        ) from error


def _placeholder(match: re.Match[str]) -> str:
    if match.lastgroup != "path":
        return f"<{match.lastgroup}>"
    name = re.split(r"[\\/]", match["path"])[-1]
    stem, dot, ending = name.rpartition(".")
    kept = dot and stem and ending and not _TEMPORARY_NAME.search(name)
    return f"<tmp>/{name}" if kept else "<tmp>"
