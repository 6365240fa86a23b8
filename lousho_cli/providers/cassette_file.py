"""Reading and writing the file of a cassette: plain JSON for people, diffs and version control.

UTF-8, indented by two spaces, lines end in a line feed. What could hide in a diff (control and invisible
format characters) is written as JSON escapes.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import CassetteError, StorageError

MODE = 0o644
LARGEST = 16 * 1024 * 1024
"""Bytes. A file is held in memory as a whole, and its values take many times as much."""
DEEPEST = 300

_NOT_FOLLOWED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_HIDDEN = re.compile("[\x7f-\x9f\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


def read_json(path: Path) -> Any:
    """The JSON value in a file; None if there is no file.

    Raises:
        CassetteError: it is no regular file, too large, or no JSON in UTF-8.
        StorageError: it cannot be read.
    """
    data = _read(path)
    if data is None:
        return None
    hint = "restore it from version control, or delete it and record it again"
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise CassetteError(
            f"the cassette {path} is not in UTF-8: byte {error.start} is wrong", hint=hint
        ) from error
    except json.JSONDecodeError as error:
        raise CassetteError(
            f"the cassette {path} is no JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            hint=hint,
        ) from error
    except ValueError as error:
        raise CassetteError(f"the cassette {path} is no JSON: {error}", hint=hint) from error
    except RecursionError:
        value = None
    if value is None or _is_deep(value):
        raise CassetteError(
            f"the cassette {path} is no cassette: it is empty, or nested too deeply", hint=hint
        )
    return value


def write_json(path: Path, value: Any) -> None:
    """Put a JSON value into a file, in one step and durably; its folder is made if it is missing.

    Raises:
        CassetteError: it is too large to be read again.
        StorageError: it cannot be written.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    data = _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()
    if len(data) > LARGEST:
        raise CassetteError(
            f"the cassette {path} would be larger than {LARGEST} bytes", hint="record fewer calls into it"
        )
    with _storage(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        _refuse_other_kinds(path)
        _replace(path, data)


def check_writable(path: Path) -> None:
    """See that a file can be put there; its folder is made if it is missing.

    Raises:
        CassetteError: something that is no regular file is in its place.
        StorageError: it cannot be written.
    """
    with _storage(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        _refuse_other_kinds(path)
        _new_file(path).unlink()


def copy_of(path: Path) -> Path:
    """Where the copy of a cassette lies that is recorded anew."""
    return path.with_name(f"{path.name}.old")


def keep_copy(path: Path) -> Path:
    """Copy the file, unless there is a copy; returns where it is."""
    copy = copy_of(path)
    if not os.path.lexists(copy):
        data = _read(path)
        if data is not None:
            with _storage(copy, "written"):
                _replace(copy, data)
    return copy


def remove_copy(path: Path) -> None:
    """Remove the copy of a file, if there is one."""
    copy = copy_of(path)
    with _storage(copy, "removed"):
        copy.unlink(missing_ok=True)


def _read(path: Path) -> bytes | None:
    with _storage(path, "read"):
        _refuse_other_kinds(path)
        try:
            fd = os.open(path, os.O_RDONLY | _NOT_FOLLOWED | _BINARY)
        except FileNotFoundError:
            return None
        try:
            # What was looked at by its name may have been exchanged since.
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise _other_kind(path)
            data = _at_most(fd, LARGEST + 1)
        finally:
            os.close(fd)
    if len(data) > LARGEST:
        raise CassetteError(
            f"the cassette {path} is larger than {LARGEST} bytes",
            hint="is it the right file? Record fewer calls",
        )
    return data


def _at_most(fd: int, size: int) -> bytes:
    parts = []
    while size > 0 and (part := os.read(fd, min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _replace(path: Path, data: bytes) -> None:
    temporary = _new_file(path)
    try:
        with temporary.open("r+b") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(MODE)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _new_file(path: Path) -> Path:
    """An empty file beside `path`, under a name that nothing had."""
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOT_FOLLOWED, MODE))
    return temporary


@contextmanager
def _storage(path: Path, doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise StorageError(
            f"the cassette {path} could not be {doing}: {error.strerror or error}",
            hint="free some space"
            if full
            else "check the path, and the permissions of the file and its folder",
        ) from error
    except ValueError as error:
        raise CassetteError(f"{str(path)!r} is no path: {error}", hint="name a file") from error


def _refuse_other_kinds(path: Path) -> None:
    """A cassette is a regular file: no link, folder or pipe is read or replaced."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISREG(mode):
        raise _other_kind(path)


def _other_kind(path: Path) -> CassetteError:
    return CassetteError(
        f"the cassette {path} is a link, a folder or no file at all", hint="name a regular file"
    )


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _is_deep(value: Any) -> bool:
    """Whether containers lie deeper than is read. Not by recursion, which has a limit of its own."""
    level = [value]
    for _ in range(DEEPEST):
        level = [item for container in level for item in _items(container) if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
