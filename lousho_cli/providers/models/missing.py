"""The error of a key that is not there."""

from __future__ import annotations

from ...errors import ConfigurationError


def missing_key(provider: str, keys: tuple[str, ...]) -> ConfigurationError:
    """There is no key, or none that the provider's client finds."""
    named = " or ".join(keys)
    return ConfigurationError(
        f"{provider} needs a key, and {named} is not set",
        code="LOUSHO_PROVIDER_MISSING_API_KEY",
        hint=f"set {named}, or use another model",
    )
