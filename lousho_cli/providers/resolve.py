"""From a model's name to the provider that answers for it."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from ..errors import ConfigurationError
from ..execution.protocols import Provider

DEMO = "demo"
SCRIPT_PREFIX = "script:"


def resolve_model(name: str, folder: Path) -> Provider:
    """The provider of a model.

    Args:
        name: `demo`, or `script:FILE` with FILE in the agent's folder.
        folder: the agent's folder.

    Raises:
        ConfigurationError: there is no such model.
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
    likely = get_close_matches(name, [DEMO], n=1)
    hint = f"did you mean {likely[0]!r}?" if likely else "use demo, or script:FILE"
    raise ConfigurationError(f"there is no model {name!r}", hint=hint)


def _inside(folder: Path, file: str) -> Path:
    """A file of the agent's folder, which may not lead out of it."""
    path = folder / file
    if not file or not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigurationError(
            f"{SCRIPT_PREFIX}{file} is not in the agent's folder", hint=f"put the script into {folder}"
        )
    return path
