"""The transcript as a persistent list: versions never change, whatever is made of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho_cli.execution.log import Log
from lousho_cli.execution.messages import CallData, FunctionData, MessageData


def message(number: int) -> MessageData:
    function: FunctionData = {"name": "a", "arguments": "{}"}
    call: CallData = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": "", "toolCalls": [call]}


steps = st.lists(
    st.tuples(st.integers(0, 50), st.one_of(st.integers(0, 12), st.lists(st.integers(0, 9), max_size=4))),
    max_size=30,
)


@given(steps)
def test_versions_behave_like_lists_of_their_own(ops: list[tuple[int, int | list[int]]]) -> None:
    versions: list[tuple[Log, list[int]]] = [(Log(), [])]
    for pick, op in ops:
        log, model = versions[pick % len(versions)]
        if isinstance(op, int):
            versions.append((log.cut(op), model[:op]))
        else:
            versions.append((log.extended([message(number) for number in op]), model + op))
    for log, model in versions:
        assert list(log) == [message(number) for number in model]
        assert len(log) == len(model)
        assert log == Log([message(number) for number in model])
        assert {n for n in range(10) if log.has_call(f"call_{n}")} == set(model)
        assert list(log.slice(1, 3)) == list(log)[1:3]
        if model:
            assert log[-1] == log[len(model) - 1] == message(model[-1])


@pytest.mark.parametrize("index", [3, -4, 99])
def test_an_index_outside_is_an_error_even_if_a_longer_version_has_it(index: int) -> None:
    log = Log([message(n) for n in range(3)])
    log.extended([message(n) for n in range(3, 9)])
    with pytest.raises(IndexError):
        log[index]
