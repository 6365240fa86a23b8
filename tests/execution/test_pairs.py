"""Whether calls and results pair up (R3.5)."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho_cli import ConfigurationError
from lousho_cli.execution.messages import MessageData
from lousho_cli.execution.pairs import broken_pair, check_pairs


def said(text: str = "x") -> MessageData:
    return {"role": "user", "content": text}


def asked(*ids: str) -> MessageData:
    calls = [{"id": one, "type": "function", "function": {"name": "a", "arguments": "{}"}} for one in ids]
    return cast(MessageData, {"role": "assistant", "content": "", "toolCalls": calls})


def answered(call_id: str) -> MessageData:
    return {"role": "tool", "content": "1", "toolCallId": call_id, "toolName": "a"}


@st.composite
def whole(draw: st.DrawFn) -> list[MessageData]:
    messages: list[MessageData] = []
    for number in range(draw(st.integers(0, 5))):
        ids = [f"{number}.{n}" for n in range(draw(st.integers(0, 3)))]
        messages += [said()] * draw(st.integers(0, 2)) + [asked(*ids)] + [answered(one) for one in ids]
    return messages


@given(whole(), st.integers(0, 30))
def test_every_beginning_of_a_whole_transcript_is_whole(messages: list[MessageData], end: int) -> None:
    assert broken_pair(messages[:end]) is None


@given(whole(), st.data())
def test_a_missing_result_with_anything_behind_it_is_found(
    messages: list[MessageData], data: st.DataObject
) -> None:
    places = [n for n, one in enumerate(messages) if one["role"] == "tool"]
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    broken = [*messages[:place], *messages[place + 1 :], said()]
    assert broken_pair(broken) is not None


@given(whole(), st.integers(0, 30))
def test_a_stray_result_is_found_where_it_stands(messages: list[MessageData], place: int) -> None:
    place = min(place, len(messages))
    found = broken_pair([*messages[:place], answered("stray"), *messages[place:]])
    assert found is not None
    assert f"message {place + 1}:" in found


@pytest.mark.parametrize(
    "broken",
    [
        [answered("a")], [asked("a"), said()], [asked("a", "b"), answered("b")], [asked("a", "a")],
        [asked("a"), answered("a"), answered("a")], [asked("a"), asked("b")], [asked(), answered("a")],
    ],
)  # fmt: skip
def test_broken_transcripts_are_refused_with_the_place(broken: list[Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"the input breaks .*message \d"):
        check_pairs(broken, "the input")
