"""Loading an agent from its folder. That runs the Python files of the folder: see to trust first."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError
from ..execution.agent import Agent
from ..execution.output import OutputFormat
from ..execution.protocols import Provider
from ..providers.resolve import resolve_model
from ..toml_file import read_text
from .definition import OnAgentDrift, agent_folder_names, read_definition
from .mcp.toolset import McpToolset
from .tool_files import import_tools

INSTRUCTIONS_FILE = "instructions.md"
TOOLS_FOLDER = "tools"
SUBAGENTS_FOLDER = "subagents"

ProviderOf = Callable[[str, Path], Provider]
"""From a model's name and the folder of its agent to the model."""


@dataclass(frozen=True)
class LoadedAgent:
    """An agent as its folder describes it. What its `agent.toml` does not set is None.

    Attributes:
        agent: what the engine runs.
        folder: where it was loaded from.
        description: what it is for, or an empty text.
        model: the model's name: the one asked for, else the agent's own.
        max_steps: model turns a run of it may take.
        tool_concurrency: calls of one turn that run at the same time.
        on_agent_drift: what a resume does when the agent has changed.
    """

    agent: Agent
    folder: Path
    description: str
    model: str | None
    max_steps: int | None
    tool_concurrency: int | None
    on_agent_drift: OnAgentDrift | None


def load_agent(
    folder: Path,
    *,
    name: str | None = None,
    model: str | None = None,
    provider_of: ProviderOf = resolve_model,
) -> LoadedAgent:
    """Load the agent of a folder: `agent.toml`, `instructions.md`, `tools/*.py` and `subagents/`.

    No MCP server is started: a run does that.

    Args:
        folder: the agent's folder.
        name: the agent's name, or None for the folder's.
        model: the model's name, over the one in `agent.toml`.
        provider_of: makes the models of sub-agents that name their own.

    Raises:
        NotFoundError: the folder is no agent; code `LOUSHO_AGENT_NOT_FOUND`.
        ConfigurationError: a file is wrong; it names the file, the line, and what to do.
        StorageError: a file cannot be read.
    """
    definition = read_definition(folder)
    chosen = model or definition.model
    agent = Agent(
        name=name or folder.name,
        instructions=_instructions(folder),
        tools=import_tools(folder / TOOLS_FOLDER),
        model=chosen,
        description=definition.description,
        subagents=_subagents(folder / SUBAGENTS_FOLDER, provider_of),
        max_steps=definition.max_steps,
        model_settings=definition.model_settings,
        retries=definition.retries,
        budget=definition.budget,
        output=_output(folder, definition.output),
        toolsets=[McpToolset(server) for server in definition.mcp],
    )
    return LoadedAgent(
        agent=agent,
        folder=folder,
        description=definition.description,
        model=chosen,
        max_steps=definition.max_steps,
        tool_concurrency=definition.tool_concurrency,
        on_agent_drift=definition.on_agent_drift,
    )


def _subagents(folder: Path, provider_of: ProviderOf) -> list[Agent]:
    """The agents of `subagents/`, each a folder like its lead's. One without a model uses its lead's.

    Links are not followed, so a folder cannot hold itself.
    """
    agents = []
    for name in agent_folder_names(folder):
        path = folder / name
        if path.is_symlink():
            continue
        agent = load_agent(path, provider_of=provider_of).agent
        if isinstance(agent.model, str):
            agent.provider = provider_of(agent.model, path)
        names = read_definition(path).fallback_models
        if names is not None:
            agent.fallbacks = tuple(provider_of(name, path) for name in names)
        agents.append(agent)
    return agents


def _output(folder: Path, output: Mapping[str, Any] | str | None) -> OutputFormat | None:
    """The shape of the final answer: the schema itself, or the one in a file of the folder."""
    if not isinstance(output, str):
        return OutputFormat.of(output)
    path = folder / output
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigurationError(f"output: {output} is not in the agent's folder", hint="move it there")
    try:
        schema = json.loads(read_text(path))
    except FileNotFoundError:
        raise ConfigurationError(
            f"output: there is no file {path}", hint="write the JSON schema there"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"output: {path} is not JSON: {error}", hint="correct the file") from None
    if not isinstance(schema, dict):
        raise ConfigurationError(f"output: {path} holds no object", hint="a JSON schema is an object")
    return OutputFormat.of(schema)


def _instructions(folder: Path) -> str | None:
    """The instructions without blank ends, which are no change of the agent; None if nothing is left."""
    try:
        return read_text(folder / INSTRUCTIONS_FILE).strip() or None
    except FileNotFoundError:
        return None
