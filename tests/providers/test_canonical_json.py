"""Canonical JSON: the samples of RFC 8785, and that it reads back as what it was."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho_cli.providers.canonical_json import canonical_json

# RFC 8785, appendix B: the bits of a double, and its text.
NUMBERS = """
    0000000000000000 0
    8000000000000000 0
    0000000000000001 5e-324
    8000000000000001 -5e-324
    7fefffffffffffff 1.7976931348623157e+308
    ffefffffffffffff -1.7976931348623157e+308
    4340000000000000 9007199254740992
    c340000000000000 -9007199254740992
    4430000000000000 295147905179352830000
    44b52d02c7e14af5 9.999999999999997e+22
    44b52d02c7e14af6 1e+23
    44b52d02c7e14af7 1.0000000000000001e+23
    444b1ae4d6e2ef4e 999999999999999700000
    444b1ae4d6e2ef4f 999999999999999900000
    444b1ae4d6e2ef50 1e+21
    3eb0c6f7a0b5ed8c 9.999999999999997e-7
    3eb0c6f7a0b5ed8d 0.000001
    41b3de4355555553 333333333.3333332
    41b3de4355555554 333333333.33333325
    41b3de4355555555 333333333.3333333
    41b3de4355555556 333333333.3333334
    41b3de4355555557 333333333.33333343
    becbf647612f3696 -0.0000033333333333333333
    43143ff3c1cb0959 1424953923781206.2
""".split()

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize(("bits", "text"), list(zip(NUMBERS[::2], NUMBERS[1::2], strict=True)))
def test_numbers_are_written_as_the_rfc_says(bits: str, text: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json(number) == text


def test_the_sample_of_the_rfc() -> None:
    sample = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '\u20ac$\u000f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    assert canonical_json(sample) == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_members_are_in_the_order_of_utf_16() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\x80", "\u00f6"]
    assert list(json.loads(canonical_json(dict.fromkeys(keys)))) == [
        *("\r", "1", "\x80", "\u00f6", "\u20ac", "\U0001f600", "\ufb33")
    ]


def test_large_whole_numbers_stay_exact() -> None:
    assert canonical_json(2**64 + 1) == "18446744073709551617"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="no JSON number"):
        canonical_json([number])


@given(VALUES)
def test_it_reads_back_as_the_same_value(value: Any) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_the_same_number(number: float) -> None:
    assert float(canonical_json(number)) == number


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
def test_the_order_of_members_does_not_count(value: dict[str, Any]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)
