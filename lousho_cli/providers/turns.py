"""A scripted turn: the shape people write, checked once, and the model turn it becomes.

A turn is a text, or a mapping with any of

    text            what the model says
    content         instead of text: a list of content parts
    tool_calls      [{"name", "args", "id"}]; args is a mapping, or a text that is sent as it is
    usage           {"input_tokens", "output_tokens"}
    finish_reason   why the model ended the turn
    model           the model that answered, if it is another one
    error           the turn fails: a message, {"message", "code"}, or an exception
    delay           seconds to wait first

Other keys (reasoning, signatures) become fields of the turn, unless they look like one of these misspelt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from ..errors import ConfigurationError, ProviderError
from ..execution.conversation import ToolCall, ToolFunction
from ..execution.records import ModelResponse, Usage

TURN_KEYS = ("text", "content", "tool_calls", "usage", "finish_reason", "model", "error", "delay")
CALL_KEYS = ("name", "args", "id")
USAGE_KEYS = ("input_tokens", "output_tokens", "total_tokens", "cost_usd")
ERROR_KEYS = ("message", "code")

_MEANT = {
    "calls": "tool_calls", "tools": "tool_calls", "tool": "name", "tool_name": "name", "function": "name",
    "arguments": "args", "input": "args", "parameters": "args", "params": "args",
    "call_id": "id", "tool_call_id": "id", "toolCallId": "id",
    "promptTokens": "input_tokens", "prompt_tokens": "input_tokens",
    "completionTokens": "output_tokens", "completion_tokens": "output_tokens",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call of a turn. `id` is None where the script gives none, and "" where it says there is none."""

    name: str
    arguments: str
    id: str | None
    extra: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """A turn whose shape is right."""

    content: Any = ""
    calls: tuple[ScriptedCall, ...] = ()
    usage: Usage | None = None
    finish_reason: str | None = None
    model: str | None = None
    error: BaseException | None = None
    delay: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)


def parse_turn(value: object, where: str) -> ScriptedTurn:
    """`value` as a turn; `where` names it in errors, as in `turn 3`.

    Raises:
        ConfigurationError: the shape is wrong; says which key and what was likely meant.
    """
    if isinstance(value, str):
        return ScriptedTurn(content=value)
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            f"{where} is {_kind(value)}", hint='a turn is a text, or a mapping such as {"text": "Done."}'
        )
    _refuse_likely_typos(value, TURN_KEYS, where)
    given = {key: value[key] for key in TURN_KEYS if value.get(key) is not None}
    if "text" in given and "content" in given:
        raise ConfigurationError(f"{where} has both `text` and `content`", hint="keep one of them")
    calls = _expect(given.get("tool_calls", []), (list, tuple), "a list of calls", f"{where}: `tool_calls`")
    return ScriptedTurn(
        content=_text(given.get("text", ""), f"{where}: `text`") or given.get("content", ""),
        calls=tuple(_parse_call(call, f"{where}, call {n}") for n, call in enumerate(calls, 1)),
        usage=_parse_usage(given["usage"], f"{where}: `usage`") if "usage" in given else None,
        finish_reason=_text(given.get("finish_reason", ""), f"{where}: `finish_reason`") or None,
        model=_text(given.get("model", ""), f"{where}: `model`") or None,
        error=_parse_error(given["error"], f"{where}: `error`") if "error" in given else None,
        delay=_number(given.get("delay", 0.0), f"{where}: `delay`"),
        extra={key: value[key] for key in value if key not in TURN_KEYS},
    )


async def play_turn(turn: ScriptedTurn, new_id: Callable[[], str]) -> ModelResponse:
    """Wait as the turn says, then fail or answer as it says; `new_id` names calls that have no id."""
    if turn.delay:
        import asyncio

        await asyncio.sleep(turn.delay)
    if turn.error is not None:
        raise turn.error.with_traceback(None)
    return ModelResponse(
        content=turn.content,
        tool_calls=[
            ToolCall(
                id=new_id() if call.id is None else call.id,
                function=ToolFunction(name=call.name, arguments=call.arguments),
                **call.extra,
            )
            for call in turn.calls
        ],
        usage=turn.usage,
        finish_reason=turn.finish_reason,
        model=turn.model,
        **turn.extra,
    )


def _parse_call(value: object, where: str) -> ScriptedCall:
    call = _expect(value, Mapping, "a mapping with `name` and `args`", where)
    _refuse_likely_typos(call, CALL_KEYS, where, reserved=("type",))
    name = _text(call.get("name", ""), f"{where}: `name`")
    if not name:
        raise ConfigurationError(f"{where} has no `name`", hint='name the tool: {"name": "search"}')
    args = call.get("args", {})
    if isinstance(args, Mapping):
        args = _as_json(args, where)
    return ScriptedCall(
        name=name,
        arguments=_text(args, f"{where}: `args`", wanted="a mapping, or a text that is sent as it is"),
        id=_text(call["id"] or "", f"{where}: `id`") if "id" in call else None,
        extra={key: call[key] for key in call if key not in CALL_KEYS},
    )


def _as_json(args: Mapping[str, Any], where: str) -> str:
    try:
        text = json.dumps(args, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise ConfigurationError(
            f"{where}: `args` cannot be written as JSON: {problem}",
            hint="give the arguments as a text to send it as it is",
        ) from problem
    # Half a surrogate pair is no text that can be stored, but its JSON escape is.
    return text if text.isascii() or _is_unicode(text) else json.dumps(args)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parse_usage(value: object, where: str) -> Usage:
    usage = _expect(value, Mapping, "a mapping with `input_tokens` and `output_tokens`", where)
    _refuse_likely_typos(usage, USAGE_KEYS, where, reserved=("model_calls", "modelCalls"))
    for key in USAGE_KEYS[:3]:
        if not isinstance(_number(usage.get(key, 0), f"{where}: `{key}`"), int):
            raise ConfigurationError(f"{where}: `{key}` is no whole number", hint="give whole tokens")
    _number(usage.get("cost_usd", 0), f"{where}: `cost_usd`")
    return Usage.model_validate(usage)


def _parse_error(value: object, where: str) -> BaseException:
    if isinstance(value, BaseException):
        return value
    if isinstance(value, Mapping):
        unknown = [key for key in value if key not in ERROR_KEYS]
        if unknown:
            raise ConfigurationError(
                f"{where} has the unknown key `{unknown[0]}`", hint="an error has `message` and `code`"
            )
        code = _text(value.get("code", ""), f"{where}: `code`") or None
        message = _text(value.get("message", "the model failed"), f"{where}: `message`")
        return ProviderError(message, code=code)
    wanted = "a message, a mapping with `message` and `code`, or an exception"
    return ProviderError(_text(value, where, wanted))


def _refuse_likely_typos(
    given: Iterable[object], known: tuple[str, ...], where: str, reserved: tuple[str, ...] = ()
) -> None:
    for key in given:
        if key in known:
            continue
        if not isinstance(key, str) or key in reserved:
            raise ConfigurationError(
                f"{where}: the key {key!r} has no meaning here", hint=f"keys: {', '.join(known)}"
            )
        close = get_close_matches(key.lower(), known, n=1, cutoff=0.8)
        likely = _MEANT.get(key) or (close[0] if close else None)
        if likely in known:
            raise ConfigurationError(f"{where}: unknown key `{key}`", hint=f"did you mean `{likely}`?")


def _expect(value: object, kind: type | tuple[type, ...], wanted: str, where: str) -> Any:
    if not isinstance(value, kind):
        raise ConfigurationError(f"{where} is {_kind(value)}", hint=f"it must be {wanted}")
    return value


def _text(value: object, where: str, wanted: str = "a text") -> str:
    text: str = _expect(value, str, wanted, where)
    return text


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ConfigurationError(f"{where} is {_kind(value)}", hint="it must be a number, 0 or more")
    return value


def _kind(value: object) -> str:
    """What `value` is, in words that fit JSON and Python alike."""
    if value is None:
        return "null"
    if isinstance(value, bool | int | float):
        return repr(value).lower()
    names: dict[type, str] = {str: "a text", list: "a list", tuple: "a list", dict: "a mapping"}
    return names.get(type(value), f"of type {type(value).__name__}")
