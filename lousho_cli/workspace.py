"""Where the workspace is, what is in it, and how a new one is made. Nothing here runs an agent's code."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from .agents.definition import AGENT_FILE, agent_folder_names, agent_not_found, read_definition
from .config import CONFIG_FILE
from .errors import ConfigurationError, StorageError
from .stores.files import storage_error
from .stores.ids import check_id, decode_id, encode_id

WORKSPACE_FOLDER = ".lousho"
WORKSPACE_VARIABLE = "LOUSHO_WORKSPACE"
AGENTS_FOLDER = "agents"


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """An agent of a workspace.

    Attributes:
        name: its id.
        path: its folder.
        description: what it is for, or an empty text.
        model: the model's name in its `agent.toml`, or None.
    """

    name: str
    path: Path
    description: str
    model: str | None


def current_folder() -> Path:
    """The folder the command was started in.

    Raises:
        ConfigurationError: it was removed meanwhile.
    """
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ConfigurationError("the current folder was removed", hint="cd to another folder") from None


def find_workspace(explicit: str | None, cwd: Path) -> Path | None:
    """The workspace folder: the one named, else `LOUSHO_WORKSPACE`, else the nearest `.lousho` from `cwd` up.

    Args:
        explicit: what `--workspace` names: a folder with a `.lousho` in it, or a workspace folder itself,
            which has the name `.lousho`, an `agents` folder or a `config.toml`. So does the variable.
        cwd: the folder to start from.

    Returns:
        The workspace folder, or None where none is named and none is found.

    Raises:
        ConfigurationError: one is named, but it is not there.
    """
    if explicit is not None:
        return _named(cwd / explicit, "--workspace")
    variable = os.environ.get(WORKSPACE_VARIABLE)
    if variable:
        return _named(cwd / variable, WORKSPACE_VARIABLE)
    start = cwd.absolute()
    return next(
        (each / WORKSPACE_FOLDER for each in (start, *start.parents) if _is_folder(each / WORKSPACE_FOLDER)),
        None,
    )


def require_workspace(explicit: str | None, cwd: Path) -> Path:
    """Like `find_workspace`, for what cannot do without one.

    Raises:
        ConfigurationError: there is none.
    """
    workspace = find_workspace(explicit, cwd)
    if workspace is None:
        raise ConfigurationError(
            f"there is no {WORKSPACE_FOLDER} folder in {cwd.absolute()} or above it",
            hint="set one up: lousho init",
        )
    return workspace


def create_workspace(folder: Path) -> tuple[Path, bool]:
    """Install the packaged example as `.lousho` in `folder`, which is made if need be.

    It appears whole or not at all. One that is there already is left as it is.

    Returns:
        The workspace folder, and whether this call made it.

    Raises:
        ConfigurationError: something that is no folder has the name `.lousho`.
        StorageError: it cannot be written there.
    """
    workspace = folder.absolute() / WORKSPACE_FOLDER
    with suppress(OSError):
        workspace.rmdir()  # An empty folder holds nothing to keep.
    if _is_there(workspace):
        # In this order: another process may put one there at any moment.
        if _is_folder(workspace):
            return workspace, False
        raise ConfigurationError(
            f"{workspace} is in the way: it is not a folder", hint="move it away, or choose another folder"
        )
    example = _example()
    try:
        workspace.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f"{WORKSPACE_FOLDER}.", suffix=".tmp", dir=workspace.parent))
        try:
            made = temporary / WORKSPACE_FOLDER
            _copy(example, made)
            return workspace, _move_into_place(made, workspace)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise StorageError(
            f"{workspace} cannot be made: {error.strerror}",
            hint="make the folder writable, or choose another",
        ) from error


def list_agents(workspace: Path) -> list[AgentInfo]:
    """The agents of a workspace, by name, as their `agent.toml` describes them.

    Raises:
        ConfigurationError: an `agent.toml` is wrong.
        StorageError: one cannot be read.
    """
    agents = []
    for name, path in sorted(_agent_folders(workspace).items()):
        definition = read_definition(path)
        agents.append(AgentInfo(name, path, definition.description, definition.model))
    return agents


def agent_folder(workspace: Path, agent_id: str) -> Path:
    """The folder of an agent.

    Raises:
        ConfigurationError: `agent_id` is no valid id.
        NotFoundError: there is no such agent; it lists those there are.
    """
    check_id(agent_id, "agent")
    encoded = workspace / AGENTS_FOLDER / encode_id(agent_id)
    if (encoded / AGENT_FILE).is_file():
        return encoded
    folders = _agent_folders(workspace)
    if agent_id not in folders:
        raise agent_not_found(agent_id, workspace / AGENTS_FOLDER, sorted(folders))
    return folders[agent_id]


def _agent_folders(workspace: Path) -> dict[str, Path]:
    """Agents by id. People name folders as they like (`MyBot`): a name that encodes no id is an id itself."""
    agents = workspace / AGENTS_FOLDER
    names = agent_folder_names(agents)
    plain = {name: agents / name for name in names if decode_id(name) is None}
    return plain | {id: agents / name for name in names if (id := decode_id(name)) is not None}


def _named(path: Path, source: str) -> Path:
    inner = path / WORKSPACE_FOLDER
    if _is_folder(inner):
        return inner
    if _is_folder(path) and (
        path.name == WORKSPACE_FOLDER or _is_folder(path / AGENTS_FOLDER) or _is_there(path / CONFIG_FILE)
    ):
        return path
    raise ConfigurationError(
        f"{source} names {path}, which is no workspace and has no {WORKSPACE_FOLDER} folder",
        hint="set one up with lousho init DIR, or name another",
    )


def _is_folder(path: Path) -> bool:
    """Whether there is a folder that can be seen; `Path.is_dir` raises where it may not look.

    Raises:
        StorageError: that cannot be told; a new workspace in its place would hide it.
    """
    try:
        return path.is_dir()
    except PermissionError:
        return False
    except OSError as error:
        raise storage_error(path, "looked at", error) from error


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except OSError:
        return False
    return True


def _example() -> Traversable:
    """The example as it was installed, or beside the package in a checkout."""
    installed = files("lousho_cli") / "_example"
    if installed.is_dir():
        return installed
    checkout = Path(__file__).resolve().parent.parent / ".lousho.example"
    if checkout.is_dir():
        return checkout
    raise ConfigurationError("the example is missing from this installation", hint="reinstall lousho-cli")


def _copy(source: Traversable, target: Path) -> None:
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_dir():
            if entry.name != "__pycache__":
                _copy(entry, target / entry.name)
        else:
            (target / entry.name).write_bytes(entry.read_bytes())


def _move_into_place(made: Path, workspace: Path) -> bool:
    """Whether it went there; false if another process was first."""
    try:
        made.rename(workspace)
    except OSError:
        if _is_folder(workspace):
            return False
        raise
    return True
