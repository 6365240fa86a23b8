"""What an agent is to the engine: a name, instructions, tools, a model."""

from __future__ import annotations

from collections.abc import Iterable

from .tools import Tool, ToolRegistry


class Agent:
    """An agent as the engine runs it.

    Args:
        name: names the agent in checkpoints, approvals and errors.
        instructions: the system message, or None for none.
        tools: what `@tool` made.
        model: the model's id, or None to use the provider's own.
        max_steps: how many model turns a new run of it may take, unless the caller says; None for the
            engine's default.
    """

    def __init__(
        self,
        name: str = "default",
        instructions: str | None = None,
        tools: Iterable[Tool] = (),
        model: str | None = None,
        max_steps: int | None = None,
    ) -> None:
        self.name = name
        self.instructions = instructions
        self.tools = ToolRegistry(tools)
        self.model = model
        self.max_steps = max_steps

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"
