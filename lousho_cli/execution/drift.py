"""What a resume refuses, or says, because the agent is not what it was (R3.12)."""

from __future__ import annotations

from typing import Any

from ..errors import AgentChangedError, ConfigurationError
from .fingerprint import drift, missing_tools
from .resolution import ResolvedAgent
from .state import State
from .tools import InvalidArgumentsError, ToolRegistry
from .values import message_of


def check_agent(state: State, agent: ResolvedAgent, policy: str) -> list[str]:
    """Compare today's agent with the one the run was started with; returns what changed.

    Args:
        policy: `warn`, `error` or `ignore`.

    Raises:
        AgentChangedError: a pending call's tool is gone, or anything changed under `error`.
    """
    called = [call["function"]["name"] for call in state.pending_calls()]
    missing = missing_tools(state.fingerprint, agent.registry, called)
    if missing:
        raise AgentChangedError(
            f"session {state.session_id!r} has a pending call of {missing[0]!r}, "
            f"a tool that agent {agent.name!r} no longer has",
            code="LOUSHO_RESUME_TOOL_MISSING",
            hint="bring the tool back, or fork the session from an earlier step",
        )
    changes = [] if policy == "ignore" else drift(state.fingerprint, agent.fingerprint)
    if changes and policy == "error":
        raise AgentChangedError(
            f"agent {agent.name!r} changed since session {state.session_id!r} was started: "
            f"{'; '.join(changes)}",
            hint="restore it, or go on with --on-agent-drift warn",
        )
    return changes


def sub_agent_gone(state: State, agent: str, sub_agent: str) -> AgentChangedError:
    """A sub-agent is on its way in the session, and its lead no longer has it."""
    return AgentChangedError(
        f"session {state.session_id!r} is inside sub-agent {sub_agent!r}, "
        f"which agent {agent!r} no longer has",
        code="LOUSHO_RESUME_TOOL_MISSING",
        hint="bring the sub-agent back, or fork the session from an earlier step",
    )


def check_edited(registry: ToolRegistry, name: str, arguments: dict[str, Any] | None) -> None:
    """Refuse edited arguments that do not fit the tool.

    Raises:
        ConfigurationError: `LOUSHO_TOOL_ARGS_INVALID`.
    """
    tool = registry.get(name)
    if arguments is None or tool is None:
        return
    try:
        tool.bind(arguments)
    except InvalidArgumentsError as error:
        raise ConfigurationError(
            f"the edited arguments do not fit {name}: {message_of(error)}",
            code="LOUSHO_TOOL_ARGS_INVALID",
            hint="the request is still undecided",
        ) from error
