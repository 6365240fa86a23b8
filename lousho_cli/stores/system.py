"""What operating systems do differently with files: one record of operations for each, one of them chosen.

Linux has all that the file store asks for. macOS needs a call of its own to get data out of the cache of a
drive. Windows cannot sync folders, has no permissions of this kind, and refuses to replace or remove a file
that somebody has open, a virus scanner included.
"""

from __future__ import annotations

import errno
import ntpath
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NO_FULL_SYNC = (errno.EINVAL, errno.ENOTTY, errno.ENOTSUP, errno.EOPNOTSUPP)
_F_FULLFSYNC = 51
_LONGEST_PATH = 259
_BELOW_AGENT = len("\\checkpoint-history\\.jsonl") + 160


@dataclass(frozen=True, slots=True)
class System:
    """The operations in which systems differ.

    Attributes:
        sync_data: force a file's data, and its size, onto the disk.
        sync_file: force a file's data and all that is known of it onto the disk.
        sync_folder: force a folder's entries onto the disk.
        publish: give a file its name, which must not exist yet, in one step; FileExistsError if it does. Its
            old name may stay.
        read_at: up to `length` bytes of a file from an offset on.
        write_at: write some bytes at an offset; returns how many.
        reserve: make room for bytes behind the end of a file, which read as zeros. OSError where it cannot.
        make_private: let only its owner read an open file.
        refuse_link: OSError if a path that is going to be opened is a link.
        long_path: the folder of an agent, so that names of any length in it can be used.
        flags: for opening files: close them in child processes, do not follow links, do not wait for a pipe.
        patience: seconds to wait between the tries of an operation that is refused while others have a file
            open; empty where nobody is refused for that.
    """

    sync_data: Callable[[int], None]
    sync_file: Callable[[int], None]
    sync_folder: Callable[[Path], None]
    publish: Callable[[Path, Path], None]
    read_at: Callable[[int, int, int], bytes]
    write_at: Callable[[int, bytes, int], int]
    reserve: Callable[[int, int, int], None]
    make_private: Callable[[int, int], None]
    refuse_link: Callable[[Path], None]
    long_path: Callable[[Path], Path]
    flags: int
    patience: tuple[float, ...] = ()


def linux() -> System:
    """Linux, and what is like it."""
    return System(
        sync_data=_sync_data,
        sync_file=_sync_file,
        sync_folder=_sync_folder(_sync_file),
        publish=_link,
        read_at=_read_at,
        write_at=_write_at,
        reserve=_allocate,
        make_private=_set_mode,
        refuse_link=_nothing_to_refuse,
        long_path=_as_it_is,
        flags=os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK,
    )


def mac_os() -> System:
    """macOS: a plain sync leaves the data in the drive's own cache, and there is none for data alone."""
    return System(
        sync_data=_sync_fully,
        sync_file=_sync_fully,
        sync_folder=_sync_folder(_sync_fully),
        publish=_link,
        read_at=_read_at,
        write_at=_write_at,
        reserve=_no_reserve,
        make_private=_set_mode,
        refuse_link=_nothing_to_refuse,
        long_path=_as_it_is,
        flags=os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK,
    )


def windows() -> System:
    """Windows: renaming never replaces by itself, so it can publish; second names not every disk has."""
    return System(
        sync_data=_sync_file,
        sync_file=_sync_file,
        sync_folder=_no_folder_sync,
        publish=_rename,
        read_at=_seek_and_read,
        write_at=_seek_and_write,
        reserve=_no_reserve,
        make_private=_no_modes,
        refuse_link=_refuse_link,
        long_path=_extended,
        flags=getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0),
        patience=(0.01, 0.02, 0.05, 0.1, 0.2, 0.4),
    )


# `os` is looked up at each call: the crash tests put a recording one in its place.


def _sync_file(fd: int) -> None:
    os.fsync(fd)


def _sync_data(fd: int) -> None:
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def _sync_fully(fd: int) -> None:
    import fcntl

    try:
        fcntl.fcntl(fd, getattr(fcntl, "F_FULLFSYNC", _F_FULLFSYNC))
    except OSError as error:
        # Not every file system there knows it; a network's does what it can.
        if error.errno not in _NO_FULL_SYNC:
            raise
        os.fsync(fd)


def _sync_folder(sync: Callable[[int], None]) -> Callable[[Path], None]:
    def sync_folder(folder: Path) -> None:
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync(fd)
        finally:
            os.close(fd)

    return sync_folder


def _no_folder_sync(folder: Path) -> None:
    pass


def _link(source: Path, target: Path) -> None:
    os.link(source, target)


def _rename(source: Path, target: Path) -> None:
    os.rename(source, target)


def _read_at(fd: int, offset: int, length: int) -> bytes:
    return os.pread(fd, length, offset)


def _write_at(fd: int, data: bytes, offset: int) -> int:
    return os.pwrite(fd, data, offset)


def _set_mode(fd: int, mode: int) -> None:
    os.fchmod(fd, mode)


def _no_modes(fd: int, mode: int) -> None:
    pass


def _allocate(fd: int, start: int, length: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, start, length)


def _no_reserve(fd: int, start: int, length: int) -> None:
    pass


def _seek_and_read(fd: int, offset: int, length: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, length)


def _seek_and_write(fd: int, data: bytes, offset: int) -> int:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.write(fd, data)


def _nothing_to_refuse(path: Path) -> None:
    """The flags see to it."""


def _as_it_is(path: Path) -> Path:
    return path


def _extended(path: Path) -> Path:
    return Path(extended_length(str(path)))


def _refuse_link(path: Path) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def extended_length(folder: str) -> str:
    r"""An agent's folder on Windows; in the form `\\?\` if paths in it might be too long."""
    full = ntpath.abspath(folder)
    if len(full) + _BELOW_AGENT <= _LONGEST_PATH or full.startswith("\\\\?\\"):
        return folder
    return rf"\\?\UNC{full[1:]}" if full.startswith("\\\\") else rf"\\?\{full}"


def chosen() -> System:
    """The one for the system this runs on."""
    if sys.platform == "win32":
        return windows()
    return mac_os() if sys.platform == "darwin" else linux()


here = chosen()
"""What the file store uses."""
