"""JSON in one form only: RFC 8785, the JSON Canonicalization Scheme.

Written here and not taken from a package, as a replay needs nothing that is not installed anyway. It goes
beyond the RFC in one point: whole numbers too large for a double are written exactly instead of being
refused, as lousho keeps them exact everywhere.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any


def canonical_json(value: Any) -> str:
    """`value`, made of JSON types and valid Unicode, as canonical JSON text.

    Raises:
        ValueError: a number is not finite.
        TypeError: something in it is no JSON type.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join([f"{canonical_json(k)}:{canonical_json(v)}" for k, v in members]) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join([canonical_json(item) for item in value]) + "]"
    raise TypeError(f"{type(value).__name__} is no JSON type")


def _number(number: float) -> str:
    """As ECMAScript writes it: the shortest digits that read back, its own thresholds for exponents."""
    if not math.isfinite(number):
        raise ValueError(f"{number} is no JSON number")
    if number == 0:
        return "0"
    sign, parts, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, parts))
    # The decimal point stands behind this many of the digits.
    point = len(digits) + exponent
    if len(digits) <= point <= 21:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        mantissa = digits[0] + (f".{digits[1:]}" if digits[1:] else "")
        text = f"{mantissa}e{point - 1:+d}"
    return "-" + text if sign else text
