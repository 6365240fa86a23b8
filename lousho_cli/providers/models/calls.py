"""Tool calls on their way out: ids that a provider takes, and arguments that are JSON objects."""

from __future__ import annotations

import hashlib
import json
import string

from .catalog import Ids

_PLAIN = string.ascii_letters + string.digits
UNREADABLE = "unreadable_arguments"
"""Under which arguments that are no JSON object are sent back."""


def fit_id(call_id: str, ids: Ids) -> str:
    """`call_id` if the provider takes it, else a stable replacement that it takes.

    The same id always gets the same replacement, in every process, so a call and its result stay a pair.
    """
    allowed = _PLAIN + ids.punctuation
    length_fits = len(call_id) == ids.longest if ids.exact else 0 < len(call_id) <= ids.longest
    if length_fits and all(character in allowed for character in call_id):
        return call_id
    number = int.from_bytes(hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).digest())
    digits = []
    for _ in range(min(ids.longest, 32)):
        number, digit = divmod(number, len(_PLAIN))
        digits.append(_PLAIN[digit])
    return "".join(digits)


def sendable_arguments(arguments: str) -> str:
    """The model's text if it is a JSON object; no text is an empty object; anything else inside one.

    Servers refuse a whole conversation over one call whose arguments cannot be read.
    """
    if not arguments.strip():
        return "{}"
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    return arguments if isinstance(value, dict) else json.dumps({UNREADABLE: arguments})
