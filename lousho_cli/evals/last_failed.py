"""Which cases failed last, remembered in the workspace but not in git."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from ..stores.files import PRIVATE_FOLDER, storage

STATE_FOLDER = "eval-state"
_FILE = "last-failed.json"


def read_last_failed(workspace: Path) -> list[str]:
    """The keys of the cases that failed last; none where nothing is remembered or it cannot be read."""
    with suppress(OSError, ValueError):
        failed = json.loads((workspace / STATE_FOLDER / _FILE).read_text(encoding="utf-8"))
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
    with storage(workspace / STATE_FOLDER / _FILE, "written"):
        folder = state_folder(workspace)
        temporary = folder / f"{_FILE}.tmp"
        temporary.write_text(json.dumps(failed, indent=2) + "\n", encoding="utf-8")
        temporary.replace(folder / _FILE)


def state_folder(workspace: Path) -> Path:
    """The folder for what evals remember, made if it is missing; git leaves it alone."""
    folder = workspace / STATE_FOLDER
    folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    return folder
