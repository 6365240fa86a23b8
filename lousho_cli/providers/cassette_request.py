"""A model request as a cassette knows it: what it asks, whoever answers, in one canonical form.

It holds the messages, each tool's name and schema, the settings and the schema of the answer. The model, the
session and what a model adds to its turns beside text and calls (reasoning, signatures, ids) are no part of
it. Arguments and results that are JSON are values here, so that key order and spacing do not count. Keys and
tokens are taken out, what changes from run to run is replaced (see `cassette_volatile`). The key is the
SHA-256 of its canonical JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..execution.log import Log
from ..execution.messages import JsonObject, MessageData, calls_of, text_of
from ..execution.protocols import ModelRequest, ModelSettings
from ..execution.redaction import Redactor, mapped
from ..execution.values import to_json_value
from .canonical_json import canonical_json
from .cassette_volatile import Volatile

_UNIMPORTANT_SETTINGS = frozenset(("timeout",))
_NO_SETTINGS = ModelSettings()


@dataclass(frozen=True, eq=False)
class CanonicalRequest:
    """What was asked.

    Attributes:
        messages: the canonical messages, as far as they are new since `base`.
        tools: `{"name", "parameters"}` of each.
        settings: those that are set, and `output`, the schema of the answer, if one is asked for.
        base: a request whose messages come before these, or None.
    """

    messages: list[JsonObject]
    tools: list[JsonObject]
    settings: JsonObject
    base: CanonicalRequest | None = None

    def all_messages(self) -> list[JsonObject]:
        """The whole transcript."""
        parts = []
        request: CanonicalRequest | None = self
        while request is not None:
            parts.append(request.messages)
            request = request.base
        return [message for part in reversed(parts) for message in part]

    def same_terms(self, other: CanonicalRequest) -> bool:
        """Whether both ask with the same tools and settings."""
        return self.tools == other.tools and self.settings == other.settings


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that is asked now: its key, and what it holds, without a base."""

    key: str
    request: CanonicalRequest


@dataclass(slots=True)
class _Transcript:
    """A transcript that has been read up to some message."""

    system: str | None
    log: Log
    messages: list[JsonObject] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)

    def is_begun_by(self, system: str | None, log: Log) -> bool:
        length = len(self.log)
        return (
            system == self.system and length <= len(log) and (not length or log[length - 1] is self.log[-1])
        )


class RequestReader:
    """Makes requests canonical, looking at each message of growing transcripts once."""

    REMEMBERED = 8

    def __init__(self, redactor: Redactor, volatile: Volatile) -> None:
        self._redactor = redactor
        self._volatile = volatile
        self._transcripts: list[_Transcript] = []

    def read(self, request: ModelRequest) -> Asked:
        """The canonical form of a request."""
        seen = self._transcript(request.messages.system, request.messages.log)
        tools = [
            self._plain({"name": tool.name, "parameters": dict(tool.parameters)})
            for tool in sorted(request.tools, key=lambda tool: tool.name)
        ]
        settings = self._settings(request)
        terms = f'"settings":{canonical_json(settings)},"tools":{canonical_json(tools)}'
        text = f'{{"messages":[{",".join(seen.texts)}],{terms}}}'
        key = hashlib.sha256(text.encode()).hexdigest()
        return Asked(key, CanonicalRequest(list(seen.messages), tools, settings))

    def _transcript(self, system: str | None, log: Log) -> _Transcript:
        for seen in self._transcripts:
            if seen.is_begun_by(system, log):
                self._transcripts.remove(seen)
                break
        else:
            seen = _Transcript(system, Log())
            if system is not None:
                self._add(seen, {"role": "system", "content": system})
        for message in log.slice(len(seen.log)):
            self._add(seen, message)
        seen.log = log
        self._transcripts.insert(0, seen)
        del self._transcripts[self.REMEMBERED :]
        return seen

    def _add(self, seen: _Transcript, message: MessageData) -> None:
        canonical = self._plain(_canonical_message(message, seen.ids))
        seen.messages.append(canonical)
        seen.texts.append(canonical_json(canonical))

    def _settings(self, request: ModelRequest) -> JsonObject:
        given: JsonObject = {
            setting.name: value
            for setting in fields(ModelSettings)
            if setting.name not in _UNIMPORTANT_SETTINGS
            and (value := getattr(request.settings, setting.name)) != getattr(_NO_SETTINGS, setting.name)
        }
        if request.output is not None:
            given["output"] = dict(request.output)
        return dict(sorted(self._plain(given).items()))

    def _plain(self, value: JsonObject) -> JsonObject:
        """Without keys, without what is volatile, every object's members in the same order."""
        clean: JsonObject = mapped(self._redactor.value(to_json_value(value)), self._volatile.text)
        return {key: ordered(item) for key, item in clean.items()}


def _canonical_message(message: MessageData, ids: dict[str, str]) -> JsonObject:
    role, content = message["role"], message["content"]
    canonical: JsonObject = {"role": role}
    if role == "assistant":
        canonical["content"] = text_of(content)
        if calls := calls_of(message):
            canonical["toolCalls"] = [
                {
                    "id": ids.setdefault(call["id"], f"call_{len(ids) + 1}"),
                    "name": call["function"]["name"],
                    "arguments": parsed(call["function"]["arguments"]),
                }
                for call in calls
            ]
    elif role == "tool":
        call_id = message.get("toolCallId", "")
        canonical["toolCallId"] = ids.setdefault(call_id, f"call_{len(ids) + 1}")
        canonical["content"] = parsed(content)
        if message.get("isError"):
            canonical["isError"] = True
    else:
        canonical.update({key: value for key, value in sorted(message.items()) if key != "role"})
    return canonical


def parsed(text: Any) -> Any:
    """The value of a JSON text; what is no JSON text stays as it is."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def ordered(value: Any) -> Any:
    """A JSON value whose objects have their members in alphabetical order."""
    if isinstance(value, Mapping):
        return {key: ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [ordered(item) for item in value]
    return value
