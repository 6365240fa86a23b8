"""The line of a TOML file in which a key stands: the reader of the file does not say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence

Path = Sequence[str | int]

_HEADER = re.compile(r"\s*(\[\[?)(.+?)\]\]?\s*(#.*)?$")
_STATEMENT = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_KEY = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def line_of(content: str, path: Path) -> int | None:
    """The line, from 1, of the statement that sets `path` (`["cases", 0, "label"]`), or of what holds it.

    A key within an inline table or a list has the line of the statement around it. None if nothing is found.
    """
    best, line = 0, None
    for number, found in _statements(content):
        depth = _common(found, path)
        if depth == len(found) and depth > best:
            best, line = depth, number
    return line


def _statements(content: str) -> Iterator[tuple[int, list[str | int]]]:
    """Each table header and each statement: its line, and the path it sets."""
    table: list[str | int] = []
    counts: dict[tuple[str | int, ...], int] = {}
    head: list[str] = []
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        match, statement = _HEADER.match(line), _STATEMENT.match(line)
        if (match or statement) and _is_complete("".join(head)):
            if match:
                table = _resolved(_keys(match[2]), counts)
                if match[1] == "[[":
                    key = tuple(table)
                    counts[key] = counts.get(key, -1) + 1
                    table = [*table, counts[key]]
                yield number, table
            elif statement:
                yield number, [*table, *_keys(statement[1])]
        head.append(line)


def _resolved(keys: list[str], counts: dict[tuple[str | int, ...], int]) -> list[str | int]:
    """The keys of a header with the number of the present element behind each list of tables but the last."""
    path: list[str | int] = []
    for index, key in enumerate(keys):
        path.append(key)
        if index < len(keys) - 1 and tuple(path) in counts:
            path.append(counts[tuple(path)])
    return path


def _keys(text: str) -> list[str]:
    return [key.strip("\"'") for key in _KEY.findall(text)]


def _common(found: Path, path: Path) -> int:
    count = 0
    for one, other in zip(found, path, strict=False):
        if one != other:
            break
        count += 1
    return count


def _is_complete(head: str) -> bool:
    """Whether a statement may begin here; false within a text or a list of several lines."""
    try:
        tomllib.loads(head)
    except (ValueError, RecursionError):
        return False
    return True
