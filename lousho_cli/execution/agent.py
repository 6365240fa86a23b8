"""What an agent is to the engine: a name, instructions, tools, a model, sub-agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..errors import ConfigurationError
from .budget import Budget
from .patience import RetryPolicy
from .tools import Tool, ToolRegistry

if TYPE_CHECKING:
    from .hooks import Hooks
    from .protocols import ModelSettings, Provider
    from .toolsets import Toolset

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunContext:
    """What the dynamic parts of an agent may depend on. It is saved when the run starts.

    Attributes:
        agent: the agent's name.
        session_id: the session's id, or None without one.
        business_state: the business state the run started with.
    """

    agent: str
    session_id: str | None
    business_state: Any


Dynamic: TypeAlias = T | Callable[[RunContext], T | Awaitable[T]]


class Agent:
    """An agent as the engine runs it.

    `instructions`, `tools` and `model` may be functions of the RunContext, sync or async. A resume keeps the
    model its run started with and asks for tools and instructions again, with the saved context.

    Args:
        name: names the agent in checkpoints, approvals and errors.
        instructions: the system message, or None for none.
        tools: what `@tool` made.
        model: the model's id, or None to use the provider's own.
        toolsets: where it has further tools from while it runs; each is opened for a run and closed after it.
        description: what it is for; a lead reads it when it may delegate to this agent.
        subagents: agents it may delegate to, each offered as the tool `delegate_<name>`.
        provider: the model of this agent where it is a sub-agent; None for its lead's.
        hooks: its hooks where it is a sub-agent; None for its lead's.
        max_steps: how many model turns a new run of it may take, unless the caller says; None for the
            engine's default.
        model_settings: how its model is asked, as `ModelSettings` or a mapping like it.
        retries: when to ask again after a failure, as `RetryPolicy` or a mapping like it; None for its lead's
            where it is a sub-agent, else for the default.
        fallbacks: the models to ask, in this order, where its own cannot be asked; None for its lead's where
            it is a sub-agent that uses its lead's model.
        output: the shape of its final answer: a pydantic model or another type, or a JSON schema as a
            mapping; None for free text.
        budget: what a new run of it may use up, as `Budget` or a mapping like it. A sub-agent uses up its
            lead's.
    """

    def __init__(
        self,
        name: str = "default",
        instructions: Dynamic[str | None] = None,
        tools: Dynamic[Iterable[Tool]] = (),
        model: Dynamic[str | None] = None,
        *,
        description: str = "",
        subagents: Iterable[Agent] = (),
        provider: Provider | None = None,
        hooks: Hooks | None = None,
        max_steps: int | None = None,
        model_settings: ModelSettings | Mapping[str, Any] | None = None,
        retries: RetryPolicy | Mapping[str, Any] | None = None,
        fallbacks: Iterable[Provider] | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        output: Any = None,
        toolsets: Iterable[Toolset] = (),
    ) -> None:
        if max_steps is not None and max_steps < 1:
            raise ConfigurationError(f"max_steps is {max_steps}", hint="use a number from 1")
        self.name = name
        self.instructions = instructions
        self.tools: ToolRegistry | Callable[[RunContext], Any] = (
            tools if callable(tools) else ToolRegistry(tools)
        )
        self.model = model
        self.toolsets = tuple(toolsets)
        self.description = description
        self.subagents = tuple(subagents)
        self.provider = provider
        self.hooks = hooks
        self.max_steps = max_steps
        self.model_settings = model_settings
        self.retries = None if retries is None else RetryPolicy.of(retries)
        self.budget = Budget.of(budget)
        self.output = output
        self.fallbacks = None if fallbacks is None else tuple(fallbacks)

    @property
    def is_dynamic(self) -> bool:
        return callable(self.instructions) or callable(self.model) or not isinstance(self.tools, ToolRegistry)

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"
