"""Keys and tokens do not reach what is written down."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho_cli.execution.redaction import REDACTED, Redactor

NO_ENVIRONMENT = Redactor({})


@pytest.mark.parametrize(
    "key",
    [
        "sk-abcdefghijklmnop1234",
        "sk-ant-api03-abcdefghijklmnop_1234-xyz",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_11ABCDEFG0abcdefghijkl_mnop",
        "xoxb-123456789012-abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    ],
)
def test_the_shape_of_a_key_is_enough(key: str) -> None:
    assert NO_ENVIRONMENT.text(f"use {key}, please") == f"use {REDACTED}, please"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abc123def456ghi7", f"Authorization: Bearer {REDACTED}"),
        ("authorization: Basic dXNlcjpwYXNz", f"authorization: Basic {REDACTED}"),
        ("curl -H 'x-api-key: 0123456789'", f"curl -H 'x-api-key: {REDACTED}'"),
        ("?api_key=0123456789abc&q=tea", f"?api_key={REDACTED}&q=tea"),
        ("bearer 0a1b2c3d4e5f", f"bearer {REDACTED}"),
    ],
)
def test_what_follows_a_credentials_name_is_taken_out(text: str, left: str) -> None:
    assert NO_ENVIRONMENT.text(text) == left


@pytest.mark.parametrize(
    "text",
    ["the bearer instruments of today", "a task-force", "risk-assessment-of-the-year", "the api key"],
)
def test_ordinary_words_stay(text: str) -> None:
    assert NO_ENVIRONMENT.text(text) == text


def test_values_of_the_environment_are_taken_out() -> None:
    redactor = Redactor({"ACME_API_KEY": "plainword", "DB_PASSWORD": "short", "HOME": "/home/someone"})
    assert redactor.text("plainword short /home/someone") == f"{REDACTED} short /home/someone"


def test_members_that_are_named_like_a_credential_lose_their_value() -> None:
    assert NO_ENVIRONMENT.value({"headers": {"Authorization": "whatever", "Accept": "*/*"}}) == {
        "headers": {"Authorization": REDACTED, "Accept": "*/*"}
    }


@given(st.text(min_size=8).filter(lambda text: len(text.strip()) >= 8 and REDACTED not in text))
def test_json_stays_json_whatever_the_key(secret: str) -> None:
    redactor = Redactor({"X_TOKEN": secret})
    text = json.dumps({"a": [f"<{secret}>"], "n": 12345678901234567890})
    assert json.loads(redactor.text(text)) == {"a": [redactor.text(f"<{secret}>")], "n": 12345678901234567890}
    assert secret not in json.loads(redactor.text(text))["a"][0]


def test_json_without_a_key_stays_as_it_is_written() -> None:
    text = '{"b": 1,   "a": "tea"}'
    assert NO_ENVIRONMENT.text(text) == text


@pytest.mark.parametrize(
    "part",
    [
        {"type": "thinking", "thinking": "sk-abcdefghijklmnop1234", "signature": "sk-abcdefghijklmnop1234"},
        {"type": "redacted_thinking", "data": "sk-abcdefghijklmnop1234"},
        {"type": "reasoning", "encrypted_content": "sk-abcdefghijklmnop1234"},
    ],
)
def test_what_is_signed_is_left_alone(part: dict[str, str]) -> None:
    assert NO_ENVIRONMENT.value([part]) == [part]


def test_text_nested_beyond_reason_is_looked_through_as_text() -> None:
    deep = "[" * 5000 + '"sk-abcdefghijklmnop1234"' + "]" * 5000
    assert NO_ENVIRONMENT.text(deep) == deep.replace("sk-abcdefghijklmnop1234", REDACTED)
