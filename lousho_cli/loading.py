"""An agent of a workspace, ready to run: its folder loaded, and the settings that hold for it applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .agents.definition import read_definition
from .agents.folder import load_agent
from .config import Settings, load_settings
from .execution.agent import Agent
from .execution.budget import Budget
from .execution.patience import RetryPolicy
from .execution.protocols import Provider
from .providers.resolve import resolve_model
from .toml_file import Value
from .workspace import agent_folder

if TYPE_CHECKING:
    from .providers.models.discovery import FoundModel

MakeProvider = Callable[[Callable[[], Provider]], Provider]


def call(live: Callable[[], Provider]) -> Provider:
    """The live model itself."""
    return live()


@dataclass(frozen=True)
class ReadyAgent:
    """An agent, its model, and the settings that hold for its runs.

    Attributes:
        found: the model that the machine had, where none is set.
    """

    agent: Agent
    provider: Provider
    settings: Settings
    found: FoundModel | None = None


def load_from_workspace(
    workspace: Path,
    name: str,
    *,
    flags: Mapping[str, Value | None] | None = None,
    make_provider: MakeProvider = call,
) -> ReadyAgent:
    """Load an agent. That runs the Python files of its folder: see to trust first.

    Args:
        workspace: the `.lousho` folder.
        name: the agent's id.
        flags: settings given on the command line, by key; None for one not given.
        make_provider: makes each of its models, by a function that looks the live one up: its own, its
            fallbacks, and its sub-agents'.

    Raises:
        NotFoundError: there is no such agent.
        ConfigurationError: a file or a setting is wrong.
        StorageError: a file cannot be read.
    """
    folder = agent_folder(workspace, name)
    settings = load_settings(workspace, flags=flags).for_agent(read_definition(folder).values)

    def provider_of(name: str, place: Path) -> Provider:
        return make_provider(partial(resolve_model, name, place, settings.providers))

    found = None
    model = settings.model
    if model is None:
        from .providers.models.discovery import discover_model

        found = discover_model()
        model = found.model
    provider = provider_of(model, folder)
    agent = load_agent(folder, name=name, model=model, provider_of=provider_of).agent
    # A resume keeps the limit its run began with; only a flag changes it on the way.
    agent.max_steps = settings.max_steps
    agent.model_settings = settings.model_settings
    agent.retries = RetryPolicy.of(settings.retries)
    agent.budget = Budget.of(settings.budget)
    agent.fallbacks = tuple(provider_of(model, folder) for model in settings.fallback_models or ())
    return ReadyAgent(agent, provider, settings, found)
