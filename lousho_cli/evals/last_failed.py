"""Which cases failed last, remembered in the workspace but not in git."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import StorageError
from ..stores.files import make_folder, path_exists, read_file, real_folder, replace_file

STATE_FOLDER = "eval-state"
_FILE = "last-failed.json"


def read_last_failed(workspace: Path) -> list[str]:
    """The keys of the cases that failed last; none where nothing is remembered or it cannot be read."""
    with suppress(StorageError, ValueError, RecursionError):
        failed = json.loads(read_state(workspace, _FILE))
        if isinstance(failed, list):
            return [key for key in failed if isinstance(key, str)]
    return []


def after(before: Sequence[str], passed: Collection[str], failed: Collection[str]) -> list[str]:
    """What is remembered after a run: cases that were not run keep what was known of them."""
    return sorted({key for key in before if key not in passed} | set(failed))


def remember_last_failed(workspace: Path, failed: Sequence[str]) -> None:
    """Remember which cases failed.

    Raises:
        StorageError: it cannot be written.
    """
    data = (json.dumps(failed, indent=2) + "\n").encode()
    replace_file(state_folder(workspace) / _FILE, data, durable=False, whole=True)


def state_folder(workspace: Path) -> Path:
    """The folder for what evals remember, made if it is missing; git leaves it alone.

    Raises:
        StorageError: it cannot be made, or a link or something else is in its place.
    """
    folder = workspace / STATE_FOLDER
    make_folder(folder)
    ignore = folder / ".gitignore"
    if not path_exists(ignore):
        replace_file(ignore, b"*\n", durable=False)
    return folder


def read_state(workspace: Path, name: str) -> bytes:
    """A file of that folder; empty if there is none.

    Raises:
        StorageError: it cannot be read, or is no regular file.
    """
    real_folder(workspace / STATE_FOLDER)
    return read_file(workspace / STATE_FOLDER / name) or b""
