"""Asking for one turn with patience: again after a failure that may pass, then another model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from ..errors import ProviderError
from .attempt import Listener, attempt
from .messages import JsonObject, UsageData
from .patience import RetryPolicy, give_up
from .protocols import ModelDelta, ModelRequest, Provider, ReasoningDelta, TextDelta
from .records import ModelResponse, Usage
from .telling import Teller
from .turns import usage_data


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A model that may be asked, and what it is called."""

    provider: Provider
    name: str


@dataclass(slots=True)
class Told:
    """What was told of a turn while the model wrote it."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    anything: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished turn.

    Attributes:
        told: what the observer has been told of it already.
    """

    response: ModelResponse
    told: Told


class Asking:
    """Asks the models of one run, one turn after another.

    The model that answered last is asked first for the next turn.

    Args:
        models: what may be asked, in this order; one at least.
        policy: how often each, and with which waits.
        teller: whom to tell.
        streams: whether a turn may be told before it is whole.
        before: called before each request; it may raise to end the run. None for nothing.
        paid: called with what a failed request has cost.
    """

    def __init__(
        self,
        models: Sequence[AskedModel],
        policy: RetryPolicy,
        teller: Teller,
        *,
        streams: bool,
        before: Callable[[], Awaitable[None]] | None,
        paid: Callable[[UsageData], Awaitable[None]],
    ) -> None:
        self._models = models
        self._policy = policy
        self._teller = teller
        self._streams = streams and teller.is_heard
        self._before = before
        self._paid = paid
        self._at = 0

    async def turn(self, request: ModelRequest, step: int, stop: asyncio.Future[None]) -> Answer | None:
        """One finished turn; None if the run was told to stop first.

        Raises:
            ProviderError: no model could be asked any more, or a failure that no repetition mends.
        """
        asked, failures = 0, 0
        while True:
            if self._before is not None:
                await self._before()
            model = self._models[self._at]
            told = Told()
            asked += 1
            try:
                response = await attempt(model.provider, self._for(request), stop, self._listener(step, told))
                return None if response is None else Answer(response, told)
            except ProviderError as error:
                failures += 1
                usage = None if error.usage is None else usage_data(Usage.model_validate(error.usage))
                if usage is not None:
                    await self._paid(usage)
                about: JsonObject = {"step": step, "attempt": asked, "model": model.name, **_words(error)}
                if told.anything:
                    about["discard"] = True
                wait = self._wait(error, failures)
                if self._models[self._at] is not model:
                    failures = 0
                    about["next"] = self._models[self._at].name
                if wait is None:
                    await self._teller.tell("model.failed", **about)
                else:
                    await self._teller.tell("model.retry", **about, wait=round(wait, 3))
                if usage is not None:
                    await self._teller.saved()
                if wait is None:
                    give_up(error, asked)
                    raise
            if wait:
                await asyncio.wait((stop,), timeout=wait)
            if stop.done():
                return None

    def _for(self, request: ModelRequest) -> ModelRequest:
        """The request as the model that is asked now gets it."""
        return request if self._at == 0 else replace(request, model=self._models[self._at].name)

    def _wait(self, error: ProviderError, failures: int) -> float | None:
        """Seconds until the next request, which may be another model's; None if there is none."""
        if error.retryable and failures < self._policy.attempts:
            return self._policy.wait(failures, error)
        if self._at + 1 < len(self._models):
            self._at += 1
            return 0.0
        return None

    def _listener(self, step: int, told: Told) -> Listener | None:
        if not self._streams:
            return None

        async def listen(piece: ModelDelta) -> None:
            told.anything = True
            if isinstance(piece, TextDelta):
                told.text.append(piece.text)
                await self._teller.tell("text.delta", step=step, text=piece.text)
            elif isinstance(piece, ReasoningDelta):
                told.reasoning.append(piece.text)
                await self._teller.tell("reasoning.delta", step=step, text=piece.text)
            else:
                await self._teller.tell(
                    "call.delta", step=step, index=piece.index, name=piece.name, arguments=piece.arguments
                )

        return listen


def _words(error: ProviderError) -> JsonObject:
    words: JsonObject = {"code": error.code, "message": error.message}
    if error.status is not None:
        words["status"] = error.status
    return {"error": words}
