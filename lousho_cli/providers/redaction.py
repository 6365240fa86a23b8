"""Keys and tokens, taken out of what is written down.

    what                                     becomes
    the value of an environment variable     <redacted>
      named *_API_KEY, *_TOKEN, *_SECRET,
      *_PASSWORD or *_ACCESS_KEY
    the shape of a vendor's key or token     <redacted>
    `Bearer ...`, `Authorization: ...`,      the name stays, the value is <redacted>
      `x-api-key: ...`, `api_key=...`

Texts that hold JSON stay JSON. What carries a signature is left as it is: a provider checks it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

REDACTED = "<redacted>"
SHORTEST = 8
"""Values of environment variables shorter than this are no keys."""

_SECRET_NAME = re.compile(r"(_API_?KEY|_TOKEN|_SECRET|_PASSWORD|_ACCESS_KEY)$", re.IGNORECASE)
_SECRET_FIELD = re.compile(r"(proxy-)?authorization|(x-)?api[_-]?key", re.IGNORECASE)
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,}|sk_(?:live|test)_[A-Za-z0-9]{16,}|AIza[A-Za-z0-9_-]{30,}|"
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|"
    r"xox[abeprs]-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}|hf_[A-Za-z0-9]{20,}|"
    r"(?:gsk|xai)[_-][A-Za-z0-9_-]{20,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+"
    r")(?![A-Za-z0-9])"
)
_NAMED = re.compile(
    r"(?P<name>\bbearer\s+(?=\S*\d)|\b(?:proxy-)?authorization\W{1,4}(?:(?:bearer|basic|token)\s+)?"
    r"|\b(?:x-)?api[_-]?key\W{1,4})(?P<value>[A-Za-z0-9._~+/=-]{8,})",
    re.IGNORECASE,
)
_SIGNATURES = frozenset(
    ("signature", "thoughtSignature", "thought_signature", "encrypted_content", "encryptedContent")
)


class Redactor:
    """Takes keys and tokens out of JSON values.

    Args:
        environ: environment variables instead of the process's own.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        values = {v for k, v in environ.items() if _SECRET_NAME.search(k) and len(v.strip()) >= SHORTEST}
        # Inside JSON a text is written with escapes; the longer form comes first, as it may hold the other.
        forms = {
            form for v in values for form in (v, json.dumps(v)[1:-1], json.dumps(v, ensure_ascii=False)[1:-1])
        }
        known = sorted(forms, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def text(self, text: str) -> str:
        """`text` without keys. JSON stays JSON, and stays as it is written where it holds none."""
        if text[:1] in ("{", "["):
            try:
                value = json.loads(text)
                changed = self.value(value)
                return text if changed == value else json.dumps(changed, ensure_ascii=False)
            except (ValueError, RecursionError):
                pass
        return self._plain(text)

    def value(self, value: Any) -> Any:
        """A JSON value without keys, in new containers. An object that is signed stays as it is."""
        return mapped(value, self.text, self._object)

    def _object(self, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if value.keys() & _SIGNATURES or str(value.get("type", "")).startswith("redacted"):
            return value
        if not any(_SECRET_FIELD.fullmatch(key) and isinstance(value[key], str) for key in value):
            return None
        return {
            key: REDACTED if _SECRET_FIELD.fullmatch(key) and isinstance(item, str) else self.value(item)
            for key, item in value.items()
        }

    def _plain(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        return _NAMED.sub(rf"\g<name>{REDACTED}", _SHAPES.sub(REDACTED, text))


def mapped(
    value: Any,
    text: Callable[[str], str],
    whole: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = lambda _: None,
) -> Any:
    """A JSON value with `text` applied to every text in it, keys aside.

    Args:
        whole: an object in place of a given one, or None to go into it.
    """
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        instead = whole(value)
        if instead is not None:
            return instead
        return {key: mapped(item, text, whole) for key, item in value.items()}
    if isinstance(value, list):
        return [mapped(item, text, whole) for item in value]
    return value
