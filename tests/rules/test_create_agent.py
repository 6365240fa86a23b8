"""`create_agent`: an agent with its model and its store, in async code and without a loop."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest
import rules_kit
from rules_kit import (
    Ledger,
    Store,
    asks,
    call,
    check_transcript,
    dump,
    kinds,
    open_store,
    results,
    said,
    turn,
)

from lousho_cli import (
    Agent,
    ApprovalDecision,
    ApprovalStore,
    Cancel,
    Checkpoint,
    ConfigurationError,
    Event,
    ForkPatch,
    Hooks,
    MemoryStore,
    SDKError,
    SessionAwaitingApprovalError,
    Tool,
    ToolContext,
    ToolUse,
    create_agent,
    tool,
)
from lousho_cli.agents.create import AgentApprovals, AgentSession, DurableAgent
from lousho_cli.agents.folder import load_agent
from lousho_cli.errors import ProviderError, SessionBusyError, StorageError
from lousho_cli.testing import ScriptedModel

Play = Callable[[Callable[[], Any]], Any]


@pytest.fixture(params=rules_kit.KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(request.param, tmp_path)


@pytest.fixture(params=["no loop", "inside a loop"])
def play(request: pytest.FixtureRequest) -> Play:
    """Calls a `_sync` function where no loop runs, or from a coroutine of a running one."""
    if request.param == "no loop":
        return lambda function: function()

    async def inside(function: Callable[[], Any]) -> Any:
        return function()

    return lambda function: asyncio.run(inside(function))


def bot(store: Store | None, script: Sequence[Any] = ("hello",), **options: Any) -> DurableAgent:
    return create_agent(
        name="bot", instructions="be brief", store=store, provider=ScriptedModel(script), **options
    )


def statuses(agent: DurableAgent, session: str = "s1") -> list[str]:
    return [entry.status for entry in agent.session(session).history_sync() or ()]


def test_a_conversation_is_kept_in_the_store(store: Store) -> None:
    async def talk() -> None:
        agent = bot(store, ["one", "two"])
        first = await agent.send("hi", session_id="s1")
        second = await agent.send("more", session_id="s1")
        assert (first.text, second.text, second.session_id, second.steps) == ("one", "two", "s1", 1)
        assert said(second.messages) == ["hi", "more"]

    asyncio.run(talk())
    loaded = asyncio.run(store.checkpoints.load("s1"))
    assert loaded is not None
    assert (loaded.agent_id, loaded.status) == ("bot", "finished")


def test_without_a_session_id_each_message_begins_a_session_of_its_own(store: Store) -> None:
    async def talk() -> list[str | None]:
        agent = bot(store, ["one", "two"])
        return [(await agent.send("hi")).session_id, (await agent.send("hi")).session_id]

    one, two = asyncio.run(talk())
    assert one is not None
    assert two is not None
    assert one != two
    for session in (one, two):
        found = asyncio.run(store.checkpoints.load(session))
        assert found is not None
        assert said(found.messages) == ["hi"]


def test_the_sync_twins_do_the_same_with_and_without_a_loop(store: Store, play: Play) -> None:
    ledger = Ledger()
    agent = bot(store, [asks("g"), "paid", "again", "other"], tools=[ledger.tool("g", needs_approval=True)])
    paused = play(lambda: agent.send_sync("go", session_id="s1"))
    assert paused.finish_reason == "awaiting-approval"
    (waiting,) = play(agent.approvals.list_sync)
    assert (waiting.pending.id, waiting.pending.tool_name) == (paused.approval_id, "g")
    done = play(lambda: agent.approvals.resolve_sync(paused.approval_id, True, note="fine", by="ann"))
    assert (done.text, ledger.counts()) == ("paid", {"g": 1})
    assert play(agent.approvals.list_sync) == []
    (settled,) = play(lambda: agent.approvals.list_sync(status="consumed"))
    assert (settled.decision.by, settled.decision.note) == ("ann", "fine")
    assert play(lambda: agent.resume_sync("s1")) is None
    patch = {"append_input": "x"}
    forked = play(lambda: agent.fork_sync("s1", from_step=2, new_session_id="f1", patch=patch))
    assert (forked.session_id, forked.step) == ("f1", 2)
    assert play(lambda: agent.resume_sync("f1")).text == "again"
    events = play(lambda: list(agent.stream_sync("more", session_id="f1")))
    assert (events[0].type, events[-1].type) == ("run.start", "run.done")
    history = play(agent.session("f1").history_sync)
    assert (history[0].status, said(history[0].checkpoint.messages)) == ("finished", ["go", "x", "more"])


def test_a_session_has_the_same_sync_twins(store: Store, play: Play) -> None:
    ledger = Ledger()
    model = ScriptedModel([asks("a"), {"error": "the model died"}, "one", "two", "three"])
    session = create_agent(name="bot", store=store, provider=model, tools=[ledger.tool("a")]).session("s1")
    with pytest.raises(ProviderError, match="the model died"):
        play(lambda: session.send_sync("go"))
    done = play(session.resume_sync)
    assert (done.text, ledger.counts()) == ("one", {"a": 1})
    assert play(session.resume_sync) is None
    forked = play(lambda: session.fork_sync(from_step=1, patch=ForkPatch(append_input="and then")))
    assert forked.session_id == "s1.fork-1"
    assert [event.type for event in play(lambda: list(session.stream_sync("more")))][-1] == "run.done"
    entries = play(lambda: session.history_sync(limit=1))
    assert [entry.status for entry in entries] == ["finished"]
    assert said(entries[0].checkpoint.messages) == ["go", "more"]


def test_the_sessions_async_methods_are_the_agents(store: Store) -> None:
    async def talk() -> None:
        agent = bot(store, [asks("gone"), {"error": "the model died"}, "one", "two"])
        session = agent.session("s1")
        assert session.id == "s1"
        with pytest.raises(ProviderError):
            await session.send("go")
        done = await session.resume()
        assert done is not None
        assert (done.text, kinds(done.messages)) == ("one", ["unknown-tool"])
        forked = await session.fork(from_step=1)
        assert forked.session_id == "s1.fork-1"
        types = [event.type async for event in session.stream("more")]
        assert types[-1] == "run.done"
        entries = await session.history()
        assert entries is not None
        assert entries[0].status == "finished"

    asyncio.run(talk())


@pytest.mark.parametrize("owner", [DurableAgent, AgentSession, AgentApprovals])
def test_each_async_method_has_a_sync_twin(owner: type) -> None:
    public = {name for name, _ in inspect.getmembers(owner, callable) if not name.startswith("_")}
    working = {
        name for name in public
        if inspect.iscoroutinefunction(getattr(owner, name)) or name == "stream"
    }  # fmt: skip
    assert working
    assert {f"{name}_sync" for name in working} <= public


def test_a_sync_call_inside_a_loop_leaves_that_loop_usable(store: Store) -> None:
    async def main() -> list[str]:
        agent = bot(store, ["one", "two", "three"])
        inside = agent.send_sync("a", session_id="s1")
        after = await agent.send("b", session_id="s1")
        last = await asyncio.to_thread(agent.send_sync, "c", session_id="s1")
        return [inside.text, after.text, last.text]

    assert asyncio.run(main()) == ["one", "two", "three"]


def test_resume_goes_on_with_exactly_the_open_calls(store: Store) -> None:
    ledger = Ledger()
    tools = [ledger.tool("a"), ledger.tool("b", dies=1)]
    agent = bot(store, [asks("a", "b"), "done"], tools=tools, tool_concurrency=1)
    with pytest.raises(Exception, match="b died"):
        agent.send_sync("go", session_id="s1")
    done = agent.resume_sync("s1")
    assert done is not None
    assert (done.text, ledger.counts()) == ("done", {"a": 1, "b": 2})


def test_nothing_to_resume_is_none_and_touches_nothing(store: Store) -> None:
    agent = bot(store, ["one"])
    assert agent.resume_sync("never") is None
    assert asyncio.run(store.checkpoints.load("never")) is None
    agent.send_sync("hi", session_id="s1")
    before = asyncio.run(store.checkpoints.load("s1"))
    assert agent.resume_sync("s1") is None
    assert asyncio.run(store.checkpoints.load("s1")) == before


def test_a_waiting_session_refuses_messages_and_resumes(store: Store) -> None:
    agent = bot(store, [asks("g"), "never"], tools=[Ledger().tool("g", needs_approval=True)])
    paused = agent.send_sync("go", session_id="s1")
    attempts: list[Callable[[], Any]] = [
        lambda: agent.send_sync("hurry", session_id="s1"), lambda: agent.resume_sync("s1"),
    ]  # fmt: skip
    for attempt in attempts:
        with pytest.raises(SessionAwaitingApprovalError) as refused:
            attempt()
        assert refused.value.approval_id == paused.approval_id
    with pytest.raises(SessionAwaitingApprovalError):
        list(agent.stream_sync("hurry", session_id="s1"))


# Approvals


@pytest.fixture
def paid() -> list[int]:
    return []


@pytest.fixture
def payer(store: Store, paid: list[int]) -> DurableAgent:
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        "pay"
        paid.append(amount)
        return f"paid {amount}"

    return bot(store, [turn(call("pay", amount=5)), "done"], tools=[pay])


def test_a_rejection_is_told_to_the_model(payer: DurableAgent, paid: list[int]) -> None:
    paused = payer.send_sync("go", session_id="s1")
    done = payer.approvals.resolve_sync(paused.approval_id, False, note="too much")
    assert done is not None
    assert (kinds(done.messages), paid) == (["rejected"], [])
    assert results(done.messages)["call_pay"]["note"] == "too much"


def test_other_arguments_are_what_runs(payer: DurableAgent, paid: list[int]) -> None:
    paused = payer.send_sync("go", session_id="s1")
    payer.approvals.resolve_sync(paused.approval_id, True, arguments={"amount": 3})
    assert paid == [3]


@pytest.mark.parametrize("outcome", ["by hand", None, 0, {"a": [1]}], ids=str)
def test_a_supplied_result_stands_for_the_call(payer: DurableAgent, paid: list[int], outcome: Any) -> None:
    paused = payer.send_sync("go", session_id="s1")
    done = payer.approvals.resolve_sync(paused.approval_id, True, result=outcome)
    assert done is not None
    assert (results(done.messages), paid) == ({"call_pay": outcome}, [])


@pytest.mark.parametrize("form", ["record", "mapping"])
def test_a_whole_decision_is_taken_too(payer: DurableAgent, paid: list[int], form: str) -> None:
    paused = payer.send_sync("go", session_id="s1")
    assert paused.approval_id is not None
    whole: Any = {"id": paused.approval_id, "approved": True, "by": "ann"}
    done = payer.approvals.resolve_sync(ApprovalDecision(**whole) if form == "record" else whole)
    assert done is not None
    assert (done.text, paid) == ("done", [5])


def test_a_decision_can_be_recorded_without_running(payer: DurableAgent, paid: list[int]) -> None:
    paused = payer.send_sync("go", session_id="s1")
    assert payer.approvals.resolve_sync(paused.approval_id, True, run=False) is None
    assert paid == []
    assert payer.approvals.list_sync() == []
    assert [each.pending.id for each in payer.approvals.list_sync(status="approved")] == [paused.approval_id]
    done = payer.resume_sync("s1")
    assert done is not None
    assert (done.text, paid) == ("done", [5])
    with pytest.raises(SDKError) as late:
        payer.approvals.resolve_sync(paused.approval_id, False)
    assert late.value.code == "LOUSHO_APPROVAL_NOT_FOUND"


def test_a_word_that_is_no_decision_is_refused(payer: DurableAgent, paid: list[int]) -> None:
    paused = payer.send_sync("go", session_id="s1")
    approval: Any = paused.approval_id
    for words in ((approval,), (approval, "yes"), (approval, 1)):
        with pytest.raises(ConfigurationError, match="approved"):
            payer.approvals.resolve_sync(*words)
    with pytest.raises(ConfigurationError, match="parts of one beside it"):
        payer.approvals.resolve_sync({"id": approval, "approved": True}, note="and this")
    with pytest.raises(SDKError) as unknown:
        payer.approvals.resolve_sync("ap_never", True)
    assert unknown.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    assert (paid, len(payer.approvals.list_sync())) == ([], 1)


def test_the_agents_settings_hold_after_an_approval(store: Store) -> None:
    """Hooks, limits and the time to decide are the agent's, whichever way its run goes on."""
    seen: list[str] = []

    def after_tool(use: ToolUse, result: Any) -> Any:
        seen.append(use.name)
        return result

    hooks = Hooks(after_tool=after_tool)
    agent = bot(
        store, [asks("g"), asks("g"), "never"], tools=[Ledger().tool("g", needs_approval=True)],
        hooks=hooks, max_steps=2, approval_ttl=60.0,
    )  # fmt: skip
    first = agent.send_sync("go", session_id="s1")
    second = agent.approvals.resolve_sync(first.approval_id, True)
    assert second is not None
    for paused in (first, second):
        assert paused.approval is not None
        assert paused.approval.expires_at is not None
    done = agent.approvals.resolve_sync(second.approval_id, True)
    assert done is not None
    assert (done.finish_reason, seen) == ("max-steps", ["g", "g"])


# Streams


def test_a_stream_yields_what_happens_and_ends_with_the_run(store: Store) -> None:
    async def watch() -> list[Event]:
        agent = bot(store, [asks("a"), "done"], tools=[Ledger().tool("a")])
        return [event async for event in agent.stream("go", session_id="s1")]

    events = asyncio.run(watch())
    assert (events[0].type, events[-1].type) == ("run.start", "run.done")
    assert [event.type for event in events].count("tool.done") == 1
    assert events[-1].data["finishReason"] == "stop"


def test_events_come_while_the_run_goes_on(store: Store) -> None:
    """The tool waits for the word of whoever reads the stream."""
    go = asyncio.Event()

    @tool
    async def waits() -> str:
        "waits"
        await asyncio.wait_for(go.wait(), 10)
        return "told"

    async def watch() -> str | None:
        agent = bot(store, [asks("waits"), "done"], tools=[waits])
        async for event in agent.stream("go", session_id="s1"):
            if event.type == "tool.start":
                go.set()
            if event.type == "tool.done":
                return str(event.data["result"])
        return None

    assert asyncio.run(watch()) == '"told"'


def slow(ledger: Ledger) -> Tool:
    @tool
    async def slow(ctx: ToolContext) -> str:
        "slow"
        ledger.lines.append(("slow", ctx.tool_call_id))
        await ctx.cancel.wait()
        ledger.lines.append(("told to stop", ctx.tool_call_id))
        return "stopped early"

    return slow


def left_agent(store: Store, ledger: Ledger) -> DurableAgent:
    """Its first turn has a call that ends only when it is told to."""
    return bot(store, [asks("a", "slow"), "done"], tools=[ledger.tool("a"), slow(ledger)], tool_concurrency=1)


def check_left(agent: DurableAgent, ledger: Ledger) -> None:
    """The run was stopped with all results recorded; nothing of it runs again."""
    newest = (agent.session("s1").history_sync() or ())[0]
    assert (newest.status, newest.checkpoint.finish_reason) == ("in-progress", "aborted")
    check_transcript(newest.checkpoint.messages)
    assert ledger.runs("told to stop") == 1
    done = agent.resume_sync("s1")
    assert done is not None
    assert (done.text, ledger.runs("a"), ledger.runs("slow")) == ("done", 1, 1)


def test_closing_a_stream_early_stops_the_run_at_a_safe_point(store: Store) -> None:
    ledger = Ledger()
    agent = left_agent(store, ledger)

    async def leave() -> None:
        stream: Any = agent.stream("go", session_id="s1")
        async with aclosing(stream):
            async for event in stream:
                if event.type == "tool.start" and event.data["toolName"] == "slow":
                    break
        # Left means stopped: the session is free at once.
        assert statuses(agent)[0] == "in-progress"

    asyncio.run(leave())
    check_left(agent, ledger)


def test_breaking_out_of_a_stream_stops_the_run(store: Store) -> None:
    ledger = Ledger()
    agent = left_agent(store, ledger)

    async def leave() -> None:
        async for event in agent.stream("go", session_id="s1"):
            if event.type == "tool.start" and event.data["toolName"] == "slow":
                break

    asyncio.run(leave())
    newest = (agent.session("s1").history_sync() or ())[0]
    check_transcript(newest.checkpoint.messages)
    assert newest.checkpoint.finish_reason == "aborted"
    assert ledger.runs("slow") == 1


def test_leaving_a_sync_stream_waits_until_the_run_has_stopped(store: Store, play: Play) -> None:
    ledger = Ledger()
    agent = left_agent(store, ledger)

    def leave() -> None:
        events: Any = agent.stream_sync("go", session_id="s1")
        with closing(events):
            for event in events:
                if event.type == "tool.start" and event.data["toolName"] == "slow":
                    break

    play(leave)
    check_left(agent, ledger)


def test_a_reader_that_raises_stops_the_run_too(store: Store) -> None:
    ledger = Ledger()
    agent = left_agent(store, ledger)

    def read() -> None:
        events: Any = agent.stream_sync("go", session_id="s1")
        with closing(events):
            for event in events:
                if event.type == "tool.start" and event.data["toolName"] == "slow":
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()
    check_left(agent, ledger)


def test_a_cancelled_reader_stops_the_run_too(store: Store) -> None:
    ledger = Ledger()
    agent = left_agent(store, ledger)

    async def main() -> None:
        reached = asyncio.Event()

        async def read() -> None:
            stream: Any = agent.stream("go", session_id="s1")
            async with aclosing(stream):
                async for event in stream:
                    if event.type == "tool.start" and event.data["toolName"] == "slow":
                        reached.set()

        reader = asyncio.create_task(read())
        await asyncio.wait_for(reached.wait(), 10)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader

    asyncio.run(main())
    check_left(agent, ledger)


def test_a_stream_that_is_never_read_runs_nothing(store: Store) -> None:
    async def leave() -> None:
        unread: Any = agent.stream("go", session_id="s1")
        await unread.aclose()

    agent = bot(store, [])
    asyncio.run(leave())
    agent.stream_sync("go", session_id="s1")
    assert asyncio.run(store.checkpoints.load("s1")) is None


def test_what_a_run_raises_comes_out_of_its_stream(store: Store, play: Play) -> None:
    async def watch() -> None:
        async for event in bot(store, [{"error": "the model died"}]).stream("go", session_id="s1"):
            seen.append(event.type)

    seen: list[str] = []
    with pytest.raises(ProviderError, match="the model died"):
        asyncio.run(watch())
    assert seen == ["run.start", "checkpoint.saved", "step.start", "model.failed"]
    with pytest.raises(ProviderError, match="the model died"):
        play(lambda: list(bot(store, [{"error": "the model died"}]).stream_sync("go", session_id="s2")))
    assert statuses(bot(store), "s1") == ["in-progress"]


def test_a_busy_session_is_told_by_every_way_in(store: Store) -> None:
    async def main() -> list[str]:
        async def hold(request: Any) -> str:
            held.set()
            await asyncio.wait_for(free.wait(), 20)
            return "done"

        held, free = asyncio.Event(), asyncio.Event()
        agent = bot(store, [hold])
        running = asyncio.create_task(agent.send("go", session_id="s1"))
        await asyncio.wait_for(held.wait(), 10)
        refused = []
        attempts: list[Callable[[], Any]] = [
            lambda: agent.send_sync("x", session_id="s1"),
            lambda: agent.resume_sync("s1"),
            lambda: list(agent.stream_sync("x", session_id="s1")),
        ]
        for attempt in attempts:
            with pytest.raises(SessionBusyError) as busy:
                attempt()
            refused.append(busy.value.code)
        free.set()
        await running
        return refused

    assert asyncio.run(main()) == ["LOUSHO_SESSION_BUSY"] * 3


def test_a_stream_takes_no_observer(store: Store) -> None:
    agent = bot(store)
    with pytest.raises(ConfigurationError, match="yields the events itself"):
        list(agent.stream_sync("go", session_id="s1", on_event=print))

    async def watch() -> None:
        async for _ in agent.stream("go", session_id="s1", on_event=print):
            raise AssertionError("an event")

    with pytest.raises(ConfigurationError, match="yields the events itself"):
        asyncio.run(watch())


def read_through(agent: DurableAgent, way: str, cancel: Cancel) -> list[Event]:
    async def watch() -> list[Event]:
        return [event async for event in agent.stream("go", session_id="s1", cancel=cancel)]

    if way == "sync":
        return list(agent.stream_sync("go", session_id="s1", cancel=cancel))
    return asyncio.run(watch())


@pytest.mark.parametrize("way", ["async", "sync"])
def test_a_callers_own_cancel_stops_a_stream(store: Store, way: str) -> None:
    cancel, ledger = Cancel(), Ledger()
    agent = bot(store, [asks("a"), "never"], tools=[ledger.tool("a", lambda: cancel.cancel("enough"))])
    assert read_through(agent, way, cancel)[-1].data["finishReason"] == "aborted"


@pytest.mark.parametrize("way", ["async", "sync"])
def test_a_stream_read_to_its_end_cancels_nothing(way: str) -> None:
    """The cancel is the caller's: other runs may share it."""
    cancel = Cancel()
    read_through(bot(MemoryStore()), way, cancel)
    assert not cancel.is_set()


class Disk:
    """A checkpoint store of the caller's own, whose disk is full while `full` is set."""

    def __init__(self) -> None:
        self._inner = MemoryStore().checkpoints
        self.full = False

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        if self.full:
            raise StorageError("the disk is full")
        await self._inner.save(session_id, checkpoint)

    async def load(self, session_id: str) -> Checkpoint | None:
        return await self._inner.load(session_id)

    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        await self._inner.delete(session_id, keep_history=keep_history)


class DiskStore:
    def __init__(self) -> None:
        self.checkpoints = Disk()
        self.approvals: ApprovalStore = MemoryStore().approvals


@pytest.mark.parametrize("way", ["async", "sync"])
def test_a_save_that_fails_while_a_stream_is_left_is_an_error_to_who_leaves_it(way: str) -> None:
    """R3.19: a save that fails is an error to the caller."""
    own = DiskStore()
    agent = create_agent(
        provider=ScriptedModel([asks("slow"), "done"]), tools=[slow(Ledger())], store=own
    )  # fmt: skip

    def leave_sync() -> None:
        events: Any = agent.stream_sync("go", session_id="s1")
        with closing(events):
            next(event for event in events if event.type == "tool.start")
            own.checkpoints.full = True

    async def leave() -> None:
        events: Any = agent.stream("go", session_id="s1")
        async with aclosing(events):
            async for event in events:
                if event.type == "tool.start":
                    break
            own.checkpoints.full = True

    with pytest.raises(StorageError, match="the disk is full"):
        leave_sync() if way == "sync" else asyncio.run(leave())


# Without a store


def test_without_a_store_it_runs_and_keeps_nothing() -> None:
    agent = bot(None, [asks("a"), "one", "two"], tools=[Ledger().tool("a")])
    assert agent.send_sync("hi").text == "one"
    again = agent.send_sync("hi", session_id="s1")
    assert (again.text, said(again.messages)) == ("two", ["hi"])
    assert agent.resume_sync("s1") is None
    streamed = [event.type for event in bot(None).stream_sync("hi")]
    assert streamed[-1] == "run.done"


def test_without_a_store_what_needs_one_says_so() -> None:
    agent = bot(None)
    attempts: list[Callable[[], Any]] = [
        lambda: agent.store,
        lambda: agent.fork_sync("s1", from_step=0),
        agent.approvals.list_sync,
        lambda: agent.approvals.resolve_sync("ap_x", True),
        lambda: agent.approvals.resolve_sync("ap_x", True, run=False),
        agent.session("s1").history_sync,
    ]
    for attempt in attempts:
        with pytest.raises(ConfigurationError, match="'bot' has no store") as refused:
            attempt()
        assert refused.value.code == "LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE"


def test_without_a_store_a_gated_call_says_what_is_missing() -> None:
    ledger = Ledger()
    agent = bot(None, [asks("g"), "never"], tools=[ledger.tool("g", needs_approval=True)])
    with pytest.raises(ConfigurationError) as refused:
        agent.send_sync("go")
    assert refused.value.code == "LOUSHO_APPROVAL_STORE_MISSING"
    assert ledger.lines == []


# Making one


def test_an_agent_needs_a_model() -> None:
    for options in ({}, {"model": lambda context: "demo"}):
        with pytest.raises(ConfigurationError) as refused:
            create_agent(**options)  # type: ignore[arg-type]
        assert refused.value.code == "LOUSHO_CONFIG_MISSING_PROVIDER"


def test_two_tools_of_one_name_are_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="'a'"):
        bot(None, tools=[Ledger().tool("a"), Ledger().tool("a")])


def test_a_model_may_be_named() -> None:
    assert create_agent(model="demo").send_sync("Book a table for 2").text


IMPOSSIBLE: list[dict[str, Any]] = [
    {"max_steps": 0}, {"max_steps": -1}, {"tool_concurrency": 0}, {"approval_ttl": 0.0},
    {"on_agent_drift": "maybe"},
]  # fmt: skip


@pytest.mark.parametrize("option", IMPOSSIBLE, ids=str)
def test_an_impossible_setting_is_refused_before_anything_runs(option: dict[str, Any]) -> None:
    model = ScriptedModel(["never"])
    with pytest.raises(ConfigurationError, match=next(iter(option))):
        create_agent(provider=model, store=MemoryStore(), **option).send_sync("go", session_id="s1")
    assert model.calls == []


def test_the_agents_limit_counts_over_its_resumes(store: Store) -> None:
    ledger = Ledger()
    tools = [ledger.tool("a", dies=1)]
    agent = bot(store, [asks("a"), turn(call("a", "again")), "never"], tools=tools, max_steps=2)
    with pytest.raises(Exception, match="a died"):
        agent.send_sync("go", session_id="s1")
    done = agent.resume_sync("s1")
    assert done is not None
    assert (done.finish_reason, done.steps) == ("max-steps", 2)


@pytest.mark.parametrize("form", ["agent", "durable"])
def test_sub_agents_may_be_agents_or_durable_agents(store: Store, form: str) -> None:
    gated = [Ledger().tool("fire", needs_approval=True)]
    inner = ScriptedModel([asks("fire"), "soup"])
    cook: Agent | DurableAgent = Agent("cook", "cook", gated, provider=inner, description="cooks")
    if form == "durable":
        cook = create_agent(name="cook", tools=gated, provider=inner, description="cooks")
    lead = ScriptedModel([turn(call("delegate_cook", input="a soup")), "served"])
    agent = create_agent(name="bot", provider=lead, store=store, subagents=[cook])
    paused = agent.send_sync("go", session_id="s1")
    (waiting,) = agent.approvals.list_sync()
    assert (waiting.pending.subagent, waiting.pending.tool_name) == (["cook"], "fire")
    done = agent.approvals.resolve_sync(paused.approval_id, True)
    assert done is not None
    assert (done.text, results(done.messages)) == ("served", {"call_delegate_cook": "soup"})
    assert (len(inner.calls), len(lead.calls)) == (2, 2)


def test_a_fork_goes_its_own_way(store: Store) -> None:
    model = ScriptedModel([asks("weather"), "sunny plan", "rainy plan"])
    agent = create_agent(name="bot", provider=model, store=store, tools=[Ledger().tool("weather")])
    agent.send_sync("plan", session_id="s1")
    before = agent.session("s1").history_sync()
    forked = agent.fork_sync(
        "s1", from_step=1, patch={"tool_result": {"tool_call_id": "call_weather", "result": "rain"}}
    )
    done = agent.resume_sync(forked.session_id)
    assert done is not None
    assert (done.text, results(done.messages)) == ("rainy plan", {"call_weather": "rain"})
    assert agent.session("s1").history_sync() == before
    at = (before or ())[-1].seq
    assert agent.fork_sync("s1", at=at).step == 0
    with pytest.raises(SDKError) as unknown:
        agent.fork_sync("s1", from_step=9)
    assert unknown.value.code == "LOUSHO_CHECKPOINT_NOT_FOUND"


def test_many_streams_of_one_agent_do_not_mix(store: Store) -> None:
    async def main() -> list[set[str | None]]:
        async def read(session: str) -> set[str | None]:
            events = agent.stream("go", session_id=session)
            return {event.session_id async for event in events}

        agent = create_agent(
            name="bot", store=store, tools=[Ledger().tool("a")],
            provider=ScriptedModel([rules_kit.scripted_by_position([asks("a"), "done"])] * 8),
        )  # fmt: skip
        return list(await asyncio.gather(*(read(f"s{n}") for n in range(4))))

    assert asyncio.run(main()) == [{f"s{n}"} for n in range(4)]


def test_a_left_stream_does_not_wait_for_the_model(store: Store) -> None:
    async def never(request: Any) -> str:
        await asyncio.sleep(30)
        return "late"

    agent = bot(store, [never, "done"])
    start = time.monotonic()
    events: Any = agent.stream_sync("go", session_id="s1")
    with closing(events):
        assert next(event for event in events if event.type == "step.start").data["step"] == 1
    assert time.monotonic() - start < 10
    done = agent.resume_sync("s1")
    assert done is not None
    assert (done.text, said(done.messages)) == ("done", ["go"])
    assert dump(done.messages)[0]["content"] == "be brief"


# Agent folders


COOK_TOOLS = """\
from pathlib import Path
from lousho_cli import ToolContext, tool

@tool(needs_approval=True)
def fire(heat: int, ctx: ToolContext) -> str:
    "Light the fire."
    with (Path(__file__).parents[6] / "ledger.txt").open("a") as ledger:
        ledger.write(f"fire {heat} {ctx.agent}\\n")
    return f"fire at {heat}"
"""


@pytest.fixture
def kitchen(tmp_path: Path) -> Path:
    """A workspace whose agent `bot` may delegate to `cook`, a folder inside it. Returns where it lies."""
    folder = tmp_path / ".lousho" / "agents" / "bot"
    cook = folder / "subagents" / "cook"
    (cook / "tools").mkdir(parents=True)
    (folder / "agent.toml").write_text('model = "script:script.json"\n')
    (folder / "script.json").write_text(
        json.dumps([turn(call("delegate_cook", input="a soup")), "the soup is served"])
    )
    (cook / "agent.toml").write_text('model = "script:lines.json"\ndescription = "cooks soup"\n')
    (cook / "lines.json").write_text(json.dumps([turn(call("fire", heat=3)), "soup"]))
    (cook / "tools" / "tools.py").write_text(COOK_TOOLS)
    return tmp_path


def lousho(root: Path, *words: str, code: int = 0) -> Any:
    """What a real process prints with `--json`."""
    done = subprocess.run(
        [sys.executable, "-m", "lousho_cli", *words, "--json"],
        cwd=root, env={**os.environ, "LOUSHO_TRUST_WORKSPACE": "1"}, capture_output=True, check=False,
        stdin=subprocess.DEVNULL, timeout=30,
    )  # fmt: skip
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def test_a_folder_of_sub_agents_plays_on_the_command_line(kitchen: Path) -> None:
    paused = lousho(kitchen, "run", "s1", "soup please", code=3)
    assert (paused["status"], paused["approval"]["toolName"]) == ("awaiting-approval", "fire")
    (waiting,) = lousho(kitchen, "approvals")["approvals"]
    assert (waiting["id"], waiting["args"], waiting["subagent"]) == (
        paused["approvalId"], {"heat": 3}, ["cook"]
    )  # fmt: skip
    refused = lousho(kitchen, "run", "s1", "hurry", code=3)
    assert refused["error"]["code"] == "LOUSHO_SESSION_AWAITING_APPROVAL"
    assert not (kitchen / "ledger.txt").exists()
    done = lousho(kitchen, "approve", paused["approvalId"])
    assert (done["text"], done["finishReason"]) == ("the soup is served", "stop")
    assert (kitchen / "ledger.txt").read_text() == "fire 3 cook\n"
    shown = lousho(kitchen, "show", "s1")["messages"]
    assert [each["content"] for each in shown if each["role"] == "tool"] == ['"soup"']


def test_a_sub_agents_broken_file_is_named(kitchen: Path) -> None:
    folder = kitchen / ".lousho" / "agents" / "bot"
    (folder / "subagents" / "cook" / "agent.toml").write_text("descripton = 1\n")
    with pytest.raises(ConfigurationError, match=r"cook.agent\.toml"):
        load_agent(folder)


def test_a_sub_agents_own_limit_holds(kitchen: Path) -> None:
    cook = kitchen / ".lousho" / "agents" / "bot" / "subagents" / "cook"
    (cook / "agent.toml").write_text('model = "script:lines.json"\nmax_steps = 1\n')
    (cook / "lines.json").write_text(json.dumps([turn(call("gone")), "never"]))
    done = lousho(kitchen, "run", "s1", "soup please")
    assert done["text"] == "the soup is served"
    (result,) = [each for each in lousho(kitchen, "show", "s1")["messages"] if each["role"] == "tool"]
    assert "max-steps" in json.loads(result["content"])["error"]
