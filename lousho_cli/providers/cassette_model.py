"""A model whose answers come from a cassette, or go into it on their way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Literal, cast, get_args

from pydantic import ValidationError

from ..errors import CassetteError, ConfigurationError, ProviderError
from ..execution.attempt import finished_turn
from ..execution.messages import JsonObject, text_of
from ..execution.protocols import (
    CallDelta,
    ModelDelta,
    ModelRequest,
    Provider,
    ReasoningDelta,
    Streams,
    TextDelta,
)
from ..execution.records import ModelResponse
from ..execution.redaction import Redactor
from ..execution.values import to_json_value
from .cassette import CassetteRun, RecordedCall
from .cassette_miss import closest, first_difference
from .cassette_request import Asked, CanonicalRequest, RequestReader
from .cassette_volatile import Volatile

Mode = Literal["record", "replay", "auto"]
MODES: tuple[Mode, ...] = get_args(Mode)
MISS = "LOUSHO_CASSETTE_MISS"


class Tape:
    """One run of a cassette while it is played or recorded, by one model or by several.

    Each recorded call answers once; equal requests are answered in the order they were recorded. An answer
    recorded for a request that the run has already takes the old one's place, or else is added.

    Args:
        run: the calls there are. What is recorded goes into it.
        mode: `replay` never asks a model, `record` always does, `auto` does where the run has no answer.
        changed: called when a live model is about to be asked, with False, and after its answer is in the
            run, with True. What it raises ends the request.
        name: what errors call the cassette.
        volatile: regular expressions of what is to make no difference, beside the known ones.

    Raises:
        ConfigurationError: the mode or a pattern is none.
    """

    def __init__(
        self,
        run: CassetteRun,
        mode: Mode,
        *,
        changed: Callable[[bool], None] | None = None,
        name: str = "the cassette",
        volatile: Iterable[str] = (),
    ) -> None:
        if mode not in MODES:
            raise ConfigurationError(f"the cassette mode is {mode!r}", hint=f"use {', '.join(MODES)}")
        self.run = run
        self.mode = mode
        self._changed = changed or (lambda _: None)
        self._name = name
        self._redactor = Redactor()
        self._reader = RequestReader(self._redactor, Volatile(volatile))
        self._used: set[int] = set()

    def model(self, provider: Callable[[], Provider] | Provider | None) -> CassetteModel:
        """The model as an agent uses it.

        Args:
            provider: the live model, or a function that makes it when it is first needed; never touched in
                a replay.

        Raises:
            ConfigurationError: there is none, and it is to be recorded.
        """
        if provider is None and self.mode == "record":
            raise ConfigurationError(
                "there is no model to record",
                code="LOUSHO_CONFIG_MISSING_PROVIDER",
                hint="give a provider, or replay",
            )
        return CassetteModel(self, provider)

    def read(self, request: ModelRequest) -> Asked:
        """The canonical form of a request."""
        return self._reader.read(request)

    def take(self, asked: Asked) -> ModelResponse | None:
        """The recorded answer that comes next for this request; None if a live model is to be asked.

        Raises:
            CassetteError: there is none, and this is a replay; or the recorded request was changed.
        """
        if self.mode == "record":
            return None
        call = self._next(asked)
        if call is not None and call.response is not None:
            self._check(call, asked)
            self._used.add(id(call))
            return ModelResponse.model_validate(call.response)
        if self.mode == "replay":
            raise self.miss(asked)
        return None

    def begin(self, asked: Asked, model: str | None) -> RecordedCall:
        """Take a place for the answer of a live model, in the order of asking."""
        self._changed(False)
        call = self._next(asked)
        if call is None:
            call = RecordedCall(asked.key, asked.request, None, model)
            self.run.calls.append(call)
        self._used.add(id(call))
        return call

    def finish(self, call: RecordedCall, asked: Asked, model: str | None, response: ModelResponse) -> None:
        """Keep an answer in its place."""
        if call.response is None:
            call.request = self._continuing(call, asked.request)
        call.model, call.response = model, self._written(response)
        self._changed(True)

    def drop(self, call: RecordedCall) -> None:
        """Give up a place whose answer did not come: a turn that failed is not recorded."""
        self._used.discard(id(call))
        if call.response is None:
            self.run.calls.remove(call)

    def _next(self, asked: Asked) -> RecordedCall | None:
        fitting = (call for call in self.run.calls if call.key == asked.key and id(call) not in self._used)
        return next(fitting, None)

    def _continuing(self, call: RecordedCall, asked: CanonicalRequest) -> CanonicalRequest:
        """The request as what is new since the latest earlier call of the same transcript."""
        for earlier in reversed(self.run.calls[: self.run.calls.index(call)]):
            if earlier.response is None or not earlier.request.same_terms(asked):
                continue
            known = earlier.request.all_messages()
            if 0 < len(known) <= len(asked.messages) and asked.messages[: len(known)] == known:
                new = asked.messages[len(known) :]
                return CanonicalRequest(new, asked.tools, asked.settings, earlier.request)
        return asked

    def _written(self, response: ModelResponse) -> JsonObject:
        """The turn as JSON, without keys; what is signed or not understood stays as it came."""
        dumped = response.model_dump(mode="json", by_alias=True)
        extra = response.model_extra or {}
        turn: JsonObject = to_json_value(
            {key: value for key, value in dumped.items() if key in extra or value not in (None, [])}
        )
        signed = self._redactor.value({key: turn[key] for key in turn if key in extra})
        plain = {key: self._redactor.value(turn[key]) for key in turn if key not in extra}
        return {"content": plain.pop("content", ""), **plain, **signed}

    def _check(self, call: RecordedCall, asked: Asked) -> None:
        """See that the recorded request is the one its key stands for."""
        if call.request.all_messages() == asked.request.messages and call.request.same_terms(asked.request):
            return
        difference = first_difference(call.request, asked.request)
        if difference is not None:
            raise CassetteError(
                f"{self._name} was changed: the key of call {self.run.calls.index(call) + 1} does not belong "
                f"to its request, which has {difference.recorded} at {difference.path}",
                hint="restore the request, or record it again",
            )

    def miss(self, asked: Asked) -> CassetteError:
        """The error that says why there is no answer, and what differs."""
        calls = self.run.calls
        hint = "record it (--record, or mode record), or undo what changed the request"
        if not calls:
            return CassetteError(f"{self._name} holds no answers", code=MISS, hint=hint)
        if any(call.key == asked.key for call in calls):
            times = sum(call.key == asked.key for call in calls)
            text = f"the same request was recorded {times}x and is asked for once more"
            return CassetteError(f"{self._name} has no further answer: {text}", code=MISS, hint=hint)
        index = closest(calls, asked.request)
        text = f"{self._name} has no answer to this request; closest is call {index + 1} of {len(calls)}"
        difference = first_difference(calls[index].request, asked.request)
        if difference is not None:
            text += f": {difference.path} was {difference.recorded}, now it is {difference.asked}"
        return CassetteError(text, code=MISS, hint=hint)


class CassetteModel:
    """A model on a cassette: a Provider, streaming included. Make it with `Tape.model`.

    A recorded answer is streamed as one piece. Only finished turns are recorded: an error of the model goes
    on to the caller, and is not played again later.
    """

    def __init__(self, tape: Tape, provider: Callable[[], Provider] | Provider | None) -> None:
        self.tape = tape
        self._provider = provider
        self._made: Provider | None = None

    def __repr__(self) -> str:
        return f"<model on a cassette, mode {self.tape.mode}>"

    @property
    def model(self) -> str:
        """The id of the model: the recorded one in a replay, else the live one's."""
        recorded = next((call.model for call in self.tape.run.calls if call.model), None)
        if self.tape.mode == "replay" or callable(self._provider) or self._provider is None:
            return recorded or "cassette"
        return _model_id(self._provider)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The live model's, as far as it is known."""
        return tuple(getattr(self._made or self._provider, "secrets", ()))

    async def generate(self, request: ModelRequest) -> ModelResponse | Mapping[str, Any]:
        """The recorded answer, or the live model's.

        Raises:
            CassetteError: the cassette has no answer and no model may be asked.
            StorageError: the cassette cannot be written.
        """
        asked = self.tape.read(request)
        recorded = self.tape.take(asked)
        if recorded is not None:
            return recorded
        provider = self._live(asked)
        model = request.model or _model_id(provider)
        call = self.tape.begin(asked, model)
        finished = False
        try:
            answer = await provider.generate(request)
            turn = _finished(answer)
            if turn is not None:
                self.tape.finish(call, asked, model, turn)
                finished = True
            return answer
        finally:
            if not finished:
                self.tape.drop(call)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelResponse]:
        """The same in pieces, the whole turn last."""
        asked = self.tape.read(request)
        recorded = self.tape.take(asked)
        if recorded is not None:
            async for piece in _as_one_piece(recorded):
                yield piece
            return
        provider = self._live(asked)
        model = request.model or _model_id(provider)
        call = self.tape.begin(asked, model)
        finished = False
        try:
            async for piece in _pieces(provider, request):
                turn = _finished(piece)
                if turn is not None:
                    self.tape.finish(call, asked, model, turn)
                    finished = True
                yield piece
        finally:
            if not finished:
                self.tape.drop(call)

    def _live(self, asked: Asked) -> Provider:
        if self._provider is None:
            raise self.tape.miss(asked)
        if self._made is None:
            given = self._provider
            self._made = cast("Provider", given if hasattr(given, "generate") else given())
        return self._made


def _finished(answer: object) -> ModelResponse | None:
    """The answer as a turn, if the engine takes it as one."""
    if isinstance(answer, TextDelta | ReasoningDelta | CallDelta):
        return None
    try:
        return finished_turn(answer)
    except (ProviderError, ValidationError):
        return None


async def _pieces(provider: Provider, request: ModelRequest) -> AsyncIterator[Any]:
    if isinstance(provider, Streams):
        async for piece in provider.stream(request):
            yield piece
        return
    answer = await provider.generate(request)
    async for piece in _as_one_piece(_finished(answer) or answer):
        yield piece


async def _as_one_piece(answer: Any) -> AsyncIterator[Any]:
    if isinstance(answer, ModelResponse) and (text := text_of(answer.content)):
        yield TextDelta(text)
    yield answer


def _model_id(provider: Provider) -> str:
    return str(getattr(provider, "model", None) or type(provider).__name__)
