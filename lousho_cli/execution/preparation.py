"""Looking at a call before it may run: is there such a tool, do the arguments fit, may it start?"""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from .approval import args_digest
from .hooks import Hooks, ToolUse, apply_hook
from .messages import CallData, JsonObject
from .state import CallMark
from .tools import InvalidArgumentsError, Tool, ToolRegistry
from .values import message_of, to_json_value

Gate = Literal["free", "alone", "ask"]
OUTCOME_UNKNOWN = "the call was interrupted; its outcome is unknown and it is not repeated"


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A pending call that was looked at.

    Attributes:
        call: the call as the model made it.
        gate: `free` may run beside others, `alone` was decided and runs by itself, `ask` waits for a human.
        tool: None for a call that cannot run.
        kwargs: validated arguments for the function.
        error: `(kind, message)` of a call that gets this result without running.
        interrupted: another runner had started it, and its outcome is unknown.
        mark: what the checkpoint knows of the call.
    """

    call: CallData
    gate: Gate = "free"
    tool: Tool | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    error: tuple[str, str] | None = None
    interrupted: bool = False
    mark: CallMark = field(default_factory=CallMark)

    @property
    def id(self) -> str:
        return self.call["id"]

    @property
    def name(self) -> str:
        return self.call["function"]["name"]

    @property
    def is_delegate(self) -> bool:
        return self.tool is not None and self.tool.delegate is not None

    @property
    def args(self) -> JsonObject:
        """The validated arguments as JSON: what an approval shows."""
        return cast(JsonObject, to_json_value(self.kwargs))

    @property
    def digest(self) -> str:
        return args_digest(self.name, self.args)

    @property
    def needs_start_mark(self) -> bool:
        """Whether the start of this call must be durable before it runs."""
        return self.tool is not None and self.tool.on_interrupt in ("ask", "fail")


async def prepare(
    call: CallData, mark: CallMark, registry: ToolRegistry, fence: int, hooks: Hooks
) -> PreparedCall:
    """Look at one pending call. `fence` is the token of the runner that asks."""
    name = call["function"]["name"]
    tool = registry.get(name)
    if tool is None:
        known = ", ".join(registry.names()) or "none"
        return PreparedCall(call, error=("unknown-tool", f"there is no tool {name!r}; tools: {known}"))
    grant = mark.grant
    prepared = PreparedCall(call, tool=tool, mark=mark)
    interrupted = mark.started is not None and mark.started != fence
    try:
        kwargs = await _arguments(prepared, tool, hooks)
        prepared = PreparedCall(call, tool=tool, kwargs=kwargs, mark=mark)
    except InvalidArgumentsError as error:
        if interrupted:
            return replace(prepared, error=("interrupted", OUTCOME_UNKNOWN), interrupted=True)
        return replace(prepared, error=("invalid-arguments", message_of(error)))
    if interrupted:
        return _interrupted(prepared, tool)
    if grant is not None and grant.approved and (grant.edited or grant.digest == prepared.digest):
        return replace(prepared, gate="alone")
    try:
        gated = await _needs_approval(prepared, tool)
    except BaseException as error:
        if is_genuine(error):
            raise
        text = f"the approval check of {name} failed: {message_of(error)}"
        return replace(prepared, error=("tool-error", text))
    return replace(prepared, gate="ask") if gated else prepared


async def _arguments(prepared: PreparedCall, tool: Tool, hooks: Hooks) -> dict[str, Any]:
    """The validated arguments the call would run with.

    For an approved call those are the ones that were shown: the model's own, unless a default moved since.
    """
    grant = prepared.mark.grant
    if grant is None or not grant.approved:
        return await _own_arguments(prepared, tool, hooks)
    if grant.edited:
        return tool.bind(copy.deepcopy(grant.arguments))
    try:
        own = await _own_arguments(prepared, tool, hooks)
    except InvalidArgumentsError:
        own = None
    if own is not None and replace(prepared, kwargs=own).digest == grant.digest:
        return own
    try:
        shown = tool.bind(copy.deepcopy(grant.arguments))
    except InvalidArgumentsError:
        shown = None
    if shown is not None and (own is None or replace(prepared, kwargs=shown).digest == grant.digest):
        return shown
    return own if own is not None else await _own_arguments(prepared, tool, hooks)


async def _own_arguments(prepared: PreparedCall, tool: Tool, hooks: Hooks) -> dict[str, Any]:
    """The model's arguments, as the hook leaves them."""
    kwargs = tool.bind(_parse(prepared.call["function"]["arguments"]))
    if hooks.before_tool is None:
        return kwargs
    args = replace(prepared, kwargs=kwargs).args
    use = ToolUse(prepared.id, prepared.name, copy.deepcopy(args))
    changed = await apply_hook(hooks.before_tool, args, use)
    return kwargs if changed is args else tool.bind(changed)


def is_genuine(error: BaseException) -> bool:
    """Whether an exception out of the caller's code is the user's or the loop's own word to stop."""
    if isinstance(error, KeyboardInterrupt):
        return True
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _interrupted(prepared: PreparedCall, tool: Tool) -> PreparedCall:
    policy = tool.on_interrupt or ("ask" if prepared.mark.grant else "rerun")
    if policy == "fail":
        return replace(prepared, error=("interrupted", OUTCOME_UNKNOWN), interrupted=True)
    if policy == "ask":
        return replace(prepared, gate="ask", interrupted=True)
    return replace(prepared, gate="alone" if prepared.mark.grant else "free", interrupted=True)


def _parse(arguments: str) -> Mapping[str, Any]:
    """The arguments the model sent, which must be one JSON object. Nothing is guessed."""
    try:
        value = _decode(arguments)
    except RecursionError:
        raise InvalidArgumentsError("the arguments are nested too deep") from None
    except ValueError as error:
        raise InvalidArgumentsError(f"the arguments are not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"the arguments must be a JSON object, not {_kind_of(value)}")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is given twice")
    return value


_decode = json.JSONDecoder(object_pairs_hook=_no_duplicates).decode


def _kind_of(value: object) -> str:
    kinds = {type(None): "null", bool: "true or false", list: "a list", str: "a text"}
    return kinds.get(type(value), "a number")


async def _needs_approval(prepared: PreparedCall, tool: Tool) -> bool:
    """Whether the tool wants a human for these arguments."""
    check = tool.needs_approval
    if isinstance(check, bool):
        return check
    answer = _call_check(check, prepared.kwargs, prepared.args)
    if inspect.isawaitable(answer):
        answer = await answer
    return bool(answer)


def _call_check(check: Callable[..., Any], kwargs: dict[str, Any], args: JsonObject) -> Any:
    """Call a check that takes tool parameters by name, or one mapping of all arguments."""
    parameters = inspect.signature(check).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return check(**kwargs)
    named = [p.name for p in parameters]
    if named and all(name in kwargs for name in named):
        return check(**{name: kwargs[name] for name in named})
    return check(args) if named else check()
