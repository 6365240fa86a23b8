"""Reading a small file that somebody else wrote: never a pipe, a device or more than fits."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST = 16 * 1024 * 1024
"""Bytes of the largest file that is read. Its values take many times as much memory."""

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def read_regular(path: Path, largest: int = LARGEST) -> bytes:
    """The content of a regular file, or of the one that a link leads to.

    Reading a pipe would wait for its writer, and a device has no end.

    Args:
        largest: how many bytes it may have.

    Raises:
        OSError: it cannot be read, is no regular file, or is too large.
    """
    try:
        fd = os.open(path, _FLAGS)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        data = file.read(largest + 1)
    if len(data) > largest:
        raise OSError(errno.EFBIG, f"it is larger than {largest} bytes", str(path))
    return data
