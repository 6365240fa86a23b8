"""What `[providers.NAME]` in a config.toml says: where a provider is, and how it knows who asks.

Keys stay out of the file. It names the environment variable that holds the key, and a header may hold
`${VARIABLE}` in place of a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ...errors import ConfigurationError

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = re.compile(r"auth|token|secret|password|cookie|credential|(^|[-_])key($|[-_])", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"^\s*(bearer|basic)\s|^(sk|pk|rk|gsk|xai|hf|ghp|glpat)[-_]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Server:
    """A provider's place.

    Attributes:
        base_url: where it answers, `http://127.0.0.1:8080/v1`; None for the provider's own.
        api_key_env: the environment variable that holds its key, or None.
        headers: sent with each request; `${VARIABLE}` stands for an environment variable.
        where: the file it is set up in, for messages.
    """

    base_url: str | None = None
    api_key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    where: str = ""

    def check(self) -> None:
        """See that nothing secret stands in the file.

        Raises:
            ConfigurationError: an address is none, or a secret stands in plain.
        """
        if self.base_url is not None:
            check_url("base_url", self.base_url, self.where)
        check_headers(self.headers, self.where)


def check_headers(headers: Mapping[str, str], where: str) -> None:
    """See that no header holds a secret.

    Raises:
        ConfigurationError: one does.
    """
    for name, value in headers.items():
        secret = _SECRET_NAME.search(name) or _SECRET_VALUE.search(value)
        if secret and not _REFERENCE.search(value):
            raise ConfigurationError(
                f"{where}: the header {name!r} holds a secret in plain text",
                hint=f'put it into an environment variable: {name} = "${{MY_VARIABLE}}"',
            )


def filled(
    headers: Mapping[str, str],
    environ: Mapping[str, str],
    where: str,
    *,
    what: str = "a header",
    code: str = "LOUSHO_PROVIDER_MISSING_API_KEY",
) -> dict[str, str]:
    """The headers, or other texts by name, with the environment's values in place of `${VARIABLE}`.

    Raises:
        ConfigurationError: a variable is not set; its code is `code`.
    """

    def value_of(found: re.Match[str]) -> str:
        value = environ.get(found[1])
        if not value:
            raise ConfigurationError(
                f"{where}: {what} needs the environment variable {found[1]}, which is not set",
                code=code,
                hint=f"set {found[1]}",
            )
        return value

    return {name: _REFERENCE.sub(value_of, text) for name, text in headers.items()}


def referenced(headers: Mapping[str, str], environ: Mapping[str, str]) -> list[str]:
    """The secrets that headers take from the environment."""
    names = [found for text in headers.values() for found in _REFERENCE.findall(text)]
    return [environ[name] for name in names if environ.get(name)]


def check_url(key: str, url: str, where: str) -> None:
    """See that an address is one, and holds no secret.

    Raises:
        ConfigurationError: it is none, or it does.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        usable = secret = False
    if secret:
        raise ConfigurationError(
            f"{where}: {key} holds a name or a password", hint="leave it out, and use a header"
        )
    if not usable:
        raise ConfigurationError(
            f"{where}: {key} is no web address", hint='write it like "http://127.0.0.1:8080/v1"'
        )
