"""The few file operations the file store is made of, each with its guarantee spelled out.

Whatever the file store changes on the disk, it changes here: the crash tests record the calls of this module.

Links are not followed, only regular files are read, everything is made readable by its owner alone. An
OSError leaves here as a StorageError that names the file.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import TracebackType

from ..errors import StorageError
from . import system

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
UP_TO_WORKSPACE = 3
"""How many folders there are above one that holds state: the agent's, `agents`, and the workspace."""

_HINTS = {
    errno.ENOSPC: "free some space, then resume",
    errno.EDQUOT: "the quota is used up: free some space, then resume",
    errno.EACCES: "check the permissions of the file and its folder, then resume",
    errno.EPERM: "check the permissions of the file and its folder, then resume",
    errno.EROFS: "the file system is read-only: remount it, then resume",
    errno.ENOENT: "the file or its folder vanished: restore it, then resume",
    errno.ELOOP: "links inside the state folders are not followed: replace it by the real file",
}


@contextmanager
def storage(path: Path, doing: str) -> Iterator[None]:
    """Turn an OSError into a StorageError that says which file could not be `doing`."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, doing, error) from error


def storage_error(path: Path, doing: str, error: OSError) -> StorageError:
    """The StorageError that says which file could not be `doing`, and why."""
    return StorageError(
        f"{path} could not be {doing}: {error.strerror or error}",
        hint=_HINTS.get(error.errno or 0, "mend it, then resume"),
    )


def data_sync(fd: int) -> None:
    """Force a file's data, and its size, onto the disk."""
    system.here.sync_data(fd)


def full_sync(fd: int) -> None:
    """Force a file's data and all that is known of it onto the disk."""
    system.here.sync_file(fd)


def cut_file(fd: int, size: int) -> None:
    """Let a file end after `size` bytes."""
    os.ftruncate(fd, size)


def sync_folder(folder: Path) -> None:
    """Force a folder's entries onto the disk, where the system can."""
    system.here.sync_folder(folder)


_synced_folders: set[tuple[str, int, int]] = set()
"""Folders that this process knows to be on the disk, with all above them that matter."""


def make_folder(folder: Path, *, above: int = 0) -> None:
    """Make a private folder, and the ordinary ones above it, durably.

    Args:
        above: how many of the folders above it are to be on the disk although they are there already: whoever
            made them may have died, or not have cared to wait. The first call of a process sees to that.

    Raises:
        StorageError: it cannot be made, or something that is no folder is in its place.
    """
    with storage(folder, "made"):
        if _is_folder(folder):
            _sync_above(folder, above)
            return
        missing = [parent for parent in folder.parents if not parent.exists()]
        for parent in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(parent)
            sync_folder(parent.parent)
        with suppress(FileExistsError):
            os.mkdir(folder, PRIVATE_FOLDER)
            os.chmod(folder, PRIVATE_FOLDER)
        sync_folder(folder.parent)
        if not _is_folder(folder):
            raise NotADirectoryError(errno.ENOTDIR, "something that is no folder is in its place")
        _sync_above(folder, above)


def _sync_above(folder: Path, above: int) -> None:
    if not above:
        return
    status = os.lstat(folder)
    known = (str(folder), status.st_dev, status.st_ino)
    if known not in _synced_folders:
        for parent in list(folder.parents)[: above + 1]:
            # Not everybody may look into the folder that the workspace lies in.
            if os.access(parent, os.R_OK):
                sync_folder(parent)
        _synced_folders.add(known)


def _is_folder(folder: Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(folder).st_mode)
    except FileNotFoundError:
        return False


def real_folder(folder: Path) -> bool:
    """Whether `folder` is there and is no link.

    Raises:
        StorageError: a link or something else is in its place.
    """
    try:
        mode = os.lstat(folder).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StorageError(f"{folder} could not be read: {error.strerror}") from error
    if not stat.S_ISDIR(mode):
        raise StorageError(
            f"{folder} is not a folder, or is a link", hint="links inside the state folders are not followed"
        )
    return True


def open_regular(path: Path, flags: int) -> int:
    """A file descriptor of a regular file that is no link."""
    system.here.refuse_link(path)
    fd = os.open(path, flags | system.here.flags)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
    except BaseException:
        os.close(fd)
        raise
    return fd


class OpenFile:
    """A regular file opened for reading at any place.

    Attributes:
        size: its size in bytes when it was opened.
        identity: which file it is, whatever bears its name by now.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        try:
            status = os.fstat(fd)
        except BaseException:
            os.close(fd)
            raise
        self.size = status.st_size
        self.identity = (status.st_dev, status.st_ino)

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset` on; fewer only at the end of the file."""
        return read_at(self._fd, offset, length)

    def close(self) -> None:
        os.close(self._fd)


def read_at(fd: int, offset: int, length: int) -> bytes:
    """What every reading of stored data ends in."""
    return system.here.read_at(fd, offset, length)


class _Opening:
    """Written out, as a list of sessions opens a file for each: a generator would take twice as long."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: OpenFile | None = None

    def __enter__(self) -> OpenFile | None:
        try:
            self._file = OpenFile(open_regular(self._path, os.O_RDONLY))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise storage_error(self._path, "read", error) from error
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._file is not None:
                self._file.close()
        except OSError as failed:
            error = error or failed
        if isinstance(error, OSError):
            raise storage_error(self._path, "read", error) from error
        if isinstance(error, MemoryError):
            raise StorageError(f"{self._path} is too large to read") from None


def open_file(path: Path) -> AbstractContextManager[OpenFile | None]:
    """A file to read from; None if there is none."""
    return _Opening(path)


def read_file(path: Path) -> bytes | None:
    """The whole file; None if there is none."""
    with open_file(path) as file:
        if file is None:
            return None
        parts = []
        position = 0
        while part := file.read(position, max(file.size - position, 1)):
            parts.append(part)
            position += len(part)
        return b"".join(parts)


def write_all(fd: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def write_at(fd: int, data: bytes, offset: int) -> None:
    """Write `data` at `offset`, whatever is there."""
    write = system.here.write_at
    written = write(fd, data, offset)
    while written < len(data):
        written += write(fd, data[written:], offset + written)


def reserve(fd: int, start: int, length: int) -> None:
    """Reserve space behind the end of a file, at `start`: it reads as zeros, and syncing what is then
    written there is quicker, as the file no longer grows.

    Where that is not possible nothing happens: no system has to offer it, and a full disk may still have
    room for what is written next.
    """
    with suppress(OSError):
        system.here.reserve(fd, start, length)


def create_file(path: Path) -> int:
    """Make a new private file and return its descriptor."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | system.here.flags, PRIVATE_FILE)
    try:
        make_private(fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def make_private(fd: int) -> None:
    """Let only its owner read an open file, where the system has permissions of that kind."""
    system.here.make_private(fd, PRIVATE_FILE)


def replace_file(path: Path, data: bytes, *, durable: bool, whole: bool = False) -> None:
    """Put `data` in place of the file in one step: a reader sees the old or the new, never a mixture.

    Args:
        durable: return only when the new content survives a power cut.
        whole: a power cut may bring the old content back, but leaves no half of the new one.
    """
    replace_file_by(path, (data,), durable=durable, whole=whole)


def replace_file_by(
    path: Path, parts: Iterable[bytes | memoryview], *, durable: bool, whole: bool = False
) -> int:
    """`replace_file` by a content that comes in parts; returns its size in bytes."""
    with storage(path, "written"):
        size, temporary = _write_parts(path, parts, durable or whole)
        try:
            move_over(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        if durable:
            sync_folder(path.parent)
        return size


def move_over(source: Path, target: Path) -> None:
    """Rename over `target`."""
    _patiently(lambda: os.replace(source, target))


def _patiently(operation: Callable[[], None]) -> None:
    """Do what some systems refuse for a moment, while a reader or a scanner has the file open.

    Raises:
        PermissionError: it is refused for longer than that.
    """
    for seconds in system.here.patience:
        try:
            return operation()
        except PermissionError:
            time.sleep(seconds)
    try:
        operation()
    except PermissionError as error:
        if not system.here.patience:
            raise
        why = f"{error.strerror}: another program has it open, or it must not be changed"
        raise PermissionError(error.errno, why) from error


def create_once(path: Path, data: bytes) -> bool:
    """Durably make a file that must not exist yet; False if it does. Of two makers exactly one wins.

    Whichever made it, it is on the disk when this returns.
    """
    with storage(path, "written"):
        temporary = write_temporary(path, data, durable=True)
        try:
            _patiently(lambda: system.here.publish(temporary, path))
            made = True
        except FileExistsError:
            made = False
        finally:
            with suppress(OSError):
                os.unlink(temporary)
        # Also where it was there: its maker may have died before it was on the disk.
        sync_folder(path.parent)
        return made


def name_again(path: Path, name: Path) -> bool:
    """Durably give a file a second name, which must not exist yet; False if it does.

    Raises:
        OSError: it cannot be done; some file systems know no second names.
    """
    try:
        os.link(path, name)
    except FileExistsError:
        return False
    sync_folder(name.parent)
    return True


def write_temporary(path: Path, data: bytes, durable: bool) -> Path:
    return _write_parts(path, (data,), durable)[1]


def _write_parts(path: Path, parts: Iterable[bytes | memoryview], durable: bool) -> tuple[int, Path]:
    size = 0
    temporary = path.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        fd = create_file(temporary)
        try:
            for data in parts:
                write_all(fd, data)
                size += len(data)
            if durable:
                full_sync(fd)
        finally:
            os.close(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return size, temporary


def path_exists(path: Path) -> bool:
    """Whether anything bears that name, a dangling link included.

    Raises:
        StorageError: that cannot be told; taking it for missing would lose what is there.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False  # Nothing can bear a name that the file system does not take.
        raise storage_error(path, "looked at", error) from error
    return True


def remove_file(path: Path) -> bool:
    """Remove a file; False if there was none."""
    with storage(path, "removed"):
        try:
            _patiently(lambda: os.unlink(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True
