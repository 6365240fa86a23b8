"""How any Python value becomes JSON, once, when it is recorded.

What a tool returns is recorded by these rules; the model sees the same text live and after a resume.
Nothing is dropped, nothing is merged, and no value makes the conversion fail.

    value                         becomes
    None, bool, str               itself
    int                           itself, exact. With more than 4300 digits, which Python by default does not
                                  read back from text: its hex text, "0x1f..."
    float                         itself; the texts "NaN", "Infinity" and "-Infinity"
    surrogates in a text          the two halves of a pair become the character they spell, a lone one U+FFFD
    Decimal, UUID, path, complex  its text: "1.50", "(1+2j)"
    date, time, datetime          ISO 8601, with the zone it has or with none
    timedelta                     its seconds, a float
    bytes, bytearray, memoryview  its text if it is UTF-8, else {"base64": "..."}
    list, tuple, deque, dict view list
    range                         list; of more than a million numbers, its text: "range(0, 2000000)"
    set, frozenset                list, sorted by the JSON text of its elements
    mapping                       object. A key that becomes a text is that text, any other key is its JSON
                                  text: 1 is "1", None is "null", (1, 2) is "[1,2]". If two keys would be
                                  the same: {"entries": [[key, value], ...]}
    dataclass, named tuple        object of its fields; a field without a value is "<unset>"
    pydantic model                object of its fields by alias, as `model_dump` has it; else by name
    enum member                   its value
    exception                     {"error": its message, "type": its class}
    subclass of a type above      as that type
    anything else                 its repr without addresses: "<generator object counter>". Iterators are not
                                  consumed. If repr fails: "<ClassName: no text form>"
    a value inside itself         "<cycle>"
    the 257th container inwards   "<too deep>"
"""

from __future__ import annotations

import math
import sys
from typing import Any

from .value_rules import ENCODER, MAX_DEPTH, MAX_DIGITS, convert, encode
from .value_texts import clean_text, is_clean, message_of

__all__ = [
    "MAX_DEPTH",
    "clean",
    "clean_text",
    "error_result",
    "message_of",
    "to_json_text",
    "to_json_value",
]

_FAST_DEPTH = 64
_TEXT = frozenset({str})
_SCALARS = frozenset({str, int, float, bool, type(None)})


def to_json_value(value: object) -> Any:
    """`value` as None, bools, ints, finite floats, texts, lists and dicts with text keys, all of them new.

    Never raises. What comes out is valid JSON of valid Unicode.
    """
    return convert(value, MAX_DEPTH)


def to_json_text(value: object) -> str:
    """`to_json_value(value)` as compact JSON text. Never raises."""
    text = _plain_text(value)
    return encode(to_json_value(value)) if text is None else text


def clean(value: Any) -> Any:
    """A JSON value with `clean_text` applied to every text and key of it, of any depth.

    The same object if nothing had to change. Keys that become the same follow the rule for mappings.
    """
    return value if _all_clean(value) else convert(value, math.inf)


def error_result(kind: str, message: str, note: str | None = None) -> str:
    """The result of a call that failed, as JSON text the model can read.

    >>> error_result("timeout", "took over 5 s")
    '{"error":"took over 5 s","kind":"timeout"}'
    """
    result = {"error": message, "kind": kind}
    if note is not None:
        result["note"] = note
    return to_json_text(result)


def _plain_text(value: object) -> str | None:
    """The text of a value of exact JSON types only, where the C encoder alone gives the same; or None."""
    if not 0 < sys.get_int_max_str_digits() <= MAX_DIGITS:
        return None
    try:
        if not _is_plain(value, _FAST_DEPTH):
            return None
        text = ENCODER.encode(value)
    except (RuntimeError, TypeError, ValueError):
        # A number out of range, no stack left, or another thread is changing the value.
        return None
    return text if is_clean(text) else None


def _is_plain(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is dict:
        if not _TEXT.issuperset(map(type, value)):
            return False
        value = value.values()
    elif kind is not list and kind is not tuple:
        return False
    if _SCALARS.issuperset(map(type, value)):
        return True
    return depth > 0 and all(_is_plain(item, depth - 1) for item in value)


def _all_clean(value: Any) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            if not (item.isascii() or is_clean(item)):
                return False
        elif isinstance(item, dict):
            waiting += item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return True
