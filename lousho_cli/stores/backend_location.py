"""What the setting `store` may say: which kind of store, and where it is. A URL may hold a password."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

EXAMPLES = {
    "file": "file",
    "sqlite": "sqlite:PATH",
    "redis": "redis://HOST:PORT/DATABASE",
    "rediss": "rediss://HOST:PORT/DATABASE",
    "valkey": "valkey://HOST:PORT/DATABASE",
}
"""How each kind is written, by what it begins with."""

_SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """A store that was named.

    Attributes:
        kind: what keeps the sessions; Valkey speaks as Redis does.
        target: the path of a SQLite file as it was written, the URL of a server, or nothing.
    """

    kind: Literal["file", "sqlite", "redis"]
    target: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """The target without user, password and options."""
        if self.kind != "redis":
            return self.target
        url = urlsplit(self.target)
        return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def parse_location(text: str) -> StoreLocation:
    """The store that a setting names.

    Raises:
        ValueError: it names none; the text says what is possible, and nothing of what was written.
    """
    scheme, colon, rest = text.partition(":")
    if text == "file":
        return StoreLocation("file")
    if scheme == "sqlite" and Path(rest).name and not rest.startswith(("//", ":")):
        return StoreLocation("sqlite", rest)
    if scheme in ("redis", "rediss", "valkey") and rest.startswith("//"):
        problem = _url_problem(text)
        if problem is not None:
            raise ValueError(f'"{EXAMPLES[scheme]}"; {problem}')
        return StoreLocation("redis", text)
    raise ValueError(_possible(text, scheme if colon else text))


def hide_credentials(text: str) -> str:
    """A wrong setting as it may be shown: of what could be a URL only how it begins."""
    scheme, colon, _ = text.partition(":")
    if scheme in ("file", "sqlite"):
        return text
    return f"{scheme}:..." if colon else text


def _url_problem(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        whole = parts.port != 0 and ("@" in parts.netloc) == ("@" in url)
    except ValueError:
        # The parser's own message quotes a part of it, which may be the password.
        whole = False
    if not whole:
        return "in a user or password, write / as %2F, # as %23, ? as %3F and @ as %40; the port is a number"
    database = parts.path.strip("/")
    if database and not (database.isascii() and database.isdigit()):
        return "the database is a number"
    return None


def _possible(text: str, scheme: str) -> str:
    forms = " or ".join(f'"{example}"' for example in EXAMPLES.values())
    close = get_close_matches(scheme, EXAMPLES, n=1)
    if not close and text.endswith(_SQLITE_SUFFIXES) and "@" not in text:
        close = ["sqlite"]
    return f'{forms}; did you mean "{EXAMPLES[close[0]]}"?' if close else forms
