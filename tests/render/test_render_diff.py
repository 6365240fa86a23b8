from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from render_surfaces import HOSTILE, assert_harmless, pipe, screen, shown

from lousho_cli.render.comparison import compare
from lousho_cli.render.diff import show_diff
from lousho_cli.render.fields import MISSING, Change, canonical, changes

Step = dict[str, Any]
REJECTED = {"error": "rejected by ana", "kind": "rejected", "note": "too dear"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab[.", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


def tool(name: str, args: Any = None, result: Any = "ok") -> dict[str, Any]:
    return {"name": name, "args": args if args is not None else {}, "result": result}


def step(*tools: dict[str, Any], text: str = "") -> Step:
    return {"text": text, "tools": list(tools)}


def letters(names: str) -> list[Step]:
    return [step(tool(name)) for name in names]


def first_difference(a: list[Step], b: list[Step]) -> int | None:
    for number, (x, y) in enumerate(zip(a, b, strict=False), 1):
        if canonical(x) != canonical(y):
            return number
    return None if len(a) == len(b) else min(len(a), len(b)) + 1


def diff(a: list[Step], b: list[Step], **more: Any) -> dict[str, Any]:
    return {"a": a, "b": b, "divergedAt": first_difference(a, b), "drift": [], **more}


def plain(a: list[Step], b: list[Step], *, full: bool = False, stat: bool = False, **more: Any) -> list[str]:
    surface = pipe()
    show_diff(surface, "A", "B", diff(a, b, **more), full=full, stat=stat)
    return shown(surface).split("\n")[:-1]


def kinds(a: list[Step], b: list[Step]) -> list[str]:
    return [d.kind for d in compare(a, b, first_difference(a, b)) if d.kind != "same"]


def test_one_inserted_step_is_one_difference() -> None:
    lines = plain(letters("abcde"), letters("axbcde"))
    assert lines == [
        "--- A",
        "+++ B",
        "first difference: step 2, only in B",
        "= step 1 is the same",
        "+ step 2",
        "+   x {}",
        '+     ok "ok"',
        "= steps 2-5 / 3-6 are the same",
    ]


def test_equal_runs_have_no_difference() -> None:
    assert plain(letters("abc"), letters("abc")) == ["--- A", "+++ B", "no difference"]
    assert plain([], []) == ["--- A", "+++ B", "no difference"]


def test_one_side_empty() -> None:
    lines = plain([], letters("ab"))
    assert lines[2:4] == ["first difference: step 1, only in B", "+ step 1"]


@pytest.mark.parametrize(
    ("a", "b", "kind", "words"),
    [
        (step(tool("f", {"x": 1})), step(tool("f", {"x": 2})), "arguments", "arguments of f"),
        (step(tool("f", {}, 1)), step(tool("f", {}, 2)), "result", "result of f"),
        (step(tool("f", {}, 1)), step(tool("f", {}, REJECTED)), "decision", "decision of f"),
        (step(tool("f")), step(tool("g")), "call", "other calls: f, g"),
        (step(text="x"), step(text="y"), "text", "text"),
        (step(tool("f"), tool("g")), step(tool("g"), tool("f")), "order", "only the order of the calls"),
        (step(tool("f")), step(tool("f"), tool("g")), "call", "other calls: g"),
    ],
)
def test_the_first_divergence_is_named(a: Step, b: Step, kind: str, words: str) -> None:
    assert kinds([a], [b]) == [kind]
    assert f"first difference: step 1, {words}" in plain([a], [b])


def test_a_batch_in_another_order_with_a_real_change_is_that_change() -> None:
    a = step(tool("f", {"x": 1}), tool("g"), tool("f", {"x": 2}))
    b = step(tool("f", {"x": 2}), tool("f", {"x": 3}), tool("g"))
    lines = plain([a], [b])
    assert "~ step 1: arguments" in lines
    assert [line for line in lines if line.startswith("!")] == ["!   f args.x: 1 -> 3"]


def test_fields_that_changed_are_listed() -> None:
    a = step(tool("f", {"q": {"city": "Paris", "hours": [1, 2]}}, {"sun": True}))
    b = step(tool("f", {"q": {"city": "Rome", "hours": [1, 2]}}, {"sun": True, "wind": 3}))
    assert [line for line in plain([a], [b]) if line.startswith("!")] == [
        '!   f args.q.city: "Paris" -> "Rome"',
        "!   f result.wind: (none) -> 3",
    ]


def test_a_call_without_result_is_pending_and_null_is_a_result() -> None:
    pending = {"name": "f", "args": {}}
    lines = plain([step(pending)], [step(tool("f", {}, None))])
    assert "-     no result yet" in lines
    assert "+     ok null" in lines
    assert "!   f result: (none) -> null" in lines


def test_rejected_and_failed_are_shown_apart() -> None:
    failed = {"error": "boom", "kind": "tool-error"}
    lines = plain([step(tool("f", {}, REJECTED))], [step(tool("f", {}, failed))])
    assert "-     rejected, did not run: too dear" in lines
    assert "+     failed: boom" in lines


def test_full_shows_the_same_steps_too() -> None:
    lines = plain(letters("ab"), letters("ac"), full=True)
    assert lines[3:6] == ["= step 1", "    a {}", '      ok "ok"']


def test_stat_counts() -> None:
    a = [*letters("ab"), step(tool("f", {"x": 1}))]
    b = [*letters("axb"), step(tool("f", {"x": 2}))]
    assert plain(a, b, stat=True)[3:] == ["2 same, 1 changed", "0 only in A, 1 only in B", "  arguments: 1"]


def test_drift_and_common_origin_are_told() -> None:
    drift = [{"field": "steps", "committed": "3", "current": ""}]
    lines = plain(letters("a"), letters("b"), drift=drift, common={"sessionId": "trip", "step": 3, "seq": 7})
    assert "common origin: trip (step 3, save 7)" in lines
    assert lines[-1] == "# steps: 3 -> (none)"


def test_wide_terminals_show_sides_beside_each_other_and_narrow_ones_stack() -> None:
    a, b = [step(tool("left", {"x": 1}))], [step(tool("right", {"x": 1}))]
    wide, narrow = screen(120), screen(80)
    for surface in (wide, narrow):
        show_diff(surface, "A", "B", diff(a, b))
    assert any("left" in line and "right" in line and "│" in line for line in shown(wide).split("\n"))
    assert '-   left {"x": 1}\n' in shown(narrow)
    assert '+   right {"x": 1}\n' in shown(narrow)


def test_long_values_are_shortened_on_a_terminal_around_their_difference_unless_full() -> None:
    a, b = [step(tool("f", {"t": "x" * 900 + "1"}))], [step(tool("f", {"t": "x" * 900 + "2"}))]
    short, full, piped = screen(80), screen(80), pipe()
    for surface in (short, full, piped):
        show_diff(surface, "A", "B", diff(a, b), full=surface is full)
    line = next(line for line in shown(short).split("\n") if line.startswith("!"))
    assert '1" → …' in line
    assert '2"' in line
    assert len(line) < 200
    assert "x" * 900 + '1"' in shown(full)
    assert "x" * 900 + '1" -> ' in shown(piped)


def test_hostile_text_is_harmless() -> None:
    a = [step(tool(HOSTILE, {HOSTILE: HOSTILE}, HOSTILE), text=HOSTILE)]
    b = [step(tool(HOSTILE, {HOSTILE: 1}, {"error": HOSTILE, "kind": "rejected"}))]
    drift = [{"field": HOSTILE, "committed": HOSTILE, "current": HOSTILE}]
    for surface in (pipe(), screen(2000), screen(80)):
        show_diff(surface, HOSTILE, HOSTILE, diff(a, b, drift=drift, common={"sessionId": HOSTILE}))
        assert_harmless(shown(surface))


def test_two_thousand_steps_compare_in_a_moment() -> None:
    a = [step(tool("poll", {"n": n % 7}, {"v": n}), tool("check")) for n in range(2000)]
    b = copy.deepcopy(a)
    del b[3]
    b[1000]["tools"][0]["result"] = "other"
    start = time.perf_counter()
    lines = plain(a, b)
    assert time.perf_counter() - start < 5
    assert sum(line[0] in "~-+" for line in lines[2:] if line[1:6] == " step") == 2


@given(VALUES, VALUES)
def test_changes_are_empty_only_for_equal_values(old: Any, new: Any) -> None:
    assert bool(list(changes(old, new))) == (canonical(old) != canonical(new))


@given(VALUES)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert not list(changes(value, json.loads(json.dumps(value))))


def test_paths_lead_to_the_field() -> None:
    old = {"a": [{"b.c": 1}], "list": [1, 2, 3], "gone": 1}
    new = {"a": [{"b.c": 2}], "list": [0, 1, 2, 3]}
    assert list(changes(old, new)) == [
        Change('a[0]["b.c"]', 1, 2),
        Change("list[0]", MISSING, 0),
        Change("gone", 1, MISSING),
    ]


def test_texts_that_hold_json_are_compared_by_field() -> None:
    assert list(changes('{"a": 1}', '{"a": 2}')) == [Change("a", 1, 2)]
    assert list(changes('{"a": 1}', '{"a":1}')) == [Change("", '{"a": 1}', '{"a":1}')]


def test_deep_values_are_compared_without_end() -> None:
    old = json.loads("[" * 300 + "1" + "]" * 300)
    new = json.loads("[" * 300 + "2" + "]" * 300)
    assert len(list(changes(old, new))) == 1
