"""An agent with its dynamic parts decided, as one run of it uses it (R3.13)."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from .agent import Agent, RunContext
from .delegates import with_delegates
from .fingerprint import fingerprint
from .messages import JsonObject
from .protocols import Provider
from .state import State
from .tools import ToolRegistry
from .unset import UNSET
from .values import clean


@dataclass(frozen=True)
class ResolvedAgent:
    """An agent as a run uses it.

    Attributes:
        registry: its tools, the ones that delegate to sub-agents included.
        fingerprint: of model, instructions and its own tools.
        run_config: what a resume needs to resolve it again.
    """

    agent: Agent
    model: str
    instructions: str | None
    registry: ToolRegistry
    fingerprint: JsonObject
    run_config: JsonObject

    @property
    def name(self) -> str:
        return self.agent.name


async def resolve_new(
    agent: Agent, provider: Provider, registry: ToolRegistry | None, state: State, business_state: Any
) -> ResolvedAgent:
    """The agent for a run that starts now."""
    context_state = state.business_state if business_state is UNSET else business_state
    context = RunContext(agent.name, state.session_id, context_state)
    model = await _decide(agent.model, context) or provider_model(provider)
    return await _resolved(agent, model, registry, context)


async def resolve_again(
    agent: Agent, provider: Provider, registry: ToolRegistry | None, state: State
) -> ResolvedAgent:
    """The agent for a run that goes on: a model chosen by a function stays the one that was chosen."""
    saved = state.run_config or {}
    context = RunContext(agent.name, state.session_id, saved.get("context"))
    chosen = saved.get("model") if callable(agent.model) else None
    model = chosen or await _decide(agent.model, context) or provider_model(provider)
    return await _resolved(agent, str(model), registry, context)


def provider_model(provider: Provider) -> str:
    """The id of the model a provider asks by itself."""
    return str(getattr(provider, "model", None) or type(provider).__name__)


async def _resolved(
    agent: Agent, model: str, registry: ToolRegistry | None, context: RunContext
) -> ResolvedAgent:
    instructions = clean(await _decide(agent.instructions, context))
    own = registry if registry is not None else await _tools(agent, context)
    run_config: JsonObject = {"model": model}
    if agent.is_dynamic:
        run_config["context"] = context.business_state
    registry = with_delegates(own, agent)
    known_as = fingerprint(instructions, own, model)
    return ResolvedAgent(agent, model, instructions, registry, known_as, run_config)


async def _tools(agent: Agent, context: RunContext) -> ToolRegistry:
    if isinstance(agent.tools, ToolRegistry):
        return agent.tools
    return ToolRegistry(await _decide(agent.tools, context))


async def _decide(value: Any, context: RunContext) -> Any:
    if not callable(value):
        return value
    decided = value(context)
    return await decided if inspect.isawaitable(decided) else decided
