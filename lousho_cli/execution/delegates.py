"""Sub-agents as tools of their lead (R3.14)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .agent import Agent
from .tools import InvalidArgumentsError, Tool, ToolRegistry

PARAMETERS = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "What the agent is to do, in full."}},
    "required": ["input"],
    "additionalProperties": False,
}


def delegate_name(agent: str) -> str:
    """The tool's name: `delegate_` and the agent's, with what a tool's name cannot have as `_`."""
    return "delegate_" + re.sub(r"[^A-Za-z0-9_-]", "_", agent)[:50]


def delegate_tool(agent: Agent) -> Tool:
    """The tool that hands a task to `agent` and returns its reply."""
    about = f": {agent.description}" if agent.description else ""
    return Tool(
        name=delegate_name(agent.name),
        description=f"Hand a task to the agent {agent.name}{about}",
        parameters=PARAMETERS,
        function=_not_called,
        bind=_bind,
        is_async=True,
        delegate=agent,
    )


def with_delegates(registry: ToolRegistry, agent: Agent) -> ToolRegistry:
    """The agent's tools and those of its sub-agents.

    Raises:
        ConfigurationError: two have the same name.
    """
    if not agent.subagents:
        return registry
    return ToolRegistry([*registry, *(delegate_tool(sub) for sub in agent.subagents)])


def _bind(arguments: Mapping[str, Any]) -> dict[str, Any]:
    extra = sorted(arguments.keys() - {"input"})
    if extra:
        raise InvalidArgumentsError(f"{extra[0]}: there is no such parameter; the only one is input")
    if not isinstance(arguments.get("input"), str) or not arguments["input"]:
        raise InvalidArgumentsError("input: a text that says what to do is needed")
    return {"input": arguments["input"]}


async def _not_called(input: str) -> str:
    raise TypeError("a sub-agent runs through its lead's run")
