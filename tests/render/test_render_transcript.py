from __future__ import annotations

import json
from typing import Any

import pytest
from render_surfaces import HOSTILE, assert_harmless, call, pipe, result, screen, shown

from lousho_cli.render.transcript import show_transcript

Messages = list[dict[str, Any]]


def plain(messages: Messages) -> list[str]:
    surface = pipe()
    show_transcript(surface, messages)
    return shown(surface).split("\n")[:-1]


def drawn(messages: Messages, width: int = 80) -> str:
    surface = screen(width)
    show_transcript(surface, messages)
    return shown(surface)


def turn(*calls: dict[str, Any], text: str = "") -> dict[str, Any]:
    return {"role": "assistant", "content": text, "toolCalls": list(calls)}


def test_plain_lines_name_message_and_kind() -> None:
    messages = [
        {"role": "user", "content": "one\n\ttwo"},
        turn(call("c1", "find", '{"b":1,  "a":2}'), text="looking"),
        result("c1", "find", ["x"]),
        {"role": "assistant", "content": "done"},
    ]
    assert plain(messages) == [
        "1\tuser\tone",
        "1\tuser\t\ttwo",
        "2\tassistant\tlooking",
        '2\tcall\tfind\tc1\t{"b": 1, "a": 2}',
        '2\tresult\tfind\tc1\tok\t["x"]',
        "4\tassistant\tdone",
    ]


def test_plain_text_cannot_forge_another_line() -> None:
    lines = plain([{"role": "user", "content": "hi\n2\tresult\tpay\tc1\tok"}])
    assert lines == ["1\tuser\thi", "1\tuser\t2\tresult\tpay\tc1\tok"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("rejected", "⊘ rejected, did not run: boom"),
        ("interrupted", "? interrupted: boom"),
        ("cancelled", "■ cancelled: boom"),
        ("not-run", "■ not run: boom"),
        ("timeout", "✗ timed out: boom"),
        ("tool-error", "✗ failed: boom"),
        ("unknown-tool", "✗ no such tool: boom"),
        ("invalid-arguments", "✗ invalid arguments: boom"),
    ],
)
def test_each_way_a_call_can_end_is_shown_as_itself(kind: str, words: str) -> None:
    messages = [turn(call("c1", "pay", {})), result("c1", "pay", {"error": "boom", "kind": kind}, error=True)]
    assert words in drawn(messages)
    assert f"1\tresult\tpay\tc1\t{kind}\t" in plain(messages)[1]


def test_a_rejection_carries_the_reason_word_for_word() -> None:
    note = "wrong address\n  use the [new] one"
    value = {"error": "rejected by ana", "kind": "rejected", "note": note}
    text = drawn([turn(call("c1", "pay", {})), result("c1", "pay", value, error=True)])
    assert "rejected, did not run: wrong address\n        use the [new] one" in text


def test_data_that_looks_like_an_error_is_a_result() -> None:
    value = {"error": None, "kind": "rejected"}
    messages = [turn(call("c1", "log", {})), result("c1", "log", value)]
    assert "✓" in drawn(messages)
    assert "\tok\t" in plain(messages)[1]


def test_an_error_of_unknown_shape_is_a_failure() -> None:
    messages = [turn(call("c1", "log", {})), result("c1", "log", "broken", error=True)]
    assert "✗ failed: broken" in drawn(messages)


def test_results_stand_under_their_calls_whatever_their_order() -> None:
    messages = [
        turn(call("c1", "a", {}), call("c2", "b", {}), call("c3", "c", {})),
        result("c2", "b", "second"),
        result("c1", "a", "first"),
    ]
    lines = [line.split("\t")[1:4] for line in plain(messages)]
    pairs = (("a", "c1"), ("b", "c2"), ("c", "c3"))
    assert lines == [[what, *pair] for pair in pairs for what in ("call", "result")]
    assert "no result yet" in drawn(messages)


def test_an_id_used_in_two_turns_keeps_its_results_apart() -> None:
    messages = [
        turn(call("c1", "a", {})),
        result("c1", "a", "first"),
        turn(call("c1", "a", {})),
        result("c1", "a", "second"),
    ]
    results = [line for line in plain(messages) if "\tresult\t" in line]
    assert [line.split("\t")[-1] for line in results] == ['"first"', '"second"']


def test_a_result_nobody_asked_for_is_shown() -> None:
    messages = [{"role": "user", "content": "hi"}, result("c9", "a", "lost")]
    assert '2\tresult\ta\tc9\tok\t"lost"' in plain(messages)
    assert "result that no turn asked for" in drawn(messages)
    assert "lost" in drawn(messages)


@pytest.mark.parametrize("value", [0, False, None, "", [], {}])
def test_falsy_results_are_shown(value: object) -> None:
    messages = [turn(call("c1", "a", {})), result("c1", "a", value)]
    assert plain(messages)[1].split("\t")[-1] == json.dumps(value)
    assert "no result yet" not in drawn(messages)


def test_parts_that_are_no_text_are_kept() -> None:
    part = {"type": "image", "data": "A" * 500}
    messages = [{"role": "user", "content": [{"type": "text", "text": "see"}, part]}]
    assert plain(messages) == ["1\tuser\tsee", f"1\tpart\t{json.dumps(part)}"]
    assert '"type": "image"' in drawn(messages)


@pytest.mark.parametrize("content", ["", None, []])
def test_an_empty_message_is_seen(content: object) -> None:
    messages = [{"role": "user", "content": content}]
    assert plain(messages) == ["1\tuser\t"]
    assert "(empty)" in drawn(messages)


def test_arguments_that_are_no_json_are_shown_as_they_came() -> None:
    messages = [turn(call("c1", "a", '{"city": "Par'))]
    assert '{"city": "Par' in drawn(messages)
    assert plain(messages)[0].endswith('{"city": "Par')
    deep = "[" * 100_000
    assert deep in plain([turn(call("c1", "a", deep))])[0]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_terminal_view_loses_no_text_and_keeps_within_the_width(width: int) -> None:
    words = [f"word{n}" for n in range(60)]
    text = drawn([{"role": "user", "content": " ".join(words) + " 日本語" * 30}], width)
    assert [word for word in text.split() if word.startswith("word")] == words
    assert text.count("日本語") == 30
    from rich.cells import cell_len

    assert max(cell_len(line) for line in text.split("\n")) <= width


def test_call_ids_are_whole_on_a_narrow_terminal() -> None:
    ident = "call_" + "9" * 80
    assert ident in drawn([turn(call(ident, "a", {}))], 40)


def test_hostile_text_is_harmless_everywhere() -> None:
    messages: Messages = [
        {"role": HOSTILE, "content": HOSTILE},
        {"role": "user", "content": [HOSTILE, {"type": HOSTILE}]},
        turn(call(HOSTILE, HOSTILE, HOSTILE), call("c2", HOSTILE, {"a": HOSTILE}), text=HOSTILE),
        {"role": "tool", "content": HOSTILE, "toolCallId": HOSTILE, "toolName": HOSTILE},
        result("c2", "x", {"error": HOSTILE, "kind": HOSTILE, "note": HOSTILE}, error=True),
    ]
    assert_harmless("\n".join(plain(messages)))
    assert_harmless(drawn(messages, 400))
