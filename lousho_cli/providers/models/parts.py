"""The parts of a model turn as they are stored: what the provider sent and we do not interpret, in its order.

A message holds its text and its reasoning once, as readable fields, and beside them `providerParts`:

    provider    whose parts they are, by our name of it
    model       the model that answered
    id, issuer, system, details    what the library keeps of the answer as a whole
    digest      over text, reasoning and calls; if they were changed since, the parts no longer count
    parts       in order: {"kind": "text" | "thinking", "length": n} cut the text and the reasoning,
                {"kind": "call"} is the next call, {"kind": "other", "value": ...} anything else as it is;
                each with the `id`, `signature` and `details` it came with

Signatures are only valid over what they were made for, so parts go back whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart
from pydantic_core import to_jsonable_python

from ...execution.messages import CallData, MessageData, calls_of, text_of
from ...execution.values import clean_text

PROVIDER_PARTS = "providerParts"
REASONING = "reasoning"
_VOLATILE = "timestamp"


def stored_parts(response: ModelResponse, provider: str) -> dict[str, Any]:
    """What of a library's turn is kept beside its text, reasoning and calls."""
    stored: dict[str, Any] = {"provider": provider}
    for key, value in (
        ("model", response.model_name),
        ("id", response.provider_response_id),
        ("issuer", response.provider_name),
        ("system", response.canonical_system),
    ):
        if value:
            stored[key] = value
    details = {key: value for key, value in (response.provider_details or {}).items() if key != _VOLATILE}
    if details:
        stored["details"] = to_jsonable_python(details)
    parts = [_stored(part) for part in response.parts]
    if not _is_plain(parts):
        stored["parts"] = parts
    return stored


def digest_of(text: str, reasoning: str, calls: Sequence[CallData]) -> str:
    """What tells whether a turn was changed. A call's id is ours to change, so it does not count."""
    functions = [[call["function"]["name"], call["function"]["arguments"]] for call in calls]
    content = json.dumps([text, reasoning, functions]).encode()
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def restored_parts(
    message: MessageData, provider: str, restored_call: Callable[[CallData], ToolCallPart]
) -> list[ModelResponsePart] | None:
    """A stored turn's parts as they came; None if they are another provider's, or the turn was changed."""
    stored = provider_parts(message, provider)
    if stored is None or "parts" not in stored:
        return None
    text, reasoning, calls = text_of(message["content"]), reasoning_of(message), calls_of(message)
    if stored.get("digest") != digest_of(text, reasoning, calls):
        return None
    issuer = stored.get("issuer")
    cut_text, cut_reasoning, open_calls = 0, 0, iter(calls)
    parts: list[ModelResponsePart] = []
    for each in stored["parts"]:
        length = each.get("length", 0)
        if each["kind"] == "text":
            parts.append(TextPart(text[cut_text : cut_text + length], **_opaque(each, issuer)))
            cut_text += length
        elif each["kind"] == "thinking":
            thought = reasoning[cut_reasoning : cut_reasoning + length]
            signature = each.get("signature")
            # A provider without signatures still wants to know its own reasoning again.
            parts.append(
                ThinkingPart(
                    thought, signature=signature, **{**_opaque(each, issuer), "provider_name": issuer}
                )
            )
            cut_reasoning += length
        elif each["kind"] == "call":
            call = restored_call(next(open_calls))
            for key, value in _opaque(each, issuer).items():
                setattr(call, key, value)
            parts.append(call)
        else:
            parts.append(_part_adapter().validate_python(each["value"]))
    return parts


def provider_parts(message: MessageData, provider: str) -> Mapping[str, Any] | None:
    """What the message keeps for that provider, or None."""
    stored = message.get(PROVIDER_PARTS)
    return stored if isinstance(stored, Mapping) and stored.get("provider") == provider else None


def reasoning_of(message: MessageData) -> str:
    reasoning = message.get(REASONING)
    return reasoning if isinstance(reasoning, str) else ""


def _stored(part: ModelResponsePart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        stored: dict[str, Any] = {"kind": "text", "length": len(clean_text(part.content))}
    elif isinstance(part, ThinkingPart):
        stored = {"kind": "thinking", "length": len(clean_text(part.content))}
        if part.signature is not None:
            stored["signature"] = part.signature
    elif isinstance(part, ToolCallPart):
        stored = {"kind": "call"}
    else:
        return {"kind": "other", "value": _part_adapter().dump_python(part, mode="json")}
    if part.id is not None:
        stored["id"] = part.id
    if part.provider_details:
        stored["details"] = to_jsonable_python(part.provider_details)
    return stored


def _is_plain(parts: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the turn is at most one text and then calls, with nothing to them: its fields say it all."""
    return all(
        (part["kind"] == "call" or (part["kind"] == "text" and index == 0))
        and not part.keys() & {"id", "details"}
        for index, part in enumerate(parts)
    )


def _opaque(stored: Mapping[str, Any], issuer: str | None) -> dict[str, Any]:
    known = {"id": stored.get("id"), "provider_details": stored.get("details")}
    given = {key: value for key, value in known.items() if value is not None}
    return {**given, "provider_name": issuer} if given else {}


@cache
def _part_adapter() -> TypeAdapter[ModelResponsePart]:
    return TypeAdapter(ModelResponsePart)
