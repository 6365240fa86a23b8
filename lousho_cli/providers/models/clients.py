"""The library's model of a provider, and how long it lives.

Connections belong to an event loop. Each loop has its own models, one for all who ask the same, which are
closed when the loop ends.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .catalog import Kind

if TYPE_CHECKING:
    from pydantic_ai.models import Model

READ_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Access:
    """Where a provider answers and who asks.

    Attributes:
        kind: which of the library's models speaks to it.
        name: our name of it.
        base_url: where it answers; None for its own address.
        api_key: the key, or None where none is needed.
        headers: sent with each request.
        secrets: what of all this must never be shown.
    """

    kind: Kind
    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class _Opened:
    model: Model[Any]
    lifetime: AsyncGenerator[None]


_open: dict[asyncio.AbstractEventLoop, dict[tuple[Access, str], _Opened]] = {}


async def open_model(access: Access, name: str) -> Model[Any]:
    """The model of that name, for the running loop."""
    loop = asyncio.get_running_loop()
    key = (access, name)
    opened = _open.get(loop, {})
    if key not in opened:
        for other in [each for each in _open if each.is_closed()]:
            del _open[other]
        model = build(access, name)
        lifetime = _until_the_loop_ends(model)
        opened = _open.setdefault(loop, {})
        opened[key] = _Opened(model, lifetime)
        await anext(lifetime)
    return opened[key].model


async def _until_the_loop_ends(model: Model[Any]) -> AsyncGenerator[None]:
    """A loop closes the generators that are still open when it ends, and this one closes the connections."""
    async with model:
        try:
            yield
        finally:
            _open.pop(asyncio.get_running_loop(), None)


def build(access: Access, name: str) -> Model[Any]:
    """The library's model of that name. This imports the client of its provider."""
    return _BUILDERS[access.kind](access, name)


def _openai(access: Access, name: str) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=access.base_url, api_key=access.api_key)
    return OpenAIChatModel(name, provider=provider, profile=_whole_turns(provider.model_profile(name)))


def _openai_responses(access: Access, name: str) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(
        name, provider=OpenAIProvider(base_url=access.base_url, api_key=access.api_key)
    )


def _compatible(access: Access, name: str) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    provider = OpenAICompatibleProvider(
        name=access.name, base_url=access.base_url or "", api_key=access.api_key
    )
    return OpenAIChatModel(name, provider=provider, profile=_whole_turns(provider.model_profile(name)))


def _ollama(access: Access, name: str) -> Model[Any]:
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    return OllamaModel(name, provider=OllamaProvider(base_url=access.base_url, api_key=access.api_key))


def _whole_turns(profile: Any) -> Any:
    """A stream without a reason for its end was cut: its turn does not count."""
    from pydantic_ai.profiles import merge_profile
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    return merge_profile(profile, OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True))


def _anthropic(access: Access, name: str) -> Model[Any]:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(name, provider=AnthropicProvider(base_url=access.base_url, api_key=access.api_key))


def _google(access: Access, name: str) -> Model[Any]:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    if access.api_key is None:
        return GoogleModel(name, provider=GoogleProvider(base_url=access.base_url))
    return GoogleModel(name, provider=GoogleProvider(base_url=access.base_url, api_key=access.api_key))


def _google_vertex(access: Access, name: str) -> Model[Any]:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google_cloud import GoogleCloudProvider

    return GoogleModel(name, provider=GoogleCloudProvider(base_url=access.base_url, api_key=access.api_key))


def _bedrock(access: Access, name: str) -> Model[Any]:
    import boto3
    from botocore.config import Config
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    # The one client that cannot be told per request to ask only once.
    once = Config(retries={"total_max_attempts": 1, "mode": "standard"}, read_timeout=READ_SECONDS)
    region = os.environ.get("AWS_REGION") or None
    # A session of its own: the shared one keeps the credentials it found first.
    session = boto3.Session(region_name=region)
    client = session.client("bedrock-runtime", config=once, endpoint_url=access.base_url)
    return BedrockConverseModel(name, provider=BedrockProvider(bedrock_client=client))


def _mistral(access: Access, name: str) -> Model[Any]:
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    provider = MistralProvider(base_url=access.base_url, api_key=access.api_key)
    # The one client that takes no headers per request; it adds those of its connection.
    http = provider.client.sdk_configuration.async_client
    getattr(http, "headers", {}).update(access.headers)
    return MistralModel(name, provider=provider)


def _groq(access: Access, name: str) -> Model[Any]:
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    return GroqModel(name, provider=GroqProvider(base_url=access.base_url, api_key=access.api_key))


_BUILDERS: dict[Kind, Callable[[Access, str], Model[Any]]] = {
    "openai": _openai,
    "openai-responses": _openai_responses,
    "openai-compatible": _compatible,
    "anthropic": _anthropic,
    "google": _google,
    "google-vertex": _google_vertex,
    "bedrock": _bedrock,
    "mistral": _mistral,
    "groq": _groq,
    "ollama": _ollama,
}
