"""Which requests are the same to a cassette."""

from __future__ import annotations

from typing import Any

import pytest
from cassette_kit import called, key_of, request_of, result, user

from lousho_cli import ConfigurationError, ModelRequest, ToolSchema
from lousho_cli.execution.protocols import ModelSettings
from lousho_cli.providers.cassette import CassetteRun
from lousho_cli.providers.cassette_model import Tape


def told(content: str) -> ModelRequest:
    return request_of(user("go"), called("a"), result("a", content))


def test_the_model_and_the_session_make_no_difference() -> None:
    asked = request_of(user("Tea?"))
    assert key_of(asked) == key_of(request_of(user("Tea?"), model="another", session_id="s"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("did it at 2026-01-31T09:30:00Z", "did it at 2027-02-01 10:31:59.123+02:00"),
        ("id 6f1c1e9e-0f5d-4a8e-9d0e-6a1f2b3c4d5e.", "id 00000000-0000-4000-8000-000000000001."),
        ("in /tmp/pytest-1/x/report.txt", "in /var/folders/ab/cd_3/T/tmpq1w2e3r4/report.txt"),
        ("in /tmp/tmpab12cd34", "in /private/tmp/tmpzzzzzzzz"),
        (r"in C:\Users\Ann\AppData\Local\Temp\a\report.txt", "in /tmp/b/report.txt"),
        ("took 12 ms", "took 340ms"),
        ("took 0.53 s", "took 12.9 seconds"),
    ],
)
def test_what_changes_from_run_to_run_makes_no_difference(one: str, other: str) -> None:
    assert key_of(request_of(user(one))) == key_of(request_of(user(other)))
    assert key_of(told(f'{{"said": "{one}"}}'.replace("\\", "\\\\"))) == key_of(
        told(f'{{"said": "{other}"}}'.replace("\\", "\\\\"))
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a table on 2026-01-31", "a table on 2026-02-01"),
        ("a table for 19:30", "a table for 20:30"),
        ("at 2026-01-31T19:30", "at 2026-01-31T20:30"),
        ("wait 5 seconds", "wait 6 seconds"),
        ("read /tmp/a/one.txt", "read /tmp/a/two.txt"),
        ("read /home/a/x", "read /home/b/x"),
        ("size 12 MS-DOS disks", "size 13 MS-DOS disks"),
        ("2", "3"),
        ("Tea", "tea"),
    ],
)
def test_what_people_mean_makes_a_difference(one: str, other: str) -> None:
    assert key_of(request_of(user(one))) != key_of(request_of(user(other)))


def test_patterns_of_ones_own_make_no_difference_either() -> None:
    one, other = request_of(user("order ord_17")), request_of(user("order ord_18"))
    assert key_of(one) != key_of(other)
    assert key_of(one, [r"ord_\d+"]) == key_of(other, [r"ord_\d+"])


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no regular expression"):
        key_of(request_of(user("x")), ["("])


def test_call_ids_count_by_their_place() -> None:
    def two_calls(first: str, second: str, answered: str) -> ModelRequest:
        return request_of(
            user("go"), called(first), result(first, "1"), called(second), result(answered, "2")
        )

    assert key_of(two_calls("x", "y", "y")) == key_of(two_calls("call_9", "x", "x"))
    assert key_of(two_calls("x", "y", "y")) != key_of(two_calls("x", "y", "x"))


def test_spacing_and_order_of_arguments_and_results_do_not_count_but_values_do() -> None:
    def with_arguments(arguments: str) -> ModelRequest:
        return request_of(user("go"), called("a", arguments), result("a", "1"))

    assert key_of(with_arguments('{"a":1,"b":2}')) == key_of(with_arguments('{ "b": 2, "a": 1 }'))
    assert key_of(with_arguments('{"a":1}')) != key_of(with_arguments('{"a":true}'))
    assert key_of(with_arguments('{"a":')) != key_of(with_arguments('{"a'))
    assert key_of(told('{"a":1,"b":2}')) == key_of(told('{"b": 2, "a": 1}'))
    assert key_of(told('"1"')) != key_of(told("1"))


def test_what_a_model_adds_to_its_turn_does_not_count() -> None:
    def turn(**more: Any) -> ModelRequest:
        return request_of(user("go"), called("a", **more), result("a", "1"))

    assert key_of(turn()) == key_of(turn(reasoning=[{"type": "thinking", "signature": "SIG"}]))
    assert key_of(turn(text="One")) != key_of(turn(text="Two"))


def test_tools_count_by_name_and_schema_in_any_order() -> None:
    a, b = ToolSchema("a", "A.", {"type": "object"}), ToolSchema("b", "B.", {"type": "object"})
    asked = key_of(request_of(user("go"), tools=[a, b]))
    assert asked == key_of(
        request_of(user("go"), tools=[b, ToolSchema("a", "Other words.", {"type": "object"})])
    )
    assert asked != key_of(request_of(user("go"), tools=[a]))
    assert asked != key_of(request_of(user("go"), tools=[a, ToolSchema("b", "B.", {"type": "array"})]))


def test_settings_count_where_they_may_change_the_answer() -> None:
    plain = key_of(request_of(user("go")))
    assert plain == key_of(request_of(user("go"), settings=ModelSettings(timeout=3)))
    assert plain != key_of(request_of(user("go"), settings=ModelSettings(temperature=0)))
    assert plain != key_of(request_of(user("go"), settings=ModelSettings(stop=("x",))))
    assert plain != key_of(request_of(user("go"), output={"type": "object"}))


def test_a_key_in_a_request_is_neither_kept_nor_counted() -> None:
    asked = Tape(CassetteRun(), "auto").read(request_of(user("use sk-abcdefghijklmnop1234")))
    assert asked.request.messages == [{"role": "user", "content": "use <redacted>"}]
    assert asked.key == key_of(request_of(user("use sk-zyxwvutsrqponmlk4321")))


def test_growing_transcripts_are_read_as_if_anew_also_in_turns() -> None:
    tape = Tape(CassetteRun(), "auto")
    one = [user("one"), called("x"), result("x", "1"), called("y"), result("y", "2")]
    two = [user("two"), called("y"), result("y", "1")]
    for length in (1, 3, 5):
        for messages in (one, two):
            asked = request_of(*messages[:length])
            assert tape.read(asked).key == key_of(asked)


def test_values_of_any_size_and_depth_have_a_key() -> None:
    deep = "[" * 900 + "]" * 900
    assert len(key_of(told(deep))) == 64
    assert len(key_of(told("1" * 5000))) == 64
    assert len(key_of(told('{"a": NaN}'))) == 64
    assert len(key_of(request_of(user("half a pair \ud800")))) == 64
