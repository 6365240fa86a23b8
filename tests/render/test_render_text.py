from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho_cli.render.text import ago, duration, escape, escape_json, escape_line

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANY_TEXT = st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("\x00\x07\x1f", "\\x00\\x07\\x1f"),
        ("\r", "\\r"),
        ("\x7f\x80\x9b\x9f", "\\x7f\\x80\\x9b\\x9f"),
        ("\u200b\u200e\u200f\ufeff", "\\u200b\\u200e\\u200f\\ufeff"),
        ("\u202a\u202e\u2066\u2069", "\\u202a\\u202e\\u2066\\u2069"),
        ("\ud800\udfff", "\\ud800\\udfff"),
    ],
)
def test_controls_and_invisible_characters_are_shown(text: str, expected: str) -> None:
    assert escape(text) == expected
    assert escape_line(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "",
        "zażółć",
        "日本語",
        "👩\u200d👩\u200d👧",
        "نمی\u200cخواهم",
        "\xa0",
        "\\x1b",
        "\u2065\u206a",
    ],
)
def test_words_emoji_and_their_joiners_are_left_alone(text: str) -> None:
    assert escape(text) == text
    assert escape_line(text) == text


def test_newline_and_tab_stay_in_text_and_are_shown_in_a_line() -> None:
    assert escape("a\n\tb") == "a\n\tb"
    assert escape_line("a\n\tb") == "a\\n\\tb"


@given(ANY_TEXT)
def test_escaped_text_can_be_written_and_escaping_again_changes_nothing(text: str) -> None:
    line = escape_line(text)
    line.encode("utf-8")
    assert escape_line(line) == line == escape(line)
    assert "\n" not in line


@given(ANY_TEXT)
def test_escaped_json_is_the_same_json(text: str) -> None:
    shown = escape_json(json.dumps({"k": text}, ensure_ascii=False))
    assert json.loads(shown) == {"k": text}
    assert escape(shown) == shown


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "now"), (12, "12s ago"), (60, "1m ago"), (7300, "2h ago"), (200_000, "2d ago"), (-300, "in 5m")],
)
def test_ago_is_short(seconds: int, expected: str) -> None:
    assert ago((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == expected


def test_ago_of_long_past_is_a_date_and_zones_count() -> None:
    assert ago("2020-05-06T00:00:00Z", NOW) == "2020-05-06"
    assert ago("2026-03-01T12:00:00+02:00", NOW) == "2h ago"
    assert ago("2026-03-01T11:00:00", NOW) == "1h ago"


def test_ago_of_no_instant_is_shown_as_it_is() -> None:
    assert ago("long\x1b ago", NOW) == "long\\x1b ago"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0004, "0ms"),
        (0.04, "40ms"),
        (0.0996, "0.1s"),
        (1.25, "1.2s"),
        (9.96, "10s"),
        (65, "1m 05s"),
        (7380, "2h 03m"),
    ],
)
def test_durations(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected
