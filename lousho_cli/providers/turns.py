"""A scripted turn: the shape people write, checked once, and the model turn it becomes.

A turn is a text, or a mapping with any of

    text            what the model says
    content         instead of text: a list of content parts
    tool_calls      [{"name", "args", "id"}]; args is a mapping, or a text that is sent as it is
    usage           {"input_tokens", "output_tokens"}
    finish_reason   why the model ended the turn
    model           the model that answered, if it is another one
    error           the turn fails: a message, an exception, or {"message", "code", "status", "retryable",
                    "retry_after", "usage"}; a status such as 429 or 503 makes it worth a retry
    delay           seconds to wait first, or behind the pieces of a stream
    chunks          stream the text, the reasoning and each call's arguments in this many pieces
    cut             the turn is cut after this many pieces
    fails           turns that fail, played one after another before this one: [{"error": {"status": 429}}]

Other keys (reasoning, signatures) become fields of the turn, unless they look like one of these misspelt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice, pairwise
from typing import Any

from ..errors import ConfigurationError, ProviderError
from ..execution.conversation import ToolCall
from ..execution.messages import text_of
from ..execution.patience import is_retryable_status
from ..execution.protocols import CallDelta, ModelDelta, ReasoningDelta, TextDelta
from ..execution.records import ModelResponse, Usage

TURN_KEYS = (
    "text", "content", "tool_calls", "usage", "finish_reason", "model", "error", "delay", "chunks", "cut",
    "fails",
)  # fmt: skip
CALL_KEYS = ("name", "args", "id")
USAGE_KEYS = (
    "input_tokens", "output_tokens", "total_tokens", "cached_input_tokens", "cache_write_tokens",
    "reasoning_tokens", "cost_usd",
)  # fmt: skip
_KNOWN: dict[tuple[str, ...], frozenset[str]] = {
    keys: frozenset(keys) for keys in (TURN_KEYS, CALL_KEYS, USAGE_KEYS)
}
ERROR_KEYS = ("message", "code", "status", "retryable", "retry_after", "usage")

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

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
    chunks: int = 0
    cut: int | None = None
    fails: tuple[ScriptedTurn, ...] = ()
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
    given = {key: part for key, part in value.items() if part is not None or key not in TURN_KEYS}
    if "text" in given and "content" in given:
        raise ConfigurationError(f"{where} has both `text` and `content`", hint="keep one of them")
    parts = {_PARTS[key][0]: _PARTS[key][1](given.pop(key), where) for key in TURN_KEYS if key in given}
    return ScriptedTurn(**parts, extra=given)


async def play_turn(turn: ScriptedTurn, new_id: Callable[[], str]) -> ModelResponse:
    """Wait as the turn says, then fail or answer as it says; `new_id` names calls that have no id."""
    if turn.delay:
        import asyncio

        await asyncio.sleep(turn.delay)
    if turn.error is not None:
        raise turn.error.with_traceback(None)
    if turn.cut is not None:
        raise _was_cut()
    return _response(turn, new_id)


def told_pieces(turn: ScriptedTurn) -> Iterator[ModelDelta]:
    """What is told of a turn before it is whole: as many pieces as `chunks` says, up to where it is cut."""
    return islice(_pieces(turn) if turn.chunks else (), turn.cut)


def _pieces(turn: ScriptedTurn) -> Iterator[ModelDelta]:
    reasoning = turn.extra.get("reasoning")
    if isinstance(reasoning, str):
        yield from map(ReasoningDelta, _split(reasoning, turn.chunks))
    yield from map(TextDelta, _split(text_of(turn.content), turn.chunks))
    for index, call in enumerate(turn.calls):
        yield CallDelta(index, name=call.name)
        for piece in _split(call.arguments, turn.chunks):
            yield CallDelta(index, arguments=piece)


def _split(text: str, count: int) -> list[str]:
    """`text` in at most `count` pieces of about the same length, none empty."""
    ends = [len(text) * n // count for n in range(count + 1)]
    return [text[start:end] for start, end in pairwise(ends) if start < end]


def _was_cut() -> ProviderError:
    return ProviderError("the model's answer was cut off before its end", retryable=True)


def _response(turn: ScriptedTurn, new_id: Callable[[], str]) -> ModelResponse:
    return ModelResponse(
        content=turn.content,
        tool_calls=[
            ToolCall.model_validate(
                {
                    **call.extra,
                    "id": new_id() if call.id is None else call.id,
                    "function": {"name": call.name, "arguments": call.arguments},
                }
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
        text = _encode(args)
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
    for key in USAGE_KEYS:
        if key in usage:
            check = _number if key == "cost_usd" else _whole
            check(usage[key], f"{where}: `{key}`")
    return Usage.model_validate(usage)


def _parse_error(value: object, where: str) -> BaseException:
    if isinstance(value, BaseException):
        return value
    if isinstance(value, Mapping):
        return _error_of(value, where)
    wanted = "a message, a mapping with `message` and `code`, or an exception"
    return ProviderError(_text(value, where, wanted))


def _error_of(value: Mapping[Any, Any], where: str) -> ProviderError:
    unknown = [key for key in value if key not in ERROR_KEYS]
    if unknown:
        raise ConfigurationError(
            f"{where} has the unknown key `{unknown[0]}`", hint=f"an error has {', '.join(ERROR_KEYS)}"
        )
    given = {key: each for key, each in value.items() if each is not None}
    status = _whole(given["status"], f"{where}: `status`") if "status" in given else None
    retryable = _expect(
        given.get("retryable", is_retryable_status(status)), bool, "true or false", f"{where}: `retryable`"
    )
    return ProviderError(
        _text(given.get("message", "the model failed"), f"{where}: `message`"),
        code=_text(given.get("code", ""), f"{where}: `code`") or None,
        status=status,
        retryable=retryable,
        retry_after=_number(given["retry_after"], f"{where}: `retry_after`")
        if "retry_after" in given
        else None,
        usage=_parse_usage(given["usage"], f"{where}: `usage`") if "usage" in given else None,
    )


def _parse_failure(value: object, where: str) -> ScriptedTurn:
    turn = parse_turn(value, where)
    if (turn.error is None and turn.cut is None) or turn.fails:
        raise ConfigurationError(f"{where} does not fail", hint="give it `error` or `cut`")
    return turn


def _parse_calls(value: object, where: str) -> tuple[ScriptedCall, ...]:
    calls = _expect(value, (list, tuple), "a list of calls", f"{where}: `tool_calls`")
    return tuple(_parse_call(call, f"{where}, call {n}") for n, call in enumerate(calls, 1))


def _parse_failures(value: object, where: str) -> tuple[ScriptedTurn, ...]:
    fails = _expect(value, (list, tuple), "a list of turns that fail", f"{where}: `fails`")
    return tuple(_parse_failure(each, f"{where}, failure {n}") for n, each in enumerate(fails, 1))


def _refuse_likely_typos(
    given: Iterable[object], known: tuple[str, ...], where: str, reserved: tuple[str, ...] = ()
) -> None:
    if _KNOWN[known].issuperset(given):
        return
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


def _whole(value: object, where: str) -> int:
    number = _number(value, where)
    if not isinstance(number, int):
        raise ConfigurationError(f"{where} is no whole number", hint="give a whole number, 0 or more")
    return number


def _kind(value: object) -> str:
    """What `value` is, in words that fit JSON and Python alike."""
    if value is None:
        return "null"
    if isinstance(value, bool | int | float):
        return repr(value).lower()
    names: dict[type, str] = {str: "a text", list: "a list", tuple: "a list", dict: "a mapping"}
    return names.get(type(value), f"of type {type(value).__name__}")


_PARTS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "text": ("content", lambda value, where: _text(value, f"{where}: `text`")),
    "content": ("content", lambda value, where: value),
    "tool_calls": ("calls", _parse_calls),
    "usage": ("usage", lambda value, where: _parse_usage(value, f"{where}: `usage`")),
    "finish_reason": (
        "finish_reason",
        lambda value, where: _text(value, f"{where}: `finish_reason`") or None,
    ),
    "model": ("model", lambda value, where: _text(value, f"{where}: `model`") or None),
    "error": ("error", lambda value, where: _parse_error(value, f"{where}: `error`")),
    "delay": ("delay", lambda value, where: _number(value, f"{where}: `delay`")),
    "chunks": ("chunks", lambda value, where: _whole(value, f"{where}: `chunks`")),
    "cut": ("cut", lambda value, where: _whole(value, f"{where}: `cut`")),
    "fails": ("fails", _parse_failures),
}
"""The field of a turn that each key fills, and how."""
