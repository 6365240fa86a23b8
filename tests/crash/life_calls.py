"""The file calls that a process makes below a folder: noted, and one of them made to fail or to kill."""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_write, _kill = os.write, os.kill
BY_PATH = (
    "open", "stat", "lstat", "mkdir", "unlink", "remove", "rmdir", "chmod", "utime", "access", "listdir",
    "scandir", "truncate", "replace", "rename", "link",
)  # fmt: skip
BY_DESCRIPTOR = (
    "write", "pwrite", "read", "pread", "posix_fallocate", "fdatasync", "fsync", "ftruncate", "lseek",
    "fchmod", "fstat", "close",
)  # fmt: skip
NEW_NAME = ("replace", "rename", "link")
WRITES = ("write", "pwrite")


@dataclass(frozen=True)
class Fault:
    """What happens to a process at one of its file calls.

    Attributes:
        call: the number of the call, from 0.
        error: the error it fails with; 0 for a SIGKILL right before it.
        stays: every later call that changes something fails too.
        torn: before it fails or kills, half of what a writing call is given is written.
    """

    call: int
    error: int = 0
    stays: bool = False
    torn: bool = False


CHANGING = frozenset((*WRITES, "open to write", "mkdir", "fdatasync", "fsync", "ftruncate", *NEW_NAME))


class FileCalls:
    """Takes the place of the calls of `os`, of `open` and of `flock` in this process, for good.

    Args:
        root: a folder; calls about other files are not counted.
        fault: what happens at one call.
        note: told when a call was made to fail.

    Attributes:
        made: the calls, as `name path`, with `*` for a temporary file's name.
    """

    def __init__(self, root: Path, fault: Fault | None, note: Callable[[str], None]) -> None:
        self.made: list[str] = []
        self._root = os.path.realpath(root)
        self._fault = fault
        self._note = note
        self._names: dict[int, str] = {}

    def take_over(self) -> None:
        for name in BY_PATH:
            setattr(os, name, self._by_path(name, getattr(os, name)))
        for name in BY_DESCRIPTOR:
            if hasattr(os, name):
                setattr(os, name, self._by_descriptor(name, getattr(os, name)))
        builtins.open = io.open = self._by_path("open", io.open)
        setattr(fcntl, "flock", self._by_descriptor("flock", fcntl.flock))  # noqa: B010

    def _by_path(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            about = arguments[1 if name in NEW_NAME else 0] if arguments else "."
            if isinstance(about, int):
                return self._named(name, about, real, arguments, options)
            path = self._path(about)
            if path is None or "dir_fd" in options:
                return real(*arguments, **options)
            self._reached(
                f"{name} to write" if _writes(name, arguments, options) else name, path, about=about
            )
            made = real(*arguments, **options)
            if isinstance(made, int):
                self._names[made] = path
            return made

        return call

    def _by_descriptor(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(fd: Any, *arguments: Any, **options: Any) -> Any:
            return self._named(name, fd, real, (fd, *arguments), options)

        return call

    def _named(
        self, name: str, fd: Any, real: Callable[..., Any], arguments: tuple[Any, ...], options: Any
    ) -> Any:
        path = self._names.get(fd)
        if path is None:
            return real(*arguments, **options)
        half = (lambda: real(fd, _half(arguments[1]), *arguments[2:])) if name in WRITES else None
        try:
            self._reached(name, path, half)
        finally:
            if name == "close":
                # The system closes it whatever it reports.
                del self._names[fd]
                real(fd)
        return None if name == "close" else real(*arguments, **options)

    def _path(self, path: Any) -> str | None:
        full = os.path.abspath(os.fsdecode(path))  # noqa: PTH100
        if full != self._root and not full.startswith(self._root + os.sep):
            return None
        name = full[len(self._root) + 1 :]
        return f"{name.rpartition('/')[0]}/*" if name.endswith(".tmp") else name

    def _reached(
        self, name: str, path: str, half: Callable[[], Any] | None = None, about: Any = None
    ) -> None:
        number = len(self.made)
        self.made.append(f"{name} {path}")
        fault = self._fault
        if fault is None or number < fault.call:
            return
        first = number == fault.call
        if not first and not (fault.stays and name in CHANGING):
            return
        if first and fault.torn and half is not None:
            half()
        if not fault.error:
            _kill(os.getpid(), signal.SIGKILL)
        if first:
            self._note(f"failed {name} {path}")
        raise OSError(fault.error, os.strerror(fault.error), about)


def _writes(name: str, arguments: tuple[Any, ...], options: Any) -> bool:
    if name != "open":
        return False
    how = arguments[1] if len(arguments) > 1 else options.get("flags", options.get("mode", "r"))
    return bool(how & os.O_CREAT) if isinstance(how, int) else not set(how).isdisjoint("wax+")


def _half(data: Any) -> bytes:
    whole = bytes(data)
    return whole[: len(whole) // 2]


ERRORS = {errno.errorcode[e]: e for e in (
    errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.EMFILE, errno.EINTR
)}  # fmt: skip
