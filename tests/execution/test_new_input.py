"""What of a run's input is new: the rules alone (R3.2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho_cli import ConfigurationError
from lousho_cli.execution.budget import UNLIMITED
from lousho_cli.execution.intake import normalise, queue_input, start_run
from lousho_cli.execution.messages import MessageData
from lousho_cli.execution.state import Record, RunStart, State, apply


def said(text: str) -> MessageData:
    return {"role": "user", "content": text}


def answered(text: str) -> MessageData:
    return {"role": "assistant", "content": text}


def call_of(call_id: str) -> MessageData:
    function: Any = {"name": "a", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": "",
        "toolCalls": [{"id": call_id, "type": "function", "function": function}],
    }


def opened(state: State, given: list[MessageData]) -> Record:
    return start_run(
        state, given, max_steps=3, budget=UNLIMITED, agent="bot", system="s", fingerprint={}, run_config={},
        business_state=None,
    )  # fmt: skip


texts = st.text(alphabet="abc", min_size=1, max_size=1)


@given(st.lists(texts, max_size=4), st.lists(texts, min_size=1, max_size=3))
def test_a_resent_finished_conversation_adds_only_the_new(stored: list[str], new: list[str]) -> None:
    state = State("s")
    for seq, text in enumerate(stored, 1):
        state = apply(state, Record("save", "finished", 1, seq=seq, add=[said(text), answered(text)]))
    record = opened(state, [*state.log, *map(said, new)])
    assert record.add == [said(text) for text in new]
    assert record.run == RunStart(len(state.log), len(new), 3)


def unfinished(earlier: int, queue: list[str]) -> State:
    """A session in its last of `earlier` + 1 runs, with an open call and queued input."""
    state = State("s")
    for number in range(earlier):
        messages = [said(f"run {number}"), answered("ok")]
        state = apply(state, Record("save", "finished", 1, seq=number + 1, add=messages))
    start = RunStart(len(state.log), 1, 3)
    state = apply(state, Record("input", "in-progress", 0, seq=50, add=[said("go")], run=start))
    state = apply(state, Record("turn", "in-progress", 1, seq=51, add=[call_of("c")]))
    for number, text in enumerate(queue):
        state = apply(state, Record("queue", "in-progress", 1, seq=52 + number, queue=[said(text)]))
    return state


@given(
    st.integers(0, 2),
    st.lists(st.sampled_from("pq"), max_size=2, unique=True),
    st.lists(st.sampled_from("xyz"), max_size=2, unique=True),
    st.sampled_from(["none", "opening", "conversation"]),
    st.booleans(),
)
def test_only_what_an_unfinished_run_has_not_heard_is_new(
    earlier: int, queue: list[str], new: list[str], resent: str, queue_too: bool
) -> None:
    state = unfinished(earlier, queue)
    known = {"none": [], "opening": [said("go")], "conversation": list(state.log)}[resent]
    if queue_too:
        known = [*known, *state.queue]
    record = queue_input(state, [*known, *map(said, new)])
    assert (record.queue if record else None) == ([said(text) for text in new] or None)


def test_taking_the_same_input_in_twice_changes_nothing() -> None:
    state = unfinished(1, [])
    record = queue_input(state, [said("x"), said("y")])
    assert record is not None
    record.seq = 60
    again = apply(state, record)
    assert queue_input(again, [said("x"), said("y")]) is None


@pytest.mark.parametrize("empty", [None, "", [], ()])
def test_an_empty_input_is_none(empty: Any) -> None:
    assert normalise(empty) == []


@pytest.mark.parametrize("wrong", [3, [3], [{"role": "user", "content": 1, "toolCalls": 1}], {"role": "x"}])
def test_what_is_no_message_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="not a message"):
        normalise(wrong)


def test_system_messages_are_no_input_of_a_stored_session() -> None:
    system: MessageData = {"role": "system", "content": "be rude"}
    assert queue_input(unfinished(0, []), [system]) is None
    state = apply(
        State("s"), Record("save", "finished", 1, seq=1, add=[said("a"), answered("b")], system="s")
    )
    record = opened(state, [system, said("c")])
    assert record.add == [said("c")]
    with pytest.raises(ConfigurationError, match="nothing to send"):
        opened(state, [system])
