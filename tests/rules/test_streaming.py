"""A turn that is told while the model writes it, and what becomes of one that is cut (R3.18)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from rules_kit import Data, Killed, World, call, said, turn

from lousho_cli import Cancel, Event, Hooks, MemoryStore, ProviderError, create_agent
from lousho_cli.execution.protocols import ModelRequest, TextDelta
from lousho_cli.testing import ScriptedModel


@pytest.fixture(params=("memory", "file"))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param, tmp_path)


AT_ONCE: Data = {"base_seconds": 0}
DELTAS = ("text.delta", "reasoning.delta", "call.delta")


class Listener:
    """What was told, and what is left of the deltas once the void ones are taken away."""

    def __init__(self) -> None:
        self.types: list[str] = []
        self.told: dict[str, str] = {}
        self._mark: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        self.types.append(event.type)
        if event.type == "step.start":
            self._mark = dict(self.told)
        if event.data.get("discard"):
            self.told = dict(self._mark)
        if event.type in DELTAS:
            piece = str(event.data.get("text", event.data.get("arguments")))
            self.told[event.type] = self.told.get(event.type, "") + piece


def test_a_turn_is_told_in_pieces_and_not_again(world: World) -> None:
    listener = Listener()
    said_so = {"text": "one two three", "reasoning": "hm, well", "chunks": 4}
    done = world.execute([{**turn(call("a", n=5)), **said_so}, "done"], on_event=listener)
    assert listener.told == {
        "text.delta": "one two threedone", "reasoning.delta": "hm, well", "call.delta": '{"n": 5}',
    }  # fmt: skip
    start = listener.types.index("step.start") + 1
    saved = listener.types.index("checkpoint.saved", start)
    assert set(listener.types[start:saved]) == set(DELTAS)
    assert listener.types[start:saved].count("text.delta") == 4
    assert done.messages[2].content == "one two three"


def test_nobody_listens_and_nothing_is_streamed(world: World) -> None:
    def refuse(request: ModelRequest) -> AsyncIterator[Any]:
        raise AssertionError("streamed")

    model = ScriptedModel([{"text": "done", "chunks": 2}])
    model.stream = refuse  # type: ignore[method-assign]
    assert world.execute(provider=model).text == "done"


def test_with_a_hook_that_may_change_the_turn_only_what_it_left_is_told(world: World) -> None:
    listener = Listener()
    hooks = Hooks(after_model=lambda response: response.model_copy(update={"content": "***"}))
    world.execute([{"text": "secret", "chunks": 3}], on_event=listener, hooks=hooks)
    assert listener.told == {"text.delta": "***"}


CUTS = [
    pytest.param({"cut": 2}, id="ends early"),
    pytest.param({"error": {"status": 500}}, id="fails"),
    pytest.param({"error": ConnectionResetError("gone")}, id="connection drops"),
    pytest.param({"delay": 60}, id="times out"),
]


@pytest.mark.parametrize("how", CUTS)
def test_a_cut_stream_leaves_no_turn_and_runs_nothing_and_is_asked_again(world: World, how: Data) -> None:
    world.tools = [world.ledger.tool("a")]
    listener = Listener()
    whole = {**turn(call("a", n=5)), "text": "one two three", "chunks": 3}
    settings = {"timeout": 0.05} if "delay" in how else None
    done = world.execute(
        [{**whole, **how}, whole, "done"], on_event=listener, retries=AT_ONCE, model_settings=settings
    )
    assert (done.text, done.steps, world.ledger.runs("a")) == ("done", 2, 1)
    assert listener.told["text.delta"] == "one two threedone"
    assert listener.types.count("model.retry") == 1
    assert [message.role for message in done.messages] == ["system", "user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("cut", range(6))
def test_a_process_that_dies_while_a_turn_streams_leaves_the_message_only(world: World, cut: int) -> None:
    deltas = 0

    def die(event: Event) -> None:
        nonlocal deltas
        deltas += event.type in DELTAS
        if deltas > cut:
            raise Killed

    world.tools = [world.ledger.tool("a")]
    whole = {**turn(call("a", n=5)), "text": "one two three", "chunks": 3}
    with pytest.raises(Killed):
        world.execute([whole], on_event=die)
    assert (world.load().status, len(world.load().messages), world.ledger.lines) == ("in-progress", 2, [])
    done = world.execute([whole, "done"])
    assert (done.text, said(done.messages), world.ledger.runs("a")) == ("done", ["go"], 1)


def test_a_stream_that_is_always_cut_ends_the_run_and_says_so(world: World) -> None:
    listener = Listener()
    with pytest.raises(ProviderError, match="cut off"):
        world.execute([{"text": "one two", "chunks": 2, "cut": 1}] * 4, on_event=listener, retries=AT_ONCE)
    assert (listener.types[-1], listener.told) == ("model.failed", {})
    assert world.resume(["done"]).text == "done"


def test_an_abort_while_a_turn_streams_leaves_no_turn(world: World) -> None:
    cancel = Cancel()

    def stop(event: Event) -> None:
        if event.type == "text.delta":
            cancel.cancel()

    slow = {"text": "one two", "chunks": 2, "delay": 60}
    aborted = world.execute([slow], on_event=stop, cancel=cancel)
    assert (aborted.finish_reason, len(aborted.messages)) == ("aborted", 2)
    assert world.resume(["done"]).text == "done"


class Bare:
    """A stream that is an iterator and nothing else, and says less than it returns."""

    model = "bare"

    async def generate(self, request: ModelRequest) -> Data:
        raise AssertionError("not streamed")

    def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        return _Pieces()


class _Pieces:
    def __init__(self) -> None:
        self._left: list[Any] = [TextDelta("Hello"), {"content": "Hello there"}]

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return self._left.pop(0)


def test_what_a_stream_left_out_is_told_when_the_turn_is_whole(world: World) -> None:
    texts: list[str] = []
    world.execute(
        provider=Bare(),
        on_event=lambda event: texts.append(event.data["text"]) if event.type == "text.delta" else None,
    )
    assert texts == ["Hello", " there"]


def test_an_observer_that_raises_at_a_piece_ends_the_run_as_it_does_elsewhere(world: World) -> None:
    class Refuses(Exception):
        pass

    def refuse(event: Event) -> None:
        if event.type == "text.delta":
            raise Refuses

    with pytest.raises(Refuses):
        world.execute([{"text": "one two", "chunks": 2}], on_event=refuse)
    assert world.resume(["done"]).text == "done"


def test_the_stream_of_an_agent_passes_the_pieces_on() -> None:
    agent = create_agent(
        provider=ScriptedModel([{"text": "one two", "chunks": 2, "fails": [{"cut": 1}]}]),
        store=MemoryStore(),
        retries=AT_ONCE,
    )

    async def watch() -> list[Event]:
        return [event async for event in agent.stream("go", session_id="s1")]

    events = asyncio.run(watch())
    assert "".join(event.data["text"] for event in events if event.type == "text.delta") == "one two"
    assert [event.type for event in events].count("model.retry") == 1
