"""What a run tells while it runs: which events, in which order, what they hold, and who may listen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import rules_kit
from rules_kit import (
    Data,
    World,
    asks,
    call,
    check_transcript,
    dump,
    engine,
    kinds,
    results,
    said,
    turn,
)

from lousho_cli import Agent, Cancel, Event, SDKError
from lousho_cli.errors import AgentChangedError, NothingToDoError, ProviderError
from lousho_cli.testing import ScriptedModel

world = rules_kit.world

KEYS: dict[str, set[str]] = {
    "run.start": {"agent", "model", "resumed"},
    "step.start": {"step", "model"},
    "text.delta": {"step", "text"},
    "reasoning.delta": {"step", "text"},
    "tool.start": {"step", "toolName", "toolCallId", "args"},
    "tool.done": {"step", "toolName", "toolCallId", "result", "seconds"},
    "tool.error": {"step", "toolName", "toolCallId", "result", "kind", "error", "seconds"},
    "approval.requested": {"step", "approval"},
    "agent.drift": {"changes"},
    "checkpoint.saved": {"seq", "status", "step"},
    "step.done": {"step", "usage"},
    "run.done": {"finishReason", "steps", "usage"},
}
"""What each event holds at least."""

USAGE: Data = {"usage": {"input_tokens": 10, "output_tokens": 2}}
TURNS: list[Any] = [
    {"text": "looking", "reasoning": "hm", **turn(call("a"), call("gone"), call("b")), **USAGE},
    {"text": "done", **USAGE},
]


class Watcher:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def types(self) -> list[str]:
        return [event.type for event in self.events]

    def of(self, *types: str) -> list[Event]:
        return [event for event in self.events if event.type in types]

    def told(self, type: str, key: str) -> list[Any]:
        return [event.data[key] for event in self.of(type)]


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


def with_tools(world: World, *gated: str) -> World:
    """The free tools `a` and `b`, and gated ones."""
    world.tools = [
        world.ledger.tool("a"), world.ledger.tool("b"),
        *(world.ledger.tool(name, needs_approval=True) for name in gated),
    ]  # fmt: skip
    return world


# Which, and in which order


def test_a_run_tells_what_happens_in_order(world: World, watcher: Watcher) -> None:
    done = with_tools(world).execute(TURNS, on_event=watcher, tool_concurrency=1)
    assert watcher.types() == [
        "run.start", "checkpoint.saved",
        "step.start", "checkpoint.saved", "reasoning.delta", "text.delta",
        "tool.start", "checkpoint.saved", "tool.done",
        "tool.start", "checkpoint.saved", "tool.error", "checkpoint.saved", "tool.done", "step.done",
        "step.start", "checkpoint.saved", "text.delta", "step.done",
        "run.done",
    ]  # fmt: skip
    assert [event.session_id for event in watcher.events] == ["s1"] * len(watcher.events)
    assert watcher.told("run.start", "resumed") == [False]
    assert "".join(watcher.told("text.delta", "text")) == f"looking{done.text}"


def test_calls_that_run_side_by_side_start_together_and_end_each(world: World, watcher: Watcher) -> None:
    with_tools(world).execute([asks("a", "b"), "done"], on_event=watcher)
    starts = [i for i, type in enumerate(watcher.types()) if type == "tool.start"]
    ends = [i for i, type in enumerate(watcher.types()) if type == "tool.done"]
    assert (len(starts), len(ends)) == (2, 2)
    assert max(starts) < min(ends)
    assert watcher.types().index("step.done") > max(ends)


def test_what_events_hold(world: World, watcher: Watcher) -> None:
    """Each type's keys, and JSON that survives a trip."""
    with_tools(world, "g")
    paused = world.execute([*TURNS[:1], asks("g")], on_event=watcher)
    world.tools = [*world.tools, world.ledger.tool("more")]
    world.decide(paused.approval_id, ["done"], options={"on_event": watcher})
    assert set(watcher.types()) == set(KEYS)
    for event in watcher.events:
        assert KEYS[event.type] <= event.data.keys(), event
        flat = json.loads(json.dumps(event.to_json(), allow_nan=False))
        assert flat == {"type": event.type, "sessionId": "s1", **event.data}


def test_results_are_told_as_the_model_reads_them(world: World, watcher: Watcher) -> None:
    done = with_tools(world).execute(TURNS, on_event=watcher)
    told = {event.data["toolCallId"]: event.data["result"] for event in watcher.of("tool.done", "tool.error")}
    assert told == {m["toolCallId"]: m["content"] for m in dump(done.messages) if m["role"] == "tool"}
    (error,) = watcher.of("tool.error")
    assert (error.data["toolName"], error.data["kind"]) == ("gone", "unknown-tool")
    assert error.data["error"] == results(done.messages)["call_gone"]["error"]
    assert all(seconds >= 0 for seconds in watcher.told("tool.done", "seconds"))
    assert [json.loads(args) for args in watcher.told("tool.start", "args")] == [{"n": 0}, {"n": 0}]


def test_the_end_is_told_as_the_result_says_it(world: World, watcher: Watcher) -> None:
    done = with_tools(world).execute(TURNS, on_event=watcher)
    (last,) = watcher.of("run.done")
    usage = done.usage.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert last.data == {"finishReason": "stop", "steps": 2, "usage": usage}
    assert [each["inputTokens"] for each in watcher.told("step.done", "usage")] == [10, 10]
    assert usage["inputTokens"] == 20


def test_a_run_that_fails_tells_no_end(world: World, watcher: Watcher) -> None:
    with pytest.raises(ProviderError):
        world.execute([{"error": "the model died"}], on_event=watcher)
    assert watcher.types() == ["run.start", "checkpoint.saved", "step.start", "model.failed"]
    again = Watcher()
    world.resume(["done"], on_event=again)
    assert again.told("run.start", "resumed") == [True]
    assert again.types()[-1] == "run.done"


def test_an_aborted_run_tells_of_the_calls_it_cancelled(world: World, watcher: Watcher) -> None:
    cancel = Cancel()
    world.tools = [world.ledger.tool("a", lambda: cancel.cancel("enough")), world.ledger.tool("b")]
    done = world.execute([asks("a", "b")], on_event=watcher, cancel=cancel, tool_concurrency=1)
    assert done.finish_reason == "aborted"
    ended = [(e.type, e.data["toolName"], e.data.get("kind")) for e in watcher.of("tool.done", "tool.error")]
    assert ended[-1] == ("tool.error", "b", "cancelled")
    assert watcher.told("run.done", "finishReason") == ["aborted"]


def test_a_run_out_of_steps_says_so(world: World, watcher: Watcher) -> None:
    with_tools(world).execute([asks("a")], on_event=watcher, max_steps=1)
    assert watcher.told("run.done", "finishReason") == ["max-steps"]
    assert watcher.types()[-3:] == ["step.done", "checkpoint.saved", "run.done"]


def test_a_run_without_a_store_tells_the_same(world: World, watcher: Watcher) -> None:
    with_tools(world).execute(TURNS, on_event=watcher, tool_concurrency=1)
    stored = watcher.types()
    bare = Watcher()
    world.execute(TURNS, on_event=bare, session=None, checkpoint_store=None, tool_concurrency=1)
    assert bare.types() == stored
    assert {event.session_id for event in bare.events} == {None}


# Approvals


def test_an_approval_is_told_once_it_can_be_decided(world: World, watcher: Watcher) -> None:
    waiting: list[Any] = []

    async def look(event: Event) -> None:
        watcher(event)
        if event.type == "approval.requested":
            waiting.extend(await world.store.approvals.list())

    paused = with_tools(world, "g").execute([turn(call("g", n=3))], on_event=look)
    (asked,) = watcher.told("approval.requested", "approval")
    assert [each.pending.id for each in waiting] == [asked["id"]] == [paused.approval_id]
    assert (asked["toolName"], asked["toolCallId"], asked["args"]) == ("g", "call_g", {"n": 3})
    assert watcher.types()[-3:] == ["checkpoint.saved", "approval.requested", "run.done"]
    assert watcher.told("run.done", "approvalId") == [asked["id"]]
    assert watcher.told("run.done", "finishReason") == ["awaiting-approval"]


def test_an_approved_call_is_told_when_it_runs(world: World, watcher: Watcher) -> None:
    paused = with_tools(world, "g").execute([turn(call("g", n=3), call("b"))])
    world.decide(paused.approval_id, ["done"], arguments={"n": 4}, options={"on_event": watcher})
    assert watcher.told("tool.start", "toolName") == ["g", "b"]
    assert json.loads(watcher.told("tool.start", "args")[0]) == {"n": 4}
    assert watcher.told("run.start", "resumed") == [True]
    assert watcher.told("step.done", "step") == [1, 2]


DECISIONS: dict[str, Data] = {
    "rejected": {"approved": False, "note": "no"},
    "result supplied": {"approved": True, "result": "by hand"},
}


@pytest.mark.parametrize("decision", DECISIONS.values(), ids=DECISIONS.keys())
def test_the_result_that_a_decision_is_told_too(world: World, watcher: Watcher, decision: Data) -> None:
    """Every call that was asked for ends in an event, also where no tool runs."""
    paused = with_tools(world, "g").execute([turn(call("g"), call("b"))], on_event=watcher)
    done = world.decide(paused.approval_id, ["done"], options={"on_event": watcher}, **decision)
    ended = {e.data["toolCallId"]: e.data["result"] for e in watcher.of("tool.done", "tool.error")}
    assert ended == {m["toolCallId"]: m["content"] for m in dump(done.messages) if m["role"] == "tool"}


@pytest.mark.parametrize("decision", DECISIONS.values(), ids=DECISIONS.keys())
def test_a_step_whose_last_call_a_decision_settles_is_done(
    world: World, watcher: Watcher, decision: Data
) -> None:
    paused = with_tools(world, "g").execute([asks("a", "g")], on_event=watcher)
    world.decide(paused.approval_id, ["done"], options={"on_event": watcher}, **decision)
    assert watcher.told("step.start", "step") == [1, 2]
    assert watcher.told("step.done", "step") == [1, 2]


# Drift


def drifted(world: World, policy: str, watcher: Watcher) -> None:
    world.crash([asks("a"), {"error": "the model died"}])
    world.tools = [*world.tools, world.ledger.tool("more")]
    world.resume(["done"], on_event=watcher, on_agent_drift=policy)


def test_drift_is_told_before_anything_runs(world: World, watcher: Watcher) -> None:
    drifted(with_tools(world), "warn", watcher)
    assert watcher.types()[:2] == ["run.start", "agent.drift"]
    (changes,) = watcher.told("agent.drift", "changes")
    assert any("more" in change for change in changes)


def test_drift_that_is_ignored_or_refused_is_no_event(world: World, watcher: Watcher) -> None:
    with pytest.raises(AgentChangedError):
        drifted(with_tools(world), "error", watcher)
    assert watcher.events == []
    world.resume(["done"], on_event=watcher, on_agent_drift="ignore")
    assert watcher.of("agent.drift") == []
    assert watcher.types()[-1] == "run.done"


# Saves


def seqs(watcher: Watcher) -> list[int]:
    return watcher.told("checkpoint.saved", "seq")


def busy_session(world: World, watcher: Watcher) -> None:
    """Results one after another, an approval, input that waits, a second run."""
    with_tools(world, "g")
    paused = world.execute([asks("a", "b", "g")], on_event=watcher, tool_concurrency=1)
    world.record_only(paused.approval_id)
    world.execute(["done"], "and then", on_event=watcher, max_steps=9)
    world.execute([turn(call("a", "a2")), "done"], "more", on_event=watcher)


def test_each_save_that_is_told_is_in_the_history_or_was_absorbed(world: World, watcher: Watcher) -> None:
    busy_session(world, watcher)
    kept = {entry.seq: entry for entry in world.history()}
    told = {event.data["seq"]: event.data for event in watcher.of("checkpoint.saved")}
    assert seqs(watcher) == sorted(told)
    for seq, data in told.items():
        if seq in kept:
            assert (kept[seq].status, kept[seq].step) == (data["status"], data["step"])
            continue
        successor = min(each for each in kept if each > seq)
        with pytest.raises(SDKError, match=rf"\b{successor}\b") as refused:
            world.fork(at=seq)
        assert refused.value.code == "LOUSHO_CHECKPOINT_NOT_FOUND"
        assert kept[successor].step == data["step"]
    assert set(told) - set(kept)


def test_each_save_of_the_history_was_told(world: World, watcher: Watcher) -> None:
    """Who watches knows every save there is to fork from."""
    busy_session(world, watcher)
    assert {entry.seq for entry in world.history()} <= set(seqs(watcher))


def test_a_save_is_told_once_it_is_there(world: World) -> None:
    async def look(event: Event) -> None:
        if event.type == "checkpoint.saved":
            stored = await world.store.checkpoints.load("s1")
            assert stored is not None
            seen.append((engine(stored)["seq"], stored.status, stored.step_index))
            told.append((event.data["seq"], event.data["status"], event.data["step"]))

    seen: list[Any] = []
    told: list[Any] = []
    with_tools(world).execute(TURNS, on_event=look, tool_concurrency=1)
    assert seen == told
    assert len(told) == 6


def test_a_resume_that_saves_nothing_on_entry_tells_no_save_twice(world: World) -> None:
    first, second = Watcher(), Watcher()
    with pytest.raises(ProviderError):
        with_tools(world).execute([asks("a"), {"error": "the model died"}], on_event=first)
    world.resume(["done"], on_event=second)
    assert not set(seqs(first)) & set(seqs(second))


# Sub-agents


@pytest.fixture
def house(world: World) -> World:
    """`bot` delegates to `cook`, who delegates to `maid`, who has the gated tool `buy`."""
    tools = [world.ledger.tool("buy", needs_approval=True)]

    def agent() -> Agent:
        maid = Agent("maid", "maid", tools)
        cook = Agent("cook", "cook", [world.ledger.tool("prep")], subagents=[maid])
        return Agent("bot", "bot", subagents=[cook])

    world.agent = agent  # type: ignore[method-assign]
    return world


HOUSE: dict[str, Sequence[Any]] = {
    "bot": [turn(call("delegate_cook", input="soup")), "served"],
    "cook": [turn(call("prep"), call("delegate_maid", input="leek")), "soup"],
    "maid": [asks("buy"), "bought"],
}


def house_script() -> list[Any]:
    def answer(request: Any) -> Any:
        spoken = sum(message.role == "assistant" for message in request.messages)
        return HOUSE[str(request.messages[0].content)][spoken]

    return [answer] * 20


def test_events_of_sub_agents_say_where_they_come_from(house: World, watcher: Watcher) -> None:
    paused = house.execute(house_script(), on_event=watcher)
    house.decide(paused.approval_id, house_script(), options={"on_event": watcher})
    paths = {"bot": (), "cook": ("cook",), "maid": ("cook", "maid")}
    for name, path in paths.items():
        own = [event for event in watcher.events if event.path == path]
        assert [e.data["agent"] for e in own if e.type == "run.start"] == [name, name]
        assert [e.data["resumed"] for e in own if e.type == "run.start"] == [False, True]
        assert [e.data["finishReason"] for e in own if e.type == "run.done"] == ["awaiting-approval", "stop"]
        flat = own[0].to_json()
        assert flat.get("path") == (list(path) or None)
        json.dumps(flat)
    assert {event.path for event in watcher.events} == set(paths.values())
    assert {event.session_id for event in watcher.events} == {"s1"}
    started = {(event.path, event.data["toolName"]) for event in watcher.of("tool.start")}
    assert started == {
        ((), "delegate_cook"), (("cook",), "prep"), (("cook",), "delegate_maid"), (("cook", "maid"), "buy"),
    }  # fmt: skip
    (asked,) = watcher.of("approval.requested")
    assert (asked.path, asked.data["approval"]["subagent"]) == ((), ["cook", "maid"])


def test_saves_of_sub_agents_are_saves_of_the_session(house: World, watcher: Watcher) -> None:
    paused = house.execute(house_script(), on_event=watcher)
    house.decide(paused.approval_id, house_script(), options={"on_event": watcher})
    assert seqs(watcher) == sorted(seqs(watcher))
    assert {e.path for e in watcher.of("checkpoint.saved")} == {(), ("cook",), ("cook", "maid")}
    kept = sorted(entry.seq for entry in house.history())
    assert max(seqs(watcher)) == kept[-1]
    assert all(any(each >= seq for each in kept) for seq in seqs(watcher))


# Who listens


def test_an_async_observer_is_awaited_before_the_run_goes_on(world: World) -> None:
    order: list[str] = []

    async def slow(event: Event) -> None:
        order.append(f"{event.type} begins")
        await asyncio.sleep(0.001)
        order.append(f"{event.type} ends")

    world.tools = [world.ledger.tool("a", lambda: order.append("a runs"))]
    world.execute([asks("a"), "done"], on_event=slow)
    at = order.index("a runs")
    assert order[at - 1] == "tool.start ends"
    told = [line for line in order if line != "a runs"]
    assert [line.split()[1] for line in told] == ["begins", "ends"] * (len(told) // 2)


def test_an_observer_may_be_a_function_that_returns_something_to_await(world: World) -> None:
    def keep(event: Event) -> asyncio.Future[None]:
        seen.append(event.type)
        return asyncio.ensure_future(asyncio.sleep(0))

    seen: list[str] = []
    world.execute(["done"], on_event=keep)
    assert seen[-1] == "run.done"


class Refuses(Exception):
    """The observer's own trouble."""


class RaisesAt:
    """An observer that raises at its n-th event."""

    def __init__(self, at: int, *, waits: bool = False) -> None:
        self.at = at
        self.waits = waits
        self.count = 0
        self.type = ""

    def __call__(self, event: Event) -> Any:
        self.count += 1
        if self.waits:
            return self._later(event, self.count)
        return self._note(event, self.count)

    async def _later(self, event: Event, number: int) -> None:
        await asyncio.sleep(0)
        self._note(event, number)

    def _note(self, event: Event, number: int) -> None:
        if number == self.at:
            self.type = event.type
            raise Refuses(event.type)


SCRIPT = [rules_kit.scripted_by_position(TURNS)]


@pytest.mark.parametrize("waits", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_an_observer_that_raises_ends_the_run_and_loses_nothing(
    kind: str, waits: bool, tmp_path: Path
) -> None:
    """Whichever event it is: what it raises comes out, nothing is lost, nothing is done twice."""
    watcher = Watcher()
    # One call after another: results that come in together would share a save, and its event.
    with_tools(World(kind, tmp_path / "whole")).execute(TURNS, on_event=watcher, tool_concurrency=1)
    for at in range(1, len(watcher.events) + 1):
        world = with_tools(World(kind, tmp_path / str(at)))
        model = ScriptedModel(SCRIPT, on_exhausted="repeat-last")
        observer = RaisesAt(at, waits=waits)
        with pytest.raises(Refuses):
            world.execute(provider=model, on_event=observer, tool_concurrency=1)
        check_transcript(world.load().messages, open_end=True)
        if world.load().status == "finished":
            with pytest.raises(NothingToDoError):
                world.resume(provider=model)
        else:
            world.resume(provider=model)
        done = world.load()
        assert (done.status, said(done.messages)) == ("finished", ["go"]), (at, observer.type)
        assert kinds(done.messages) == [None, "unknown-tool", None]
        assert world.ledger.counts() == {"a": 1, "b": 1}, (at, observer.type)
        assert len(model.calls) == 2, (at, observer.type)


@pytest.mark.parametrize("kind", rules_kit.KINDS)
def test_an_observer_that_raises_at_a_pause_leaves_an_approval_to_decide(kind: str, tmp_path: Path) -> None:
    watcher = Watcher()
    with_tools(World(kind, tmp_path / "whole"), "g").execute([asks("a", "g")], on_event=watcher)
    for at in range(1, len(watcher.events) + 1):
        world = with_tools(World(kind, tmp_path / str(at)), "g")
        script = [rules_kit.scripted_by_position([asks("a", "g"), "done"])] * 6
        with pytest.raises(Refuses):
            world.execute(script, on_event=RaisesAt(at))
        if world.load().status == "in-progress":
            world.resume(script)
        (waiting,) = asyncio.run(world.store.approvals.list())
        assert waiting.pending.id == world.load().approval_id
        done = world.decide(waiting.pending.id, script)
        assert (done.text, world.ledger.counts()) == ("done", {"a": 1, "g": 1}), at


def test_an_observer_that_raises_inside_a_sub_agent_ends_the_run_too(house: World) -> None:
    """It is no result of the call: the model is not told of it."""

    def observer(event: Event) -> None:
        if event.path == ("cook",) and event.type == "tool.done":
            raise Refuses(event.type)

    with pytest.raises(Refuses):
        house.execute(house_script(), on_event=observer)
    loaded = house.load()
    assert (loaded.status, kinds(loaded.messages)) == ("in-progress", [])
    paused = house.resume(house_script())
    done = house.decide(paused.approval_id, house_script())
    assert (done.text, house.ledger.counts()) == ("served", {"prep": 1, "buy": 1})


CHANGES: dict[str, Callable[[Data], Any]] = {
    "approval.requested": lambda data: data["approval"].update(args="hidden", toolName="hidden"),
    "run.done": lambda data: data["usage"].update(inputTokens=-1),
    "step.done": lambda data: data["usage"].update(inputTokens=-1),
}


@pytest.mark.parametrize("type", CHANGES)
def test_an_observer_that_changes_what_it_was_told_changes_nothing_else(world: World, type: str) -> None:
    """Hiding a value before it is logged must not hide it from the run."""

    def redact(event: Event) -> None:
        if event.type == type:
            CHANGES[type](event.to_json())

    turns = [{**asks("a"), **USAGE}, {**turn(call("g", n=3)), **USAGE}]
    paused = with_tools(world, "g").execute(turns, on_event=redact)
    assert paused.approval is not None
    assert (paused.approval.tool_name, paused.approval.args) == ("g", {"n": 3})
    assert engine(world.load())["approval"]["args"] == {"n": 3}
    assert paused.usage.input_tokens == world.load().usage.input_tokens == 20
    assert [usage.input_tokens for usage in paused.step_usage] == [10, 10]
    done = world.decide(paused.approval_id, ["done"])
    assert results(done.messages)["call_g"] == "g done"
    assert done.usage.input_tokens == 20
