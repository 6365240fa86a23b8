"""Checking the installation and the terminal: versions, extras, keys. Of a key only whether it is there."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from .._version import __version__
from ..render.console import Surface
from .findings import Check


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional part.

    Attributes:
        modules: what can be imported when it is installed.
        purpose: what it is for.
    """

    modules: tuple[str, ...]
    purpose: str


EXTRAS: Mapping[str, Extra] = {
    "anthropic": Extra(("pydantic_ai", "anthropic"), "models of Anthropic"),
    "bedrock": Extra(("pydantic_ai", "boto3"), "models on Amazon Bedrock"),
    "google": Extra(("pydantic_ai", "google.genai"), "models of Google"),
    "groq": Extra(("pydantic_ai", "groq"), "models on Groq"),
    "mistral": Extra(("pydantic_ai", "mistralai"), "models of Mistral"),
    "openai": Extra(("pydantic_ai", "openai"), "models of OpenAI, Ollama, and servers of one's own"),
    "models": Extra(
        ("pydantic_ai", "anthropic", "boto3", "google.genai", "groq", "mistralai", "openai"), "all of these"
    ),
    "mcp": Extra(("mcp",), "tools of MCP servers"),
    "otel": Extra(("opentelemetry.trace",), "OpenTelemetry spans of runs"),
    "redis": Extra(("redis",), "sessions on a Redis or Valkey server"),
    "schema": Extra(("jsonschema",), "answers of a shape that a JSON schema gives"),
}
"""Every extra of the package that is for its users, by name."""

KEYS: Mapping[str, str] = {
    "OPENAI_API_KEY": "OpenAI",
    "ANTHROPIC_API_KEY": "Anthropic",
    "GOOGLE_API_KEY": "Google",
    "GEMINI_API_KEY": "Google",
    "MISTRAL_API_KEY": "Mistral",
    "GROQ_API_KEY": "Groq",
}
"""The environment variables that hold keys, and whose."""


def check_installation(environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Python, lousho, the extras and the keys."""
    version = f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})"
    yield Check("installation", "Python", "ok", version)
    yield Check("installation", "lousho", "ok", __version__)
    for name, extra in EXTRAS.items():
        if all(map(_is_installed, extra.modules)):
            yield Check("installation", f"extra {name}", "ok", f"installed: {extra.purpose}")
        else:
            message = f"not installed; for {extra.purpose}"
            fix = f"pip install 'lousho-cli[{name}]'"
            yield Check("installation", f"extra {name}", "absent", message, fix)
    for variable, owner in KEYS.items():
        there = bool(environ.get(variable))
        message = f"set; the key for {owner}" if there else f"not set; the key for models of {owner}"
        yield Check("installation", variable, "ok" if there else "absent", message)


def check_terminal(surface: Surface) -> Check:
    """What standard output can show."""
    encoding = getattr(surface.stream, "encoding", None) or "unknown encoding"
    if not surface.terminal:
        return Check("terminal", "output", "ok", f"no terminal: plain lines, {encoding}")
    color = "colour" if surface.color else "no colour"
    marks = encoding if surface.unicode else f"{encoding}, which lacks marks: ASCII is used instead"
    return Check("terminal", "output", "ok", f"a terminal of {surface.width} columns, {color}, {marks}")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
