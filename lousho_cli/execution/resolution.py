"""An agent with its dynamic parts decided, as one run of it uses it (R3.13)."""

from __future__ import annotations

import copy
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
from .toolsets import OpenToolsets
from .unset import UNSET
from .values import clean, to_json_value


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


@dataclass(frozen=True)
class _Deciding:
    """Decides the dynamic parts of an agent. Each function gets a context of its own."""

    agent: Agent
    session_id: str | None
    start: Any
    toolsets: OpenToolsets

    async def decide(self, value: Any) -> Any:
        if not callable(value):
            return value
        decided = value(RunContext(self.agent.name, self.session_id, copy.deepcopy(self.start)))
        return await decided if inspect.isawaitable(decided) else decided


async def resolve_new(
    agent: Agent,
    provider: Provider,
    registry: ToolRegistry | None,
    toolsets: OpenToolsets,
    state: State,
    business_state: Any,
) -> ResolvedAgent:
    """The agent for a run that starts now."""
    start = state.business_state if business_state is UNSET else to_json_value(business_state)
    deciding = _Deciding(agent, state.session_id, start, toolsets)
    model = await deciding.decide(agent.model) or provider_model(provider)
    return await _resolved(deciding, model, registry)


async def resolve_again(
    agent: Agent, provider: Provider, registry: ToolRegistry | None, toolsets: OpenToolsets, state: State
) -> ResolvedAgent:
    """The agent for a run that goes on: a model chosen by a function stays the one that was chosen."""
    saved = state.run_config or {}
    deciding = _Deciding(agent, state.session_id, saved.get("context"), toolsets)
    chosen = saved.get("model") if callable(agent.model) else None
    model = chosen or await deciding.decide(agent.model) or provider_model(provider)
    return await _resolved(deciding, str(model), registry)


def provider_model(provider: Provider) -> str:
    """The id of the model a provider asks by itself."""
    return str(getattr(provider, "model", None) or type(provider).__name__)


async def _resolved(deciding: _Deciding, model: str, registry: ToolRegistry | None) -> ResolvedAgent:
    agent = deciding.agent
    instructions = clean(await deciding.decide(agent.instructions))
    own = registry if registry is not None else agent.tools
    if not isinstance(own, ToolRegistry):
        own = ToolRegistry(await deciding.decide(own))
    if registry is None and agent.toolsets:
        own = ToolRegistry([*own, *await deciding.toolsets.tools_of(agent)])
    run_config: JsonObject = {"model": model}
    if agent.is_dynamic:
        run_config["context"] = deciding.start
    known_as = fingerprint(instructions, own, model)
    return ResolvedAgent(agent, model, instructions, with_delegates(own, agent), known_as, run_config)
