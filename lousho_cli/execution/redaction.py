"""Keys and tokens, taken out of what is written down.

    what                                     becomes
    the value of an environment variable     <redacted>
      named *_API_KEY, *_TOKEN, *_SECRET,
      *_PASSWORD or *_ACCESS_KEY
    the shape of a vendor's key or token     <redacted>
    `Bearer ...`, `Authorization: ...`,      the name stays, the value is <redacted>
      `x-api-key: ...`, `api_key=...`
    the password in `scheme://user:...@`     <redacted>
    what a pattern or a key name of the      <redacted>
      user's own names

Texts that hold JSON stay JSON. What carries a signature is left as it is: a provider checks it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigurationError

REDACTED = "<redacted>"
SHORTEST = 8
"""Values of environment variables shorter than this are no keys."""

_SECRET_NAME = re.compile(r"(_API_?KEY|_TOKEN|_SECRET|_PASSWORD|_ACCESS_KEY)$", re.IGNORECASE)
_SECRET_FIELD = r"(proxy-)?authorization|(x-)?api[_-]?key"
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
_PASSWORD = re.compile(r"(?P<name>\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)(?P<value>[^\s/@]+)(?=@)", re.IGNORECASE)
_SIGNATURES = frozenset(
    ("signature", "thoughtSignature", "thought_signature", "encrypted_content", "encryptedContent")
)


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is taken out of inputs, results and texts before they are stored, besides the usual keys.

    Attributes:
        patterns: regular expressions; what they match is taken out.
        keys: names of JSON fields, in any case; their values are taken out.
    """

    patterns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Redaction | Mapping[str, Any] | bool | None) -> Redaction | None:
        """From what a caller gives: True for the usual keys, a mapping with `patterns` and `keys`; or none.

        Raises:
            ConfigurationError: it is something else, or a pattern is no regular expression.
        """
        if given is None or given is False:
            return None
        if isinstance(given, Redaction):
            return given
        values: Mapping[str, Any] = {} if given is True else given
        for name, value in values.items():
            if name not in ("patterns", "keys") or isinstance(value, str):
                raise ConfigurationError(
                    f"redaction cannot have {name} = {value!r}",
                    hint="it has `patterns` and `keys`, lists of texts",
                )
        for pattern in values.get("patterns", ()):
            try:
                matches_nothing = re.compile(pattern).match("") is not None
            except re.error as error:
                raise ConfigurationError(
                    f"{pattern!r} is no regular expression: {error}", hint="correct it in `redaction`"
                ) from error
            if matches_nothing:
                raise ConfigurationError(
                    f"the pattern {pattern!r} fits an empty text",
                    hint="make it ask for at least one character",
                )
        return cls(tuple(values.get("patterns", ())), tuple(values.get("keys", ())))


class Redactor:
    """Takes keys and tokens out of JSON values.

    Args:
        environ: environment variables instead of the process's own.
        redaction: what else to take out.
        secrets: values that are secrets, whatever they look like.
        usual: whether to take out the usual keys; else only `secrets`.

    Attributes:
        count: how many values it has taken out.
    """

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        redaction: Redaction | None = None,
        secrets: Iterable[str] = (),
        usual: bool = True,
    ) -> None:
        environ = os.environ if environ is None else environ
        redaction = redaction or Redaction()
        values = {value for value in secrets if len(value.strip()) >= SHORTEST}
        if usual:
            values |= {v for k, v in environ.items() if _SECRET_NAME.search(k) and len(v.strip()) >= SHORTEST}
        # Inside JSON a text is written with escapes; the longer form comes first, as it may hold the other.
        forms = {
            form for v in values for form in (v, json.dumps(v)[1:-1], json.dumps(v, ensure_ascii=False)[1:-1])
        }
        known = sorted(forms, key=len, reverse=True)
        self.count = 0
        self._rules = [re.compile("|".join(map(re.escape, known)))] if known else []
        self._rules += [_SHAPES] if usual else []
        self._rules += [re.compile(pattern) for pattern in redaction.patterns]
        self._named = (_NAMED, _PASSWORD) if usual else ()
        names = [_SECRET_FIELD] if usual else []
        names += [re.escape(key) for key in redaction.keys]
        self._fields = re.compile("|".join(names), re.IGNORECASE) if names else None
        self._searched = [*self._rules, *self._named, *([self._fields] if self._fields else [])]

    def text(self, text: str) -> str:
        """`text` without keys. JSON stays JSON, and stays as it is written where it holds none."""
        if not any(rule.search(text) for rule in self._searched):
            return text
        if text[:1] in ("{", "[", '"'):
            try:
                value = json.loads(text)
                changed = self.value(value)
                return text if changed == value else json.dumps(changed, ensure_ascii=False)
            except (ValueError, RecursionError):
                pass
        return self.plain(text)

    def value(self, value: Any) -> Any:
        """A JSON value without keys, in new containers. An object that is signed stays as it is."""
        return mapped(value, self.text, self._object)

    def _object(self, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if value.keys() & _SIGNATURES or str(value.get("type", "")).startswith("redacted"):
            return value
        if self._fields is None or not any(map(self._is_secret, value.items())):
            return None
        return {key: self._field(key, item) for key, item in value.items()}

    def _field(self, key: str, item: Any) -> Any:
        if not self._is_secret((key, item)):
            return self.value(item)
        self.count += item != REDACTED
        return REDACTED

    def _is_secret(self, field: tuple[str, Any]) -> bool:
        key, item = field
        return (
            self._fields is not None
            and self._fields.fullmatch(key) is not None
            and isinstance(item, str | int | float)
            and not isinstance(item, bool)
        )

    def plain(self, text: str) -> str:
        """A text that is no JSON, or need not stay it, without keys."""
        for rule in self._rules:
            text, times = rule.subn(REDACTED, text)
            self.count += times
        for rule in self._named:
            text, times = rule.subn(rf"\g<name>{REDACTED}", text)
            self.count += times
        return text


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
