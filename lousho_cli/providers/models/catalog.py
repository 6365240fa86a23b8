"""The providers there are, and what each needs before it can be asked. Data, without any import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "openai",
    "openai-responses",
    "openai-compatible",
    "anthropic",
    "google",
    "google-vertex",
    "bedrock",
    "mistral",
    "groq",
    "ollama",
]


@dataclass(frozen=True, slots=True)
class Ids:
    """What a provider takes as the id of a tool call.

    Attributes:
        longest: how many characters it may have.
        punctuation: the characters allowed beside ASCII letters and digits.
        exact: every id has exactly `longest` characters.
    """

    longest: int = 64
    punctuation: str = "_-"
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Vendor:
    """One kind of provider.

    Attributes:
        kind: which of the library's models speaks to it.
        extra: what to install: `lousho-cli[EXTRA]`.
        modules: what that extra brings, beside the library.
        keys: environment variables that may hold its key, the first one found counts.
        needs_key: whether it answers nobody without a key.
        first_choice: the model asked when none is named and its key is there, or None.
        ids: the ids of tool calls it takes.
        reads_errors: whether a tool's result can be marked as an error.
    """

    kind: Kind
    extra: str
    modules: tuple[str, ...]
    keys: tuple[str, ...] = ()
    needs_key: bool = True
    first_choice: str | None = None
    ids: Ids = Ids()
    reads_errors: bool = False


_CHAT_IDS = Ids(longest=40)

VENDORS: Mapping[str, Vendor] = {
    "anthropic": Vendor(
        "anthropic",
        "anthropic",
        ("anthropic",),
        ("ANTHROPIC_API_KEY",),
        first_choice="claude-haiku-4-5",
        reads_errors=True,
    ),
    "openai": Vendor(
        "openai", "openai", ("openai",), ("OPENAI_API_KEY",), first_choice="gpt-5.6-luna", ids=_CHAT_IDS
    ),
    "openai-responses": Vendor("openai-responses", "openai", ("openai",), ("OPENAI_API_KEY",)),
    "google": Vendor(
        "google",
        "google",
        ("google.genai",),
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        first_choice="gemini-3.5-flash-lite",
    ),
    "google-vertex": Vendor("google-vertex", "google", ("google.genai",), needs_key=False),
    "mistral": Vendor(
        "mistral",
        "mistral",
        ("mistralai",),
        ("MISTRAL_API_KEY",),
        first_choice="mistral-small-latest",
        ids=Ids(longest=9, punctuation="", exact=True),
    ),
    "groq": Vendor(
        "groq", "groq", ("groq",), ("GROQ_API_KEY",), first_choice="openai/gpt-oss-20b", ids=_CHAT_IDS
    ),
    "bedrock": Vendor("bedrock", "bedrock", ("boto3",), needs_key=False, reads_errors=True),
    "ollama": Vendor("ollama", "openai", ("openai",), ("OLLAMA_API_KEY",), needs_key=False, ids=_CHAT_IDS),
}

ALIASES: Mapping[str, str] = {
    "openai-chat": "openai",
    "google-gla": "google",
    "gemini": "google",
    "google-cloud": "google-vertex",
    "vertex": "google-vertex",
}
"""Other names of the same providers."""

COMPATIBLE = Vendor("openai-compatible", "openai", ("openai",), needs_key=False, ids=_CHAT_IDS)
"""Any server that speaks OpenAI's chat completions, set up in a config.toml."""
