"""What the tools of a server are called: `NAME_tool`, as every provider takes it."""

from __future__ import annotations

import hashlib
import re

MAX_CHARS = 64
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = 6


def tool_name(server: str, tool: str) -> str:
    """The name the model calls a server's tool by: at most 64 letters, digits, `_` and `-`.

    One that has other characters or is too long is changed and cut, and ends with six digits of a hash of the
    server's name for it, so that two tools never become one.
    """
    name = f"{server}_{_FORBIDDEN.sub('_', tool)}"
    if name == f"{server}_{tool}" and len(name) <= MAX_CHARS:
        return name
    digits = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name[: MAX_CHARS - _DIGITS - 1]}_{digits}"
