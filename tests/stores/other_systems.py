"""macOS and Windows as the file store meets them: their layer, over fakes of what they offer."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lousho_cli.stores import files, system, writer
from lousho_cli.stores.system import System, mac_os, windows

F_FULLFSYNC = 51


class OtherSystem:
    """A system on which the file store runs until the test is over.

    Attributes:
        os: what its modules use in place of `os`: without the calls that it lacks.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, layer: System, lacks: Sequence[str]) -> None:
        self.os = SimpleNamespace(**vars(os))
        for name in lacks:
            vars(self.os).pop(name, None)
        for module in (files, system, writer):
            monkeypatch.setattr(module, "os", self.os)
        monkeypatch.setattr(system, "here", layer)


class Mac(OtherSystem):
    """macOS: no `fdatasync`, nothing to reserve space with, and a full sync by `fcntl`.

    Attributes:
        synced: how many files and folders were synced fully.
        fails: the error that a full sync ends with, or 0.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch, mac_os(), ("fdatasync", "posix_fallocate"))
        self.synced = 0
        self.fails = 0
        real = fcntl.fcntl

        def full_sync(fd: int, command: int, argument: int = 0) -> int:
            if command != F_FULLFSYNC:
                return real(fd, command, argument)
            if self.fails:
                raise OSError(self.fails, os.strerror(self.fails))
            self.synced += 1
            return 0

        monkeypatch.setattr(fcntl, "fcntl", full_sync)


class Windows(OtherSystem):
    """Windows: a rename that never replaces, folders that cannot be opened, second names on no disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        layer = replace(windows(), patience=(0.0, 0.0, 0.0), long_path=lambda path: path)
        lacks = ("fdatasync", "posix_fallocate", "pread", "pwrite", "fchmod", "link", "O_NOFOLLOW")
        super().__init__(monkeypatch, layer, lacks)
        self.os.open, self.os.rename = self._open, self._rename

    def _open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        if path.is_dir():
            raise PermissionError(errno.EACCES, "Access is denied")
        return os.open(path, flags, mode)

    def _rename(self, source: Path, target: Path) -> None:
        os.link(source, target)
        source.unlink()
