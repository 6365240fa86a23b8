"""The provider that the engine asks: a real model, by the common protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ...execution.protocols import ModelDelta, ModelRequest
from ...execution.records import ModelResponse
from .catalog import Vendor
from .clients import Access, open_model

if TYPE_CHECKING:
    from .conversation import Conversations
    from .failures import Failures


class RealModel:
    """A model of a provider, asked over the network.

    One request is one attempt: nothing is tried again here. An error says whether trying again may help.

    Args:
        name: the provider's name of the model.
        vendor: the kind of provider.
        access: where it answers and who asks.

    Attributes:
        model: its id, `provider:model`.
    """

    def __init__(self, name: str, vendor: Vendor, access: Access) -> None:
        self.model = f"{access.name}:{name}"
        self._name = name
        self._vendor = vendor
        self._access = access
        self._conversations: Conversations | None = None

    def __repr__(self) -> str:
        return f"<RealModel {self.model}>"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be stored or shown: its key, and what its headers take from the environment."""
        return self._access.secrets

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """One finished turn.

        Raises:
            ProviderError: there was none; `retryable` says whether asking again may help.
            ConfigurationError: the model cannot be asked like this.
        """
        failures = self._failures()
        try:
            from pydantic_ai.direct import model_request

            from .answer import to_answer

            asked = await self._prepared(request)
            return to_answer(await model_request(**asked), self._access.name)
        except Exception as error:
            problem = failures.of(error)
        raise problem

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelResponse]:
        """The turn while the model writes it, and the whole of it last.

        Raises:
            ProviderError: it was cut, or there was none; `retryable` says whether asking again may help.
            ConfigurationError: the model cannot be asked like this.
        """
        failures = self._failures()
        try:
            from pydantic_ai.direct import model_request_stream

            from .streaming import read_stream

            asked = await self._prepared(request)
            async with model_request_stream(**asked) as stream:
                async for each in read_stream(stream, self._access.name):
                    yield each
            return
        except Exception as error:
            problem = failures.of(error)
        raise problem

    async def _prepared(self, request: ModelRequest) -> dict[str, Any]:
        """What the library is asked, in its own words."""
        from .asking import library_settings, request_parameters
        from .conversation import Conversations

        if self._conversations is None:
            self._conversations = Conversations(self._access.name, self._vendor)
        model = await open_model(self._access, self._named(request.model))
        kind, headers = self._vendor.kind, dict(self._access.headers)
        return {
            "model": model,
            "messages": self._conversations.messages(request.messages.log, request.session_id),
            "model_settings": library_settings(request.settings, request.tools, model, headers, kind),
            "model_request_parameters": request_parameters(request, model),
        }

    def _named(self, model: str | None) -> str:
        """The name a request asks for: another model of the same provider, or this one."""
        provider, _, name = (model or "").partition(":")
        return name if name and provider == self._access.name else self._name

    def _failures(self) -> Failures:
        from .failures import Failures

        return Failures(self.model, self._vendor.keys, self._access.secrets)
