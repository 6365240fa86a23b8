"""Text from models, tools, files and ids, made safe to show; and times a person reads at a glance."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_UNSAFE = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
_IN_TEXT = re.compile(f"[{_UNSAFE}]")
_IN_LINE = re.compile(rf"[\t\n{_UNSAFE}]")
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def escape(text: str) -> str:
    r"""`text` with control and invisible format characters shown as `\x1b` or `\u202e`.

    Newline and tab stay, and so do the joiners inside words and emoji. Lone surrogates, which no terminal
    can be sent, are shown too. A carriage return is a control.
    """
    if text.isascii() and text.isprintable():
        return text
    return _IN_TEXT.sub(_shown, text)


def escape_line(text: str) -> str:
    r"""Like `escape`, with newline and tab shown as `\n` and `\t`: the result is one line and one field."""
    if text.isascii() and text.isprintable():
        return text
    return _IN_LINE.sub(_shown, text)


def escape_json(text: str) -> str:
    r"""JSON text with the same characters as JSON escapes (`\u001b`), so that it stays the same JSON.

    Newlines and tabs between values stay; inside strings an encoder has escaped them already.
    """
    return _IN_TEXT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _shown(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    return _NAMED.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def ago(iso: str, now: datetime) -> str:
    """How long before `now` (aware) the ISO 8601 instant `iso` was: `12s ago`, `3h ago`, `in 5m`.

    A year and more is shown as the date. What is no instant is shown as it is.
    """
    try:
        then = datetime.fromisoformat(iso)
    except ValueError:
        return escape_line(iso)
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    seconds = (now - then).total_seconds()
    if abs(seconds) >= 365 * 86400:
        return then.date().isoformat()
    if abs(seconds) < 1:
        return "now"
    size = _coarse(int(abs(seconds)))
    return f"{size} ago" if seconds > 0 else f"in {size}"


def _coarse(seconds: int) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def size(count: int) -> str:
    """A number of bytes: `812 B`, `4.1 kB`, `3.0 MB`."""
    if count < 1000:
        return f"{count} B"
    value, units = count / 1000, ["TB", "GB", "MB", "kB"]
    while value >= 999.95 and len(units) > 1:
        value /= 1000
        units.pop()
    return f"{value:.1f} {units[-1]}"


def duration(seconds: float) -> str:
    """A length of time: `40ms`, `1.5s`, `12s`, `1m 05s`, `2h 03m`."""
    if seconds < 0.0995:
        return f"{max(0, round(seconds * 1000))}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
