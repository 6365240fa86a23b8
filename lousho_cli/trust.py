"""Which workspaces the user lets run their Python files, kept by path in the user's state folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from .errors import StorageError
from .regular_file import read_regular

TRUST_VARIABLE = "LOUSHO_TRUST_WORKSPACE"
_YES = ("1", "true", "yes")


def is_trusted(workspace: Path, *, environ: Mapping[str, str] | None = None) -> bool:
    """Whether the user has trusted this workspace, or the environment says so for this process.

    A record that is damaged or cannot be read is no trust.

    Args:
        workspace: the `.lousho` folder.
        environ: environment variables instead of the process's own.
    """
    if (os.environ if environ is None else environ).get(TRUST_VARIABLE, "").lower() in _YES:
        return True
    path = _path_of(workspace)
    try:
        record = json.loads(read_regular(_record_file(path)))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.get("path") == path


def trust(workspace: Path) -> None:
    """Remember that this workspace may run. It is known by its resolved path: moved, it asks again.

    Raises:
        StorageError: the user's state folder cannot be written.
    """
    path = _path_of(workspace)
    file = _record_file(path)
    try:
        _make_private(file.parent)
        _replace(file, json.dumps({"path": path}))
    except OSError as error:
        raise StorageError(
            f"{file.parent} cannot be written: {error.strerror}",
            hint=f"make it writable, or set {TRUST_VARIABLE}=1 for one command",
        ) from error


def _path_of(workspace: Path) -> str:
    return str(workspace.resolve())


def _record_file(path: str) -> Path:
    state = Path(platformdirs.user_state_dir("lousho", appauthor=False))
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()
    return state / "trusted" / f"{digest[:32]}.json"


def _make_private(folder: Path) -> None:
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for each in (folder.parent, folder):
        each.mkdir(mode=0o700, exist_ok=True)


def _replace(file: Path, content: str) -> None:
    """Put `content` in the place of `file` at once; a temporary file of this kind is 0600 from the start."""
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(content)
        Path(temporary).replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
