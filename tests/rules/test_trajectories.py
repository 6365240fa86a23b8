"""Comparing what two runs did (R3.11)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lousho_cli import Checkpoint, compare_trajectories


def turn(*calls: tuple[str, Any], text: str = "", prefix: str = "c") -> list[dict[str, Any]]:
    """A model turn and its results: each call is (name, arguments) with the result "ok"."""
    asked = [
        {
            "id": f"{prefix}{n}",
            "type": "function",
            "function": {"name": name, "arguments": args if isinstance(args, str) else json.dumps(args)},
        }
        for n, (name, args) in enumerate(calls)
    ]
    answers = [
        {"role": "tool", "content": '"ok"', "toolCallId": one["id"], "toolName": one["function"]["name"]}  # type: ignore[index]
        for one in asked
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if asked:
        message["toolCalls"] = asked
    return [message, *answers]


def transcript(*turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "go"}, *(message for one in turns for message in one)]


def drift_of(a: Any, b: Any, **options: Any) -> list[dict[str, str]]:
    return [one.model_dump() for one in compare_trajectories(a, b, **options).drift]


BASE = transcript(turn(("weather", {"day": 1, "at": "noon"})), turn(("plan", {})), turn(text="done"))


def test_a_run_equals_itself() -> None:
    found = compare_trajectories(BASE, BASE)
    assert (found.diverged_at, found.drift, len(found.a)) == (None, [], 3)
    step = found.a[0].model_dump(mode="json", by_alias=True)
    assert step == {
        "text": "",
        "tools": [{"name": "weather", "args": {"day": 1, "at": "noon"}, "result": "ok"}],
    }


def test_ids_key_order_and_spacing_do_not_count() -> None:
    other = transcript(
        turn(("weather", '{ "at":"noon",\n"day" : 1 }'), prefix="x"), turn(("plan", {})), turn(text="done")
    )
    found = compare_trajectories(BASE, other)
    assert (found.diverged_at, found.drift) == (None, [])


@pytest.mark.parametrize(
    ("other", "diverged_at"),
    [
        ([BASE[0], *turn(("weather", {"day": 2, "at": "noon"})), *BASE[3:]], 1),
        ([BASE[0], *turn(("weather", {"day": True, "at": "noon"})), *BASE[3:]], 1),
        ([*BASE[:3], *turn(("picnic", {})), *BASE[5:]], 2),
        ([*BASE[:5], *turn(text="over")], 3),
        (BASE[:5], 3),
        ([*BASE, {"role": "user", "content": "more"}, *turn(text="more")], 4),
        ([*BASE[:2], {**BASE[2], "content": '"rain"'}, *BASE[3:]], 1),
        ([], 1),
    ],
)
def test_the_first_step_that_differs_is_named(other: list[dict[str, Any]], diverged_at: int) -> None:
    assert compare_trajectories(BASE, other).diverged_at == diverged_at
    assert compare_trajectories(other, BASE).diverged_at == diverged_at


def test_two_empty_transcripts_are_equal() -> None:
    found = compare_trajectories([], [])
    assert (found.a, found.b, found.diverged_at, found.drift) == ([], [], None, [])


def test_drift_names_tools_arguments_and_steps() -> None:
    other = transcript(turn(("weather", {"day": 2, "at": "noon"})), turn(("picnic", {})))
    assert drift_of(BASE, other) == [
        {"field": "tools", "committed": "weather > plan", "current": "weather > picnic"},
        {
            "field": "args",
            "committed": 'weather {"at":"noon","day":1}',
            "current": 'weather {"at":"noon","day":2}',
        },
        {"field": "steps", "committed": "3", "current": "2"},
    ]


def test_checkpoints_compare_their_end_and_usage_when_asked() -> None:
    def checkpoint(reason: str, tokens: int) -> dict[str, Any]:
        return {
            "agentId": "bot", "sessionId": "s", "stepIndex": 3, "messages": BASE, "status": "finished",
            "finishReason": reason, "usage": {"inputTokens": tokens, "outputTokens": 0},
        }  # fmt: skip

    a, b = checkpoint("stop", 10), checkpoint("length", 12)
    ends = {"field": "finishReason", "committed": "stop", "current": "length"}
    assert drift_of(a, b) == [ends]
    assert drift_of(Checkpoint.of(a), b, usage=True) == [
        ends,
        {"field": "usage", "committed": "10", "current": "12"},
    ]
    assert drift_of(a, a, usage=True) == []


def test_arguments_that_are_no_json_are_compared_as_text() -> None:
    one, other = transcript(turn(("a", "{bad"))), transcript(turn(("a", "{worse")))
    found = compare_trajectories(one, other)
    assert found.diverged_at == 1
    assert found.a[0].tools[0].args == "{bad"
    assert compare_trajectories(one, one).diverged_at is None


def test_a_pending_call_has_no_result() -> None:
    found = compare_trajectories(BASE, BASE[:2])
    assert found.b[0].tools[0].result is None
    assert found.diverged_at == 1


def test_an_id_used_in_two_turns_is_two_calls() -> None:
    repeated = transcript(turn(("a", {"n": 1})), turn(("a", {"n": 2})))
    repeated[4] = {**repeated[4], "content": '"second"'}
    steps = compare_trajectories(repeated, repeated).a
    assert [step.tools[0].result for step in steps] == ["ok", "second"]
