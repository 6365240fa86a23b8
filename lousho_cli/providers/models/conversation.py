"""Our messages as the library's, kept from one request of a session to the next.

A transcript only grows while a session runs, so each message is looked at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from ...execution.log import Log
from ...execution.messages import CallData, MessageData, calls_of, text_of
from .calls import fit_id, sendable_arguments
from .catalog import Vendor
from .content import result_text, user_content
from .parts import provider_parts, restored_parts

EARLIER = "(the conversation goes on from here)"
"""What the user says before a conversation that begins with an answer: providers want the user first."""
_REASONING_ONLY = ("thinking", "compaction")


@dataclass
class _Translated:
    """The messages of one log so far: whole ones, and the parts of a request that may still grow."""

    log: Log
    whole: list[ModelMessage] = field(default_factory=list)
    open: list[ModelRequestPart] = field(default_factory=list)


class Conversations:
    """Translates the transcripts of some sessions for one provider.

    Args:
        provider: our name of it; reasoning goes back to the provider of that name only.
        vendor: what it takes.
        url: where it answers, or None: it is told its own answers by it.
    """

    SESSIONS = 16

    def __init__(self, provider: str, vendor: Vendor) -> None:
        self._provider = provider
        self._vendor = vendor
        self._known: dict[str | None, _Translated] = {}

    def messages(self, log: Log, session_id: str | None) -> list[ModelMessage]:
        """The transcript, system message aside. A log that does not continue the one seen before starts anew.

        Raises:
            ProviderError: a message holds an image or a file that cannot be read.
        """
        known = self._known.pop(session_id, None)
        if known is None or not log.continues(known.log):
            known = _Translated(Log())
        for message in log.slice(len(known.log)):
            self._add(known, message)
        known.log = log
        self._known[session_id] = known
        if len(self._known) > self.SESSIONS:
            del self._known[next(iter(self._known))]
        tail = [ModelRequest(list(known.open))] if known.open else []
        return [*known.whole, *tail]

    def _add(self, known: _Translated, message: MessageData) -> None:
        if message["role"] != "assistant":
            known.open.append(self._request_part(message))
            return
        parts = self._response_parts(message)
        if not parts:
            # A turn of nothing is no turn to a provider; what the user said around it belongs together.
            return
        if known.open or not known.whole:
            known.whole.append(ModelRequest(known.open or [UserPromptPart(EARLIER)]))
            known.open = []
        known.whole.append(self._response(message, parts))

    def _request_part(self, message: MessageData) -> ModelRequestPart:
        if message["role"] == "system":
            return SystemPromptPart(text_of(message["content"]))
        if message["role"] == "user":
            return UserPromptPart(user_content(message["content"]))
        failed = bool(message.get("isError")) and self._vendor.reads_errors
        return ToolReturnPart(
            str(message.get("toolName") or "tool"),
            result_text(message["content"]),
            fit_id(str(message.get("toolCallId") or ""), self._vendor.ids),
            outcome="failed" if failed else "success",
        )

    def _response_parts(self, message: MessageData) -> Sequence[ModelResponsePart]:
        parts = restored_parts(message, self._provider, self._call)
        if parts is None:
            parts = [TextPart(text_of(message["content"])), *map(self._call, calls_of(message))]
        said = [part for part in parts if not _is_blank(part)]
        return said if any(part.part_kind not in _REASONING_ONLY for part in said) else ()

    def _call(self, call: CallData) -> ToolCallPart:
        function = call["function"]
        return ToolCallPart(
            function["name"],
            sendable_arguments(function["arguments"]),
            fit_id(call["id"], self._vendor.ids),
        )

    def _response(self, message: MessageData, parts: Sequence[ModelResponsePart]) -> ModelResponse:
        stored: Any = provider_parts(message, self._provider) or {}
        return ModelResponse(
            parts,
            model_name=stored.get("model"),
            provider_name=stored.get("issuer"),
            canonical_system=stored.get("system"),
            provider_response_id=stored.get("id"),
            provider_details=stored.get("details"),
        )


def _is_blank(part: ModelResponsePart) -> bool:
    """Whether it is a text that providers refuse. One that carries something else is theirs to judge."""
    return isinstance(part, TextPart) and not part.content.strip() and not part.provider_details
