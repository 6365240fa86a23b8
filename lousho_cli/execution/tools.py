"""What a tool is to the engine. `lousho_cli.agents` makes tools out of Python functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ConfigurationError
from .cancel import Cancel

if TYPE_CHECKING:
    from .agent import Agent

OnInterrupt = Literal["rerun", "ask", "fail"]
NeedsApproval = bool | Callable[..., bool | Awaitable[bool]]


class InvalidArgumentsError(Exception):
    """The arguments do not fit the tool. The text is written for the model."""


class KnownFailure(Exception):
    """A call fails exactly as another did: with this error result. For what stands in for a tool."""

    def __init__(self, kind: str, message: str, note: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.note = note


@dataclass(frozen=True, slots=True)
class GivenApproval:
    """The decision a running call was approved with.

    Attributes:
        id: the approval's id.
        by: who decided.
        at: when, UTC, ISO 8601.
        note: what they wrote, or None.
    """

    id: str
    by: str
    at: str
    note: str | None = None


@dataclass(slots=True)
class ToolContext:
    """What a tool may know about the run it is called in.

    Attributes:
        tool_call_id: the same on every attempt of this call: use it as an idempotency key.
        session_id: the session's id, or None without one.
        agent: the agent's name.
        business_state: the run's own JSON value. Change it or assign another; it is saved with the result.
        cancel: the run's stop signal, set on an abort.
        approval: who approved this call and when; None for a call that needed no approval.
    """

    tool_call_id: str
    session_id: str | None
    agent: str
    business_state: Any
    cancel: Cancel
    approval: GivenApproval | None = None


@dataclass(frozen=True)
class Tool:
    """A function the model may call.

    Attributes:
        name: what the model calls it by.
        description: what the model is told it does.
        parameters: JSON schema of the arguments, an object schema.
        function: the function itself, sync or async.
        bind: turns the model's arguments into validated keyword arguments of `function`;
            raises InvalidArgumentsError.
        context_parameter: the parameter of `function` that receives the ToolContext, or None.
        needs_approval: True, or a function that says so for given arguments.
        on_interrupt: what becomes of a call that was running when the process died; None is the default,
            `rerun`, or `ask` for a call that went through an approval.
        timeout: seconds a call may take, or None.
        delegate: the sub-agent that a call of this tool runs, or None.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    function: Callable[..., Any] = field(repr=False)
    bind: Callable[[Mapping[str, Any]], dict[str, Any]] = field(repr=False)
    is_async: bool = False
    context_parameter: str | None = None
    needs_approval: NeedsApproval = False
    on_interrupt: OnInterrupt | None = None
    timeout: float | None = None
    delegate: Agent | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, unvalidated: for tests, and for tools that use other tools."""
        return self.function(*args, **kwargs)


class ToolRegistry:
    """Tools by name.

    Raises:
        ConfigurationError: two tools share a name, or something is no tool.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        if not isinstance(tool, Tool):
            raise ConfigurationError(
                f"{tool!r} is not a tool", hint="decorate the function with @tool from lousho_cli"
            )
        if tool.name in self._tools:
            raise ConfigurationError(
                f"two tools are named {tool.name!r}", hint="rename one, or give it @tool(name=...)"
            )
        self._tools[tool.name] = tool

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def names(self) -> list[str]:
        return list(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)
