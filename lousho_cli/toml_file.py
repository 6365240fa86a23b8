"""Reading a small TOML file of known keys, with errors that name the file, the line and the key."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import Any

from .errors import ConfigurationError, StorageError
from .regular_file import read_regular

Value = Any
"""A value as TOML has it. What a key holds is checked by its `Key`."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a key may hold.

    Attributes:
        expected: the values it takes, in words: `a whole number, 1 or more`.
        kinds: their types.
        allows: whether a value of those types is one of them; it may raise ValueError to say what is not.
    """

    expected: str
    kinds: tuple[type, ...]
    allows: Callable[[Any], bool]

    def check(self, raw: object) -> Value:
        """Return `raw` if the key may hold it, else raise ValueError."""
        is_one = type(raw) in self.kinds or (isinstance(raw, self.kinds) and not isinstance(raw, bool))
        if is_one and self.allows(raw):
            return raw
        raise ValueError(self.expected)

    def parse(self, text: str) -> Value:
        """The value that text stands for, as in an environment variable; raises ValueError.

        What is neither text nor a whole number is written as JSON.
        """
        if str in self.kinds:
            return self.check(text)
        if self.kinds == (bool,):
            return self.check(_SWITCH.get(text.strip().lower()))
        if self.kinds == (int,):
            return self.check(int(text) if re.fullmatch(r"\s*[0-9]{1,9}\s*", text, re.ASCII) else text)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError(f"{self.expected}, as JSON") from None
        return self.check(value)


_SWITCH = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


@dataclass(frozen=True, slots=True)
class Found:
    """A value in a file, and the file and line it stands in, for messages."""

    value: Value
    where: str


def text() -> Key:
    """A key that holds text."""
    return Key("text that is not blank", (str,), lambda value: bool(value.strip()))


def one_of(*choices: str) -> Key:
    """A key that holds one of some words."""
    return Key(" or ".join(f'"{choice}"' for choice in choices), (str,), choices.__contains__)


def whole_number(minimum: int) -> Key:
    """A key that holds a whole number from `minimum` up."""
    return Key(f"a whole number, {minimum} or more", (int,), lambda value: value >= minimum)


def number(minimum: float, *, above: bool = False) -> Key:
    """A key that holds a number from `minimum` up, or above it."""
    words = f"a number above {minimum:g}" if above else f"a number, {minimum:g} or more"
    return Key(
        words,
        (int, float),
        lambda value: value < inf and (value > minimum if above else value >= minimum),
    )


def yes_or_no() -> Key:
    """A key that holds true or false."""
    return Key("true or false", (bool,), lambda value: True)


def texts() -> Key:
    """A key that holds a list of texts."""
    return Key("a list of texts", (list,), lambda value: all(isinstance(each, str) for each in value))


def any_table() -> Key:
    """A key that holds a table of whatever there is."""
    return Key("a table", (dict,), lambda value: True)


def texts_by_name() -> Key:
    """A key that holds a table of texts."""
    return Key(
        'texts by name, like { X-Team = "blue" }',
        (dict,),
        lambda value: all(isinstance(each, str) for each in value.values()),
    )


def tables(keys: Mapping[str, Key]) -> Key:
    """A key that holds tables by name, each of known keys."""
    each = table(keys)

    def allows(value: Mapping[str, object]) -> bool:
        for name, raw in value.items():
            try:
                each.check(raw)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return True

    return Key(f"tables by name, each with {', '.join(keys)}", (dict,), allows)


def table(keys: Mapping[str, Key]) -> Key:
    """A key that holds a table of known keys."""

    def allows(value: Mapping[str, object]) -> bool:
        for name, raw in value.items():
            if name not in keys:
                raise ValueError(f"no {name!r}: {_suggestion(name, keys)}")
            try:
                keys[name].check(raw)
            except ValueError as error:
                raise ValueError(f"{name} only as {error}, not {raw!r}") from None
        return True

    return Key(f"a table with {', '.join(keys)}", (dict,), allows)


def read_toml(file: Path, keys: Mapping[str, Key], tables: Collection[str] = ()) -> dict[str, Found]:
    """The keys set in `file`, checked against those it may have.

    Args:
        tables: names of tables it may have too, which `read_tables` reads.

    Raises:
        FileNotFoundError: there is no such file.
        ConfigurationError: it is not TOML, or has an unknown key or a wrong value; the place is named.
        StorageError: it cannot be read.
    """
    content = read_text(file)
    table = _parsed(file, content)
    found = {}
    for name, raw in table.items():
        if name in tables:
            continue
        where = _where(file, content, name)
        if name not in keys:
            raise ConfigurationError(
                f"{where}: unknown key {name!r}", hint=_suggestion(name, [*keys, *tables])
            )
        try:
            found[name] = Found(keys[name].check(raw), where)
        except ValueError as error:
            raise ConfigurationError(
                f"{where}: {name} cannot be {raw!r}", hint=f"{name} takes {error}"
            ) from error
    return found


def read_tables(file: Path, table: str, keys: Mapping[str, Key]) -> dict[str, dict[str, Any]]:
    """The tables `[table.NAME]` of `file` by name, each with the keys it sets.

    Raises:
        FileNotFoundError, ConfigurationError, StorageError: as `read_toml`.
    """
    content = read_text(file)
    named = _parsed(file, content).get(table, {})
    where = _where(file, content, table)
    if not isinstance(named, dict):
        raise ConfigurationError(f"{where}: {table} is no table", hint=f"write [{table}.NAME]")
    for name, values in named.items():
        place = f"{where}: [{table}.{name}]"
        if not isinstance(values, dict):
            raise ConfigurationError(f"{place} is no table", hint=f"write [{table}.NAME] above its keys")
        check_table(place, values, keys)
    return named


def check_table(place: str, values: Mapping[str, object], keys: Mapping[str, Key]) -> None:
    """See that a table has known keys only, and what they may hold.

    Args:
        place: where it is, for messages.

    Raises:
        ConfigurationError: it has others.
    """
    for key, value in values.items():
        if key not in keys:
            raise ConfigurationError(f"{place}: unknown key {key!r}", hint=_suggestion(key, keys))
        try:
            keys[key].check(value)
        except ValueError as error:
            # What it holds may be a secret in the wrong place, so it is not shown.
            raise ConfigurationError(f"{place}: {key} is wrong", hint=f"{key} takes {error}") from None


def _parsed(file: Path, content: str) -> dict[str, Any]:
    try:
        return tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits is a ValueError of its own.
        raise ConfigurationError(f"{file} is not valid TOML: {error}", hint="correct the file") from error


def read_text(file: Path) -> str:
    """The text of a UTF-8 file, a byte-order mark left out and line ends as `\\n`.

    Raises:
        FileNotFoundError: there is no such file.
        ConfigurationError: it is not UTF-8.
        StorageError: it cannot be read.
    """
    try:
        text = read_regular(file).decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{file} is not UTF-8 text (byte {error.start})", hint="save the file as UTF-8"
        ) from error
    except OSError as error:
        raise StorageError(
            f"{file} cannot be read: {error.strerror}", hint="check that it is a file you may read"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _where(file: Path, content: str, name: str) -> str:
    """`file, line n` of the first statement that sets `name`, or the file alone if it is not to be found."""
    written = re.escape(name)
    statement = re.compile(rf"""\s*(\[+\s*)?(?:{written}|"{written}"|'{written}')\s*[\].=]""")
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if statement.match(line) and _is_complete("".join(lines[:number])):
            return f"{file}, line {number + 1}"
    return str(file)


def _is_complete(head: str) -> bool:
    """Whether a file may end here; false within a text of several lines."""
    try:
        tomllib.loads(head)
    except (ValueError, RecursionError):
        return False
    return True


def _suggestion(name: str, keys: Iterable[str]) -> str:
    keys = list(keys)
    close = get_close_matches(name, keys, n=1)
    known = f"known keys: {', '.join(keys)}"
    return f"did you mean {close[0]!r}? {known}" if close else known
