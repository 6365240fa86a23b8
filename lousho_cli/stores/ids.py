"""Session and agent ids, and the file names that stand for them.

A file name keeps lower-case letters, digits, `.`, `_` and `-` as they are, writes a capital as `+` and its
lower-case letter, and everything else as the UTF-8 bytes in `%xx`. So no two ids share a name, not even on a
file system that ignores case or composes accents, and no id can name another folder.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from urllib.parse import unquote_to_bytes

from ..errors import ConfigurationError

MAX_ID_LENGTH = 200
"""Characters an id may have."""

MAX_NAME_LENGTH = 160
"""Characters of the longest file-name stem; leaves room for an extension and a temporary file's mark."""

_READABLE_PREFIX = 80
_KEPT = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")
_PLAIN = re.compile(r"[a-z0-9_-](?:[a-z0-9._-]{0,158}[a-z0-9_-])?")
"""Ids that are their own file names, unless they are reserved."""
_RESERVED_ON_WINDOWS = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")


def check_id(id: str, what: str = "session") -> str:
    """Return `id` if it may name a session or an agent.

    Any text of 1 to 200 characters may, unless it has a control character, half of a surrogate pair, or is
    made of dots only.

    Args:
        id: the id as it was typed or stored.
        what: what it names, for the message.

    Raises:
        ConfigurationError: it may not; code `LOUSHO_SESSION_ID_INVALID`. The message shows the id escaped.
    """
    problem = _problem(id)
    if problem is None:
        return id
    shown = repr(id[:MAX_ID_LENGTH]) + ("..." if len(id) > MAX_ID_LENGTH else "")
    raise ConfigurationError(
        f"{shown} cannot be {'an' if what[:1] in 'aeiou' else 'a'} {what} id: {problem}",
        code="LOUSHO_SESSION_ID_INVALID",
        hint=f"use 1 to {MAX_ID_LENGTH} characters without control characters, and not only dots",
    )


def encode_id(id: str) -> str:
    """The file-name stem that stands for `id`: at most 160 characters of `a-z 0-9 . _ - + % ~`.

    A name longer than that is cut to a readable prefix, `~` and a hash; the file has to say the id itself.

    Raises:
        ConfigurationError: `id` is not one (see `check_id`).
    """
    if _is_plain(id):
        return id
    check_id(id)
    parts = [_encode_character(character) for character in id]
    for end in (0, -1):
        if parts[end] == ".":
            parts[end] = "%2e"
    name = "".join(parts)
    if _RESERVED_ON_WINDOWS.match(name):
        name = f"%{ord(name[0]):02x}{name[1:]}"
    if len(name) <= MAX_NAME_LENGTH:
        return name
    return f"{_whole_escapes(name[:_READABLE_PREFIX])}~{hashlib.sha256(id.encode()).hexdigest()[:32]}"


def decode_id(name: str) -> str | None:
    """The id that `encode_id` turned into `name`, or None if it is hashed or is not one of its names."""
    if _is_plain(name):
        return name
    unfolded = re.sub(r"\+([a-z])", lambda match: match[1].upper(), name)
    try:
        id = unquote_to_bytes(unfolded).decode()
    except UnicodeError:
        return None
    return id if _problem(id) is None and encode_id(id) == name else None


def _is_plain(id: str) -> bool:
    return _PLAIN.fullmatch(id) is not None and not _RESERVED_ON_WINDOWS.match(id)


def _problem(id: str) -> str | None:
    if not id:
        return "it is empty"
    if len(id) > MAX_ID_LENGTH:
        return f"it has {len(id)} characters"
    for character in id:
        category = unicodedata.category(character)
        if category == "Cc":
            return "it has a control character"
        if category == "Cs":
            return "it has half of a surrogate pair"
    if not id.strip("."):
        return "it is made of dots only"
    return None


def _encode_character(character: str) -> str:
    if character in _KEPT:
        return character
    if "A" <= character <= "Z":
        return "+" + character.lower()
    return "".join(f"%{byte:02x}" for byte in character.encode())


def _whole_escapes(prefix: str) -> str:
    return re.sub(r"(\+|%[0-9a-f]?)$", "", prefix)
