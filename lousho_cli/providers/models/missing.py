"""The error of a key that is not there."""

from __future__ import annotations

from ...errors import ConfigurationError


def missing_key(provider: str, keys: tuple[str, ...], why: str = "") -> ConfigurationError:
    """There is no key, or none that the provider's client finds."""
    named = " or ".join(keys)
    because = f": {why}" if why else ""
    return ConfigurationError(
        f"{provider} needs a key, and {named} is not set{because}",
        code="LOUSHO_PROVIDER_MISSING_API_KEY",
        hint=f"set {named}, or use another model",
    )
