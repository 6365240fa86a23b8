"""Which model this machine has, for agents that name none."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from .catalog import VENDORS
from .lookup import is_installed, ollama_address

PROBE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model, and why it is the one."""

    model: str
    why: str


def discover_model(environ: Mapping[str, str] | None = None) -> FoundModel:
    """The first provider whose key is set and whose packages are there, else a running Ollama, else `demo`.

    Asks nobody but a local Ollama, and waits for it less than half a second.
    """
    environ = os.environ if environ is None else environ
    lacking = []
    for name, vendor in VENDORS.items():
        key = next((each for each in vendor.keys if environ.get(each)), None)
        if key is None or vendor.first_choice is None:
            continue
        if is_installed(vendor):
            return FoundModel(f"{name}:{vendor.first_choice}", f"{key} is set")
        lacking.append(f'{key} is set, but for it you need: pip install "lousho-cli[{vendor.extra}]"')
    if is_installed(VENDORS["ollama"]):
        address = ollama_address(environ)
        installed = _ollama_models(address)
        if installed:
            return FoundModel(f"ollama:{installed[0]}", f"Ollama runs at {address}")
    return FoundModel("demo", lacking[0] if lacking else "no provider's key is set, and no Ollama runs here")


def _ollama_models(address: str) -> list[str]:
    """The models a running Ollama has; none if nothing answers."""
    parts = urlsplit(address)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", "/api/tags")
        answer = json.loads(connection.getresponse().read(1_000_000))
        return [str(each["name"]) for each in answer["models"]]
    except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException):
        return []
    finally:
        connection.close()
