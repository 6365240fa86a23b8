"""From a model's name to the provider that answers for it."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from ..execution.protocols import Provider

if TYPE_CHECKING:
    from .models.servers import Server

DEMO = "demo"
SCRIPT_PREFIX = "script:"


def resolve_model(name: str, folder: Path, servers: Mapping[str, Server] | None = None) -> Provider:
    """The provider of a model.

    Args:
        name: `demo`, `script:FILE` with FILE in the agent's folder, or `provider:model`.
        folder: the agent's folder.
        servers: what the configuration says about providers, by name.

    Raises:
        ConfigurationError: there is no such model, or what it needs is missing.
    """
    if name == DEMO:
        from .demo import DemoModel

        return DemoModel()
    if name.startswith(SCRIPT_PREFIX):
        from .scripted import ScriptFile

        script = ScriptFile(_inside(folder, name.removeprefix(SCRIPT_PREFIX)), name)
        # A script that cannot be played is told before a run takes its message in.
        script.load()
        return script
    if ":" in name:
        from .models.lookup import find_real_model

        return find_real_model(name, servers)
    likely = get_close_matches(name, [DEMO], n=1)
    hint = f"did you mean {likely[0]!r}?" if likely else "use demo, script:FILE, or provider:model"
    raise ConfigurationError(f"there is no model {name!r}", hint=hint)


def _inside(folder: Path, file: str) -> Path:
    """A file of the agent's folder, which may not lead out of it."""
    path = folder / file
    if not file or not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigurationError(
            f"{SCRIPT_PREFIX}{file} is not in the agent's folder", hint=f"put the script into {folder}"
        )
    return path
