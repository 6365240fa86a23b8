"""`@tool`: a tool out of a Python function."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable
from typing import Any, get_args, overload

from ..errors import ConfigurationError
from ..execution.tools import NeedsApproval, OnInterrupt, Tool
from .docstrings import Documentation, read_docstring
from .tool_arguments import Binder
from .tool_schema import model_arguments
from .tool_signature import read_signature

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@overload
def tool(
    function: Callable[..., Any],
    /,
    *,
    needs_approval: NeedsApproval = ...,
    on_interrupt: OnInterrupt | None = ...,
    timeout: float | None = ...,
    name: str | None = ...,
    description: str | None = ...,
) -> Tool: ...


@overload
def tool(
    *,
    needs_approval: NeedsApproval = ...,
    on_interrupt: OnInterrupt | None = ...,
    timeout: float | None = ...,
    name: str | None = ...,
    description: str | None = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    needs_approval: NeedsApproval = False,
    on_interrupt: OnInterrupt | None = None,
    timeout: float | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a sync or async function, as `@tool`, `@tool(...)` or `tool(function, ...)`.

    The model is told the function's name, its docstring up to the first section, and a JSON schema of its
    parameters: types, defaults and constraints from the signature, descriptions from the docstring. Arguments
    are validated with pydantic before the function is called; it gets nested models, dates and enums as such.
    A parameter annotated `ToolContext` receives the context of the call and is not shown to the model.

    >>> @tool(needs_approval=lambda party_size: party_size > 8)
    ... def book_table(ctx: ToolContext, day: date, party_size: Annotated[int, Field(ge=1)] = 2) -> str:
    ...     '''Book a table.
    ...
    ...     Args:
    ...         day: the day of the visit.
    ...         party_size: how many people.
    ...     '''

    Args:
        needs_approval: whether a human must agree to a call, or a function that says so for given arguments.
        on_interrupt: what becomes of a call that ran when the process died: `rerun`, `ask` or `fail`.
        timeout: seconds a call may take.
        name: 1 to 64 letters, digits, `_` and `-`; by default the function's. A callable object needs one.
        description: the docstring's by default.

    Raises:
        ConfigurationError: an option or the signature is no good; the message says which part.
    """

    def build(function: Callable[..., Any]) -> Tool:
        label = _name_of(function, name)
        _check_options(label, needs_approval, on_interrupt, timeout)
        signature = read_signature(function, label)
        documentation = _documentation_of(function)
        model, schema = model_arguments(signature, label, documentation.parameters)
        names = tuple(parameter.name for parameter in signature.parameters)
        return Tool(
            name=label,
            description=documentation.description if description is None else description,
            parameters=schema,
            function=function,
            bind=Binder(label, model, schema, names, signature.context),
            is_async=_is_async(function),
            context_parameter=signature.context,
            needs_approval=needs_approval,
            on_interrupt=on_interrupt,
            timeout=timeout,
        )

    return build if function is None else build(function)


def _name_of(function: object, name: object) -> str:
    if isinstance(function, Tool):
        raise ConfigurationError(f"{function.name} is a tool already", hint="use it as it is")
    if not callable(function) or isinstance(function, type):
        raise ConfigurationError(f"{function!r} is not a function", hint="put @tool on a function")
    if name is None:
        name = getattr(_without_partials(function), "__name__", None)
    if name is None:
        raise ConfigurationError(f"{function!r} has no name", hint="give it one: tool(..., name='...')")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is not a name for a tool",
            hint="use 1 to 64 letters, digits, _ and -: @tool(name='...')",
        )
    return name


def _check_options(label: str, needs_approval: object, on_interrupt: object, timeout: object) -> None:
    if not isinstance(needs_approval, bool) and not callable(needs_approval):
        raise ConfigurationError(
            f"tool {label}: needs_approval is {needs_approval!r}",
            hint="give True, False, or a function of the tool's arguments",
        )
    choices = get_args(OnInterrupt)
    if on_interrupt is not None and on_interrupt not in choices:
        raise ConfigurationError(
            f"tool {label}: on_interrupt is {on_interrupt!r}", hint=f"use one of {', '.join(choices)}"
        )
    if timeout is not None and not _is_positive(timeout):
        raise ConfigurationError(
            f"tool {label}: timeout is {timeout!r}", hint="give a positive number of seconds, or leave it out"
        )


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _documentation_of(function: Callable[..., Any]) -> Documentation:
    documented = _without_partials(function)
    kind = type(documented)
    if _is_callable_object(documented):
        return read_docstring(kind.__call__.__doc__ or kind.__doc__)
    return read_docstring(documented.__doc__)


def _is_async(function: Callable[..., Any]) -> bool:
    called = _without_partials(function)
    return inspect.iscoroutinefunction(type(called).__call__ if _is_callable_object(called) else called)


def _without_partials(function: Callable[..., Any]) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _is_callable_object(function: Callable[..., Any]) -> bool:
    return inspect.isfunction(type(function).__call__)
