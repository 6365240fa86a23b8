"""The parameters of a tool's function, with their annotations resolved."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from ..errors import ConfigurationError
from ..execution.tools import ToolContext

NO_DEFAULT = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter the model fills in. Without an annotation it takes any JSON value.

    Attributes:
        default: the function's default, or NO_DEFAULT.
    """

    name: str
    annotation: Any
    default: Any = NO_DEFAULT


@dataclass(frozen=True, slots=True)
class Signature:
    """What a tool's function takes.

    Attributes:
        parameters: what the model fills in, in order.
        context: the parameter that receives the ToolContext, or None.
        others: the `**kwargs` parameter, whose annotation is that of each value; or None.
    """

    parameters: tuple[Parameter, ...]
    context: str | None = None
    others: Parameter | None = None


def plain_function(function: Callable[..., Any]) -> types.FunctionType | None:
    """The Python function behind partials, methods, wrappers and callable objects, if there is one."""
    inner: Any = function
    while True:
        if isinstance(inner, functools.partial):
            inner = inner.func
        elif isinstance(inner, types.MethodType):
            inner = inner.__func__
        elif hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        elif isinstance(inner, types.FunctionType):
            return inner
        elif isinstance(call := type(inner).__call__, types.FunctionType):
            inner = call
        else:
            return None


def read_signature(function: Callable[..., Any], label: str) -> Signature:
    """The signature of `function`, which errors call `label`.

    Raises:
        ConfigurationError: it has no signature, takes what a model cannot give by name, takes two contexts,
            or has an annotation that cannot be resolved.
    """
    try:
        declared = list(inspect.signature(function).parameters.values())
    except (NameError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"tool {label}: its signature cannot be read: {error}",
            hint="wrap it in a function with annotations",
        ) from error
    namespace = _namespace(function)
    parameters: list[Parameter] = []
    contexts: list[str] = []
    others = None
    for index, parameter in enumerate(declared):
        _check_kind(parameter, label, first=index == 0)
        annotation = _resolve(parameter, label, namespace)
        if parameter.kind is parameter.VAR_KEYWORD:
            others = Parameter(parameter.name, annotation)
        elif _is_context(annotation):
            contexts.append(parameter.name)
        else:
            parameters.append(Parameter(parameter.name, annotation, parameter.default))
    if len(contexts) > 1:
        raise ConfigurationError(
            f"tool {label} takes a ToolContext twice: {' and '.join(contexts)}", hint="keep one of them"
        )
    return Signature(tuple(parameters), contexts[0] if contexts else None, others)


def _check_kind(parameter: inspect.Parameter, label: str, *, first: bool) -> None:
    name = parameter.name
    if parameter.kind is parameter.VAR_POSITIONAL:
        raise ConfigurationError(
            f"tool {label} takes *{name}; a model gives arguments by name",
            hint=f"take a list instead: {name}: list[...]",
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigurationError(
            f"tool {label} takes {name} by position only; a model gives arguments by name",
            hint="remove the / from its signature",
        )
    if first and name in ("self", "cls") and parameter.annotation is NO_DEFAULT:
        raise ConfigurationError(
            f"tool {label} is a method without its object",
            hint="make a tool of the bound method: tool(thing.method)",
        )


def _resolve(parameter: inspect.Parameter, label: str, namespace: dict[str, Any]) -> Any:
    if parameter.annotation is NO_DEFAULT:
        return Any

    def holder() -> None: ...

    holder.__annotations__ = {"it": parameter.annotation}
    try:
        return get_type_hints(holder, namespace, include_extras=True)["it"]
    except Exception as error:
        raise unusable(parameter.name, parameter.annotation, label, str(error)) from error


def unusable(name: str, annotation: object, label: str, reason: str) -> ConfigurationError:
    """The error for an annotation that no schema can be made of."""
    shown = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return ConfigurationError(
        f"tool {label}: the annotation {shown!r} of parameter {name!r} cannot be used: {reason}",
        hint="annotate it with something JSON can hold, defined or imported where the function is",
    )


def _is_context(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        return set(get_args(annotation)) == {ToolContext, type(None)}
    return annotation is ToolContext


def _namespace(function: Callable[..., Any]) -> dict[str, Any]:
    """The names an annotation written at the function's definition may use."""
    # A ToolContext imported for type checkers only is the common case of a name that is missing at run time.
    names: dict[str, Any] = {"ToolContext": ToolContext}
    inner = plain_function(function)
    if inner is None:
        return names
    names |= inner.__globals__
    for scope in reversed(list(_enclosing_scopes(inner.__code__))):
        names |= scope
    return names | _closure(inner)


def _enclosing_scopes(code: types.CodeType) -> Iterator[dict[str, Any]]:
    """The local names of the functions and class bodies, still running, around `code`; innermost first."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        if any(constant is code for constant in frame.f_code.co_consts):
            yield dict(frame.f_locals)
            code = frame.f_code
        frame = frame.f_back


def _closure(function: types.FunctionType) -> dict[str, Any]:
    names = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # assigned after the function is defined
            continue
    return names
