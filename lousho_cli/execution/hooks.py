"""Hooks: the caller's functions around model and tool calls."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from .messages import JsonObject
from .protocols import ModelRequest
from .records import ModelResponse

T = TypeVar("T")
Answer: TypeAlias = T | Awaitable[T | None] | None


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The call a tool hook is about.

    Attributes:
        id: the call's id.
        name: the tool's name.
        args: the validated arguments as JSON.
    """

    id: str
    name: str
    args: JsonObject


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions that see, and may change, what goes in and out. Each may be sync or async.

    Returning None changes nothing. Raising stops the run, which keeps its last checkpoint and can be resumed.

    Attributes:
        before_model: may return another request.
        after_model: may return another response; what it returns is what is recorded.
        before_tool: may return other arguments, which are validated again. It sees a call before it is
            approved, so an approval shows what will run; it may see a call again after a resume.
        after_tool: gets the result as JSON value; may return another in its place. If it raises, the tool's
            own result is recorded first, so the call is not repeated.
    """

    before_model: Callable[[ModelRequest], Answer[ModelRequest]] | None = None
    after_model: Callable[[ModelResponse], Answer[ModelResponse]] | None = None
    before_tool: Callable[[ToolUse], Answer[JsonObject]] | None = None
    after_tool: Callable[[ToolUse, Any], Any] | None = None


async def apply_hook(hook: Callable[..., Any] | None, value: T, *seen: Any) -> T:
    """What the hook makes of `value`: its answer, or `value` itself for None and for no hook."""
    if hook is None:
        return value
    answer = hook(*seen)
    if inspect.isawaitable(answer):
        answer = await answer
    return value if answer is None else answer
