"""Damaged originals that a repair keeps beside what it put in their place: `<name>.damaged-<n>`."""

from __future__ import annotations

import errno
import itertools
import os
import re
from pathlib import Path

from .files import make_private, name_again, open_regular, read_file, replace_file, storage

_ASIDE = re.compile(r"(.+)\.damaged-[0-9]+")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)


def original_name(name: str) -> str | None:
    """The name of the file that one of this name was kept for; None if it is an ordinary file."""
    match = _ASIDE.fullmatch(name)
    return match[1] if match else None


def keep_aside(path: Path) -> Path:
    """Durably give a file a second name, readable by its owner alone; the first one stays.

    Doing it again, after a crash before the file was replaced, finds the name it has.

    Raises:
        StorageError: it cannot be done; the file is as it was.
    """
    with storage(path, "kept aside"):
        _make_private(path)
        for number in itertools.count(1):
            aside = path.with_name(f"{path.name}.damaged-{number}")
            if os.path.lexists(aside):
                if os.path.samestat(os.lstat(aside), os.lstat(path)):
                    return aside
                continue
            try:
                named = name_again(path, aside)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                replace_file(aside, read_file(path) or b"", durable=True)
                named = True
            if named:
                return aside
    raise AssertionError("there is a free number")


def _make_private(path: Path) -> None:
    fd = open_regular(path, os.O_RDONLY)
    try:
        make_private(fd)
    finally:
        os.close(fd)
