"""From `provider:model` to a model that can be asked.

What is missing is told here, before a run takes its message in: a package, a key, a provider nobody knows.
Nothing heavy is imported for that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from urllib.parse import urlsplit

from ...errors import ConfigurationError
from .catalog import ALIASES, COMPATIBLE, VENDORS, Vendor
from .clients import Access
from .missing import missing_key
from .model import RealModel
from .servers import Server, filled, referenced

OLLAMA = "http://127.0.0.1:11434"
_LIBRARY = "pydantic_ai"


def find_real_model(
    name: str, servers: Mapping[str, Server] | None = None, environ: Mapping[str, str] | None = None
) -> RealModel:
    """The model of that name.

    Args:
        name: `provider:model`.
        servers: what `[providers.NAME]` sets, by name.
        environ: environment variables instead of the process's own.

    Raises:
        ConfigurationError: there is no such provider, or what it needs is missing: its package
            (`LOUSHO_PEER_MISSING`) or its key (`LOUSHO_PROVIDER_MISSING_API_KEY`).
    """
    environ = os.environ if environ is None else environ
    servers = servers or {}
    given, _, model = name.partition(":")
    provider = given if given in servers else ALIASES.get(given, given)
    server = servers.get(provider, Server())
    vendor = VENDORS.get(provider)
    if vendor is None:
        if provider not in servers:
            raise unknown_provider(given, servers)
        vendor = _compatible(provider, server)
    if not model.strip():
        raise ConfigurationError(f"{name!r} names no model", hint=f"write {given}:MODEL")
    require_packages(vendor, provider)
    variables = (server.api_key_env,) if server.api_key_env else vendor.keys
    key = next((environ[each] for each in variables if environ.get(each)), None)
    base_url = server.base_url or _own_address(vendor, environ)
    if key is None and (server.api_key_env or (vendor.needs_key and not _has_own_server(vendor, base_url))):
        raise missing_key(provider, variables)
    headers = tuple(filled(server.headers, environ, server.where).items())
    secrets = tuple(_secrets(key, server, base_url, environ))
    return RealModel(model, vendor, Access(vendor.kind, provider, base_url, key, headers, secrets))


def require_packages(vendor: Vendor, provider: str) -> None:
    """See that the packages are installed, without importing them.

    Raises:
        ConfigurationError: one is not; code `LOUSHO_PEER_MISSING`.
    """
    if not is_installed(vendor):
        raise ConfigurationError(
            f"{provider} models need packages that are not installed",
            code="LOUSHO_PEER_MISSING",
            hint=f'pip install "lousho-cli[{vendor.extra}]"',
        )


def is_installed(vendor: Vendor) -> bool:
    """Whether the packages that ask such a provider are there."""
    return all(_is_there(module) for module in (_LIBRARY, *vendor.modules))


def unknown_provider(name: str, servers: Mapping[str, Server]) -> ConfigurationError:
    known = sorted({*VENDORS, *ALIASES, *servers})
    likely = get_close_matches(name, known, n=1)
    guess = f"did you mean {likely[0]!r}? " if likely else ""
    listed = ", ".join(sorted({*VENDORS, *servers}))
    return ConfigurationError(
        f"there is no provider {name!r}",
        code="LOUSHO_CONFIG_MISSING_PROVIDER",
        hint=f"{guess}known: {listed}; others are set up under [providers.{name}] in a config.toml",
    )


def ollama_address(environ: Mapping[str, str]) -> str:
    """Where Ollama answers, without a path."""
    given = environ.get("OLLAMA_BASE_URL") or environ.get("OLLAMA_HOST") or OLLAMA
    address = given if "://" in given else f"http://{given}"
    parts = urlsplit(address)
    host = "127.0.0.1" if parts.hostname in (None, "0.0.0.0") else parts.hostname
    port = f":{parts.port}" if parts.port else ":11434" if "://" not in given else ""
    return f"{parts.scheme}://{host}{port}"


def _compatible(name: str, server: Server) -> Vendor:
    if server.base_url is None:
        raise ConfigurationError(
            f"{server.where}: [providers.{name}] has no base_url",
            hint='write base_url = "http://127.0.0.1:8080/v1"',
        )
    return COMPATIBLE


def _own_address(vendor: Vendor, environ: Mapping[str, str]) -> str | None:
    if vendor.kind == "ollama":
        return f"{ollama_address(environ)}/v1"
    if vendor.kind in ("openai", "openai-responses"):
        return environ.get("OPENAI_BASE_URL") or None
    return environ.get("ANTHROPIC_BASE_URL") or None if vendor.kind == "anthropic" else None


def _has_own_server(vendor: Vendor, base_url: str | None) -> bool:
    """Whether OpenAI's interface is asked at another address, where a key may not be needed."""
    return base_url is not None and vendor.kind in ("openai", "openai-responses")


def _secrets(key: str | None, server: Server, base_url: str | None, environ: Mapping[str, str]) -> list[str]:
    found = [key] if key else []
    found += referenced(server.headers, environ)
    found += [environ[name] for name in _AWS if environ.get(name)]
    parts = urlsplit(base_url or "")
    return [*found, *filter(None, (parts.username, parts.password))]


_AWS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
