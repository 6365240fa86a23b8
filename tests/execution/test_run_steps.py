from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho_cli import Checkpoint, compare_trajectories
from lousho_cli.execution.messages import MessageData
from lousho_cli.execution.steps import Trajectory, diverged_at, drift, ending, parsed, steps_of
from lousho_cli.execution.unset import UNSET


def turn(text: str, *calls: tuple[str, str, str]) -> MessageData:
    """A model turn; each call is (id, name, arguments)."""
    made: MessageData = {"role": "assistant", "content": text}
    if calls:
        made["toolCalls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in calls
        ]
    return made


def result(id: str, content: str) -> MessageData:
    return {"role": "tool", "content": content, "toolCallId": id, "toolName": "t"}


def test_a_step_is_one_model_turn_with_the_results_that_follow_it() -> None:
    asked: MessageData = {"role": "user", "content": "go"}
    messages = [
        asked, turn("look", ("c", "see", '{"a": 1}'), ("d", "hear", "not json")), result("c", '"x"'),
        asked, turn("again", ("c", "see", "{}")), turn("done"),
    ]  # fmt: skip
    first, second, third = steps_of(messages)
    assert first.text == "look"
    assert [(call.name, call.args, call.result) for call in first.tools] == [
        ("see", {"a": 1}, "x"), ("hear", "not json", UNSET),
    ]  # fmt: skip
    assert second.tools[0].result is UNSET
    assert third.tools == ()
    assert list(steps_of([])) == []


def test_a_call_without_a_result_differs_from_one_that_returned_null() -> None:
    asked = turn("", ("c", "see", "{}"))
    with_null, without = list(steps_of([asked, result("c", "null")])), list(steps_of([asked]))
    assert diverged_at(with_null, without) == 1
    assert "result" in with_null[0].to_json()["tools"][0]
    assert "result" not in without[0].to_json()["tools"][0]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', True),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": 12345678901234567890}', '{"a": 12345678901234567891}', False),
        ("nonsense", "nonsense", True),
    ],
)
def test_arguments_are_compared_by_value_and_ids_do_not_count(one: str, other: str, same: bool) -> None:
    found = compare_trajectories([turn("", ("x", "t", one))], [turn("", ("y", "t", other))])
    assert found.diverged_at == (None if same else 1)
    assert bool(found.drift) is not same


def test_drift_names_tools_arguments_steps_end_and_usage() -> None:
    a = Checkpoint.model_validate(
        {
            "messages": [turn("", ("1", "lookup_order", '{"orderId": "42"}'), ("2", "weather", "{}"))],
            "usage": {"totalTokens": 5},
            "status": "finished",
            "finishReason": "stop",
        }
    )
    b: dict[str, Any] = {
        "messages": [turn("", ("1", "lookup_order", '{"orderId":"43"}'), ("2", "pay", "{}")), turn("end")],
        "usage": {"totalTokens": 7},
        "status": "finished",
        "finishReason": "max-steps",
    }
    expected = [
        ("tools", "lookup_order > weather", "lookup_order > pay"),
        ("args", 'lookup_order {"orderId":"42"}', 'lookup_order {"orderId":"43"}'),
        ("steps", "1", "2"),
        ("finishReason", "stop", "max-steps"),
    ]
    found = compare_trajectories(a, b)
    assert [(each.field, each.committed, each.current) for each in found.drift] == expected
    usage = compare_trajectories(a, b, usage=True).drift[-1]
    assert (usage.field, usage.committed, usage.current) == ("usage", "5", "7")
    assert not [
        each for each in compare_trajectories(a.messages, b["messages"]).drift if each.field == "finishReason"
    ]


def test_an_unfinished_run_ends_in_its_status() -> None:
    assert ending("in-progress", "tool_calls") == ending("in-progress", None) == "in-progress"
    assert ending("in-progress", "aborted") == "aborted"
    assert ending("finished", "length") == "length"
    assert ending("finished", None) == "finished"
    assert ending("awaiting-approval", None) == "awaiting-approval"


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", '{"a": -1e999}', "[" * 300 + "]" * 300, "{", "", "[" * 99999]
)
def test_what_is_no_json_or_too_deep_stays_text(text: str) -> None:
    assert parsed(text) == text


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_every_json_value_is_parsed_as_it_is(value: Any) -> None:
    assert parsed(json.dumps(value)) == value


def test_half_a_surrogate_pair_can_be_compared() -> None:
    one, other = ([turn("", ("c", "t", f'{{"a": "\\ud800", "n": {n}}}'))] for n in (1, 2))
    assert compare_trajectories(one, one).diverged_at is None
    assert compare_trajectories(one, other).drift[0].committed == 't {"a":"\\ud800","n":1}'


steps = st.lists(
    st.builds(
        lambda text, calls: [
            turn(text, *((f"c{n}", name, arguments) for n, (name, arguments, _) in enumerate(calls))),
            *(result(f"c{n}", content) for n, (_, _, content) in enumerate(calls)),
        ],
        st.sampled_from("ab"),
        st.lists(
            st.tuples(st.sampled_from("tu"), st.sampled_from(["{}", "[1]"]), st.sampled_from(["1", '"x"'])),
            max_size=2,
        ),
    ),
    max_size=5,
)


@given(steps, steps)
def test_runs_part_at_the_first_step_that_differs(
    a: list[list[MessageData]], b: list[list[MessageData]]
) -> None:
    one = list(steps_of(message for step in a for message in step))
    other = list(steps_of(message for step in b for message in step))
    found = diverged_at(one, other)
    assert found == diverged_at(other, one)
    shared = len(one) if found is None else found - 1
    assert one[:shared] == other[:shared]
    if found is None:
        assert one == other
        assert drift(Trajectory(one), Trajectory(other)) == []
    else:
        assert one[shared : shared + 1] != other[shared : shared + 1]
