"""Holding a session: one runner at a time over all processes of the machine (R3.9).

The lock is the operating system's: it vanishes with its holder. What the holder file says is for messages
only.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from ..errors import SessionBusyError, StorageError
from ..execution.fork_stores import fork_name, name_taken
from ..execution.session import Holder
from .files import PRIVATE_FILE, make_folder, read_file, remove_file, replace_file, storage, storage_error
from .ids import encode_id
from .journal import json_bytes


class LockFiles(Protocol):
    """Where a store keeps the two small files of a held session."""

    def lock(self, session_id: str) -> Path:
        """The file that is locked."""
        ...

    def holder(self, session_id: str) -> Path:
        """The file that says who holds it."""
        ...


@dataclass(frozen=True)
class LockFolder:
    """A folder that holds nothing but the lock files of a store."""

    path: Path

    def lock(self, session_id: str) -> Path:
        return self.path / f"{encode_id(session_id)}.lock"

    def holder(self, session_id: str) -> Path:
        return self.path / f"{encode_id(session_id)}.json"


class Lease:
    """A held session.

    Args:
        folder: where its lock files are.
        session_id: which session.

    Raises:
        SessionBusyError: another runner holds it; names the process, the host and since when.
        StorageError: the lock file cannot be made.
    """

    def __init__(self, folder: LockFiles, session_id: str) -> None:
        self._folder = folder
        self._session_id = session_id
        path = folder.lock(session_id)
        make_folder(path.parent)
        self._lock = FileLock(path, timeout=0, mode=PRIVATE_FILE, thread_local=False)
        with storage(path, "locked"):
            try:
                self._lock.acquire()
            except Timeout:
                raise self._busy() from None
        self._name = os.fspath(path)
        self._pid = os.getpid()
        me = Holder.me()
        note = {"pid": me.pid, "host": me.host, "since": me.since}
        try:
            with storage(path, "locked"):
                self._inode = _inode(path)
            replace_file(folder.holder(session_id), json_bytes(note), durable=False)
        except BaseException:
            self._lock.release()
            raise

    @property
    def is_held(self) -> bool:
        """Whether this process holds it: not a child of it, and not if somebody removed the locked file.

        Raises:
            StorageError: that cannot be told.
        """
        try:
            return os.getpid() == self._pid and _inode(self._name) == self._inode
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise storage_error(Path(self._name), "looked at", error) from error

    def release(self) -> None:
        self._pid = 0
        with suppress(StorageError):
            remove_file(self._folder.holder(self._session_id))
        with storage(Path(self._name), "unlocked"):
            self._lock.release()

    def _busy(self) -> SessionBusyError:
        try:
            note = json.loads(read_file(self._folder.holder(self._session_id)) or b"")
            return Holder(int(note["pid"]), str(note["host"]), str(note["since"])).busy(self._session_id)
        except (ValueError, KeyError, TypeError, OverflowError, StorageError):
            return SessionBusyError(
                f"session {self._session_id!r} is being run by another process",
                hint="wait for it (--wait SECONDS), or stop that process",
            )


def lease_free_name(
    locks: LockFiles, session_id: str, wanted: str | None, is_taken: Callable[[str], bool]
) -> tuple[str, Lease]:
    """A name for a fork that no session has, held until the fork is written.

    Args:
        session_id: the session that is forked.
        wanted: the name, or None for the first free `<session_id>.fork-<n>`.
        is_taken: whether a session has a name.

    Raises:
        ConfigurationError: the wanted name is taken.
        SessionBusyError: somebody holds the wanted name.
    """
    if wanted is not None:
        lease = None if is_taken(wanted) else _held_if_free(Lease(locks, wanted), wanted, is_taken)
        if lease is None:
            raise name_taken(wanted)
        return wanted, lease
    for n in itertools.count(1):
        name = fork_name(session_id, n)
        if is_taken(name):
            continue
        with suppress(SessionBusyError):
            lease = _held_if_free(Lease(locks, name), name, is_taken)
            if lease is not None:
                return name, lease
    raise AssertionError("there is a free number")


def _held_if_free(lease: Lease, name: str, is_taken: Callable[[str], bool]) -> Lease | None:
    """The lease if its session still does not exist now that it is held."""
    if not is_taken(name):
        return lease
    lease.release()
    return None


def is_running(locks: LockFiles, session_id: str) -> bool:
    """Whether the holder file names a live process. The lock is not tried: a runner would find it taken."""
    try:
        note = json.loads(read_file(locks.holder(session_id)) or b"")
        pid, host = int(note["pid"]), str(note["host"])
    except (ValueError, KeyError, TypeError, OverflowError, StorageError):
        return False
    if host != Holder.me().host or sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return pid > 0


def _inode(path: str | Path) -> tuple[int, int]:
    status = os.stat(path, follow_symlinks=False)
    return status.st_dev, status.st_ino
