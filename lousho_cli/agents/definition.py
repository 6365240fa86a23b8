"""What an agent's folder says about it without running any of its code: `agent.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from ..errors import NotFoundError, StorageError
from ..toml_file import (
    Found,
    Key,
    any_table,
    number,
    one_of,
    read_toml,
    table,
    text,
    texts,
    whole_number,
    yes_or_no,
)
from .mcp.settings import MCP, McpServer, read_servers

OnAgentDrift = Literal["warn", "error", "ignore"]

AGENT_FILE = "agent.toml"
"""What makes a folder an agent. It may be empty."""

_EFFORTS = ("minimal", "low", "medium", "high", "xhigh")

MODEL_SETTINGS_KEYS: Mapping[str, Key] = {
    "temperature": number(0),
    "max_tokens": whole_number(1),
    "thinking": Key(
        f"true, false, or one of {', '.join(_EFFORTS)}",
        (bool, str),
        lambda value: isinstance(value, bool) or value in _EFFORTS,
    ),
    "tool_choice": text(),
    "parallel_tool_calls": yes_or_no(),
    "stop": texts(),
    "seed": Key("a whole number", (int,), lambda value: True),
    "timeout": number(0, above=True),
    "extra_body": any_table(),
}
"""How a model is asked; the engine's `ModelSettings` says what each means."""

RETRIES_KEYS: Mapping[str, Key] = {
    "attempts": whole_number(1),
    "base_seconds": number(0),
    "max_seconds": number(0),
}
"""When a model is asked again; the engine's `RetryPolicy` says what each means."""

BUDGET_KEYS: Mapping[str, Key] = {
    "max_tokens": whole_number(1),
    "max_cost_usd": number(0, above=True),
    "max_seconds": number(0, above=True),
    "max_steps": whole_number(1),
}
"""What a run may use up; the engine's `Budget` says what each means."""

RUN_KEYS: Mapping[str, Key] = {
    "model": text(),
    "max_steps": whole_number(1),
    "approval_ttl": whole_number(1),
    "tool_concurrency": whole_number(1),
    "on_agent_drift": one_of("warn", "error", "ignore"),
    "fallback_models": texts(),
    "model_settings": table(MODEL_SETTINGS_KEYS),
    "retries": table(RETRIES_KEYS),
    "budget": table(BUDGET_KEYS),
}
"""What an agent and a workspace may both set: how runs are made."""

AGENT_KEYS: Mapping[str, Key] = {
    "description": text(),
    **RUN_KEYS,
    "output": Key("a JSON schema as a table, or the name of a file that has one", (dict, str), bool),
}


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """What an `agent.toml` sets; None for what it leaves open.

    Attributes:
        description: what the agent is for, or an empty text.
        model: the model's name.
        max_steps: model turns a run may take.
        approval_ttl: seconds a human has to decide.
        tool_concurrency: calls of one turn that run at the same time.
        on_agent_drift: what a resume does when the agent has changed.
        fallback_models: names of models to ask where its own cannot be asked.
        model_settings: how its model is asked.
        retries: when its model is asked again.
        budget: what a run may use up.
        output: the JSON schema of the final answer, or the name of the file in its folder that has it.
        mcp: the MCP servers it has tools from.
        values: every key that is set, with its place in the file.
    """

    description: str = ""
    model: str | None = None
    max_steps: int | None = None
    approval_ttl: int | None = None
    tool_concurrency: int | None = None
    on_agent_drift: OnAgentDrift | None = None
    fallback_models: Sequence[str] | None = None
    model_settings: Mapping[str, Any] | None = None
    retries: Mapping[str, Any] | None = None
    budget: Mapping[str, Any] | None = None
    output: Mapping[str, Any] | str | None = None
    mcp: Sequence[McpServer] = ()
    values: Mapping[str, Found] = field(default_factory=dict)


def read_definition(folder: Path) -> AgentDefinition:
    """Read the `agent.toml` of an agent's folder.

    Raises:
        NotFoundError: the folder is no agent; code `LOUSHO_AGENT_NOT_FOUND`. It lists the agents beside it.
        ConfigurationError: a key or a value is wrong.
        StorageError: the file cannot be read.
    """
    try:
        values = read_toml(folder / AGENT_FILE, AGENT_KEYS, tables=(MCP,))
        servers = read_servers(folder / AGENT_FILE)
    except FileNotFoundError:
        raise agent_not_found(folder.name, folder.parent, agent_folder_names(folder.parent)) from None
    checked: dict[str, Any] = {key: found.value for key, found in values.items()}
    return AgentDefinition(**checked, mcp=servers, values=values)


def list_folder(folder: Path) -> list[str]:
    """The names in a folder, sorted; none if there is no such folder.

    Raises:
        StorageError: it cannot be read.
    """
    try:
        return sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(
            f"{folder} could not be read: {error.strerror}", hint="check its permissions"
        ) from error


def agent_folder_names(agents: Path) -> list[str]:
    """The names of the folders in `agents` that are agents, sorted; none if there is no such folder."""
    return [name for name in list_folder(agents) if AGENT_FILE in list_folder(agents / name)]


def agent_not_found(name: str, agents: Path, known: Iterable[str]) -> NotFoundError:
    """The error that says there is no agent `name` in the folder `agents`, and which there are."""
    there = list(known)
    close = get_close_matches(name, there, n=1)
    if not there:
        hint = f"make one: a folder in {agents} with an {AGENT_FILE}, or start from the example: lousho init"
    elif close:
        hint = f"did you mean {close[0]!r}? agents here: {', '.join(there)}"
    else:
        hint = f"agents here: {', '.join(there)}"
    return NotFoundError(f"there is no agent {name!r} in {agents}", code="LOUSHO_AGENT_NOT_FOUND", hint=hint)
