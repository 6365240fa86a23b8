"""What changed in the agent since the run began (R3.12)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import rules_kit
from rules_kit import World, asks, results

from lousho_cli import Agent, Event, SDKError, Tool, tool

world = rules_kit.world


def changed(world: World, what: str) -> Agent:
    """Today's agent, which differs in one thing from the one the run began with."""

    @tool(name="a")
    def other(n: int, m: str = "") -> str:
        "another schema"
        return "ok"

    tools: list[Tool] = list(world.tools)
    if what == "schema":
        return Agent("bot", "be brief", [other, *tools[1:]])
    if what == "new tool":
        return Agent("bot", "be brief", [*tools, world.ledger.tool("fresh")])
    if what == "gone tool":
        return Agent("bot", "be brief", tools[:1])
    if what == "model":
        return Agent("bot", "be brief", tools, model="another")
    return Agent("bot", "be rude", tools)


CHANGES = {
    "instructions": "instructions changed",
    "model": "model was scripted, is another",
    "schema": "tool a takes other arguments",
    "new tool": "tool fresh is new",
    "gone tool": "tool spare is gone",
}


@pytest.fixture
def crashed(world: World) -> World:
    world.tools = [world.ledger.tool("a", dies=1), world.ledger.tool("spare")]
    world.crash([asks("a")])
    return world


@pytest.mark.parametrize("what", CHANGES)
def test_error_refuses_and_touches_nothing(crashed: World, what: str) -> None:
    before = crashed.load()
    with pytest.raises(SDKError, match=CHANGES[what]) as refused:
        crashed.resume(["never"], agent=changed(crashed, what), on_agent_drift="error")
    assert refused.value.code == "LOUSHO_AGENT_DRIFT"
    assert crashed.load() == before
    assert (crashed.model.calls, crashed.ledger.runs("a")) == ([], 1)


@pytest.mark.parametrize("what", CHANGES)
def test_warn_says_what_changed_and_goes_on(
    crashed: World, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[Event] = []
    with caplog.at_level(logging.WARNING):
        done = crashed.resume(["done"], agent=changed(crashed, what), on_event=events.append)
    assert done.text == "done"
    (drift,) = [event for event in events if event.type == "agent.drift"]
    assert drift.data["changes"] == [CHANGES[what]]
    assert CHANGES[what] in caplog.text


def test_ignore_says_nothing(crashed: World, caplog: pytest.LogCaptureFixture) -> None:
    events: list[Event] = []
    options: dict[str, Any] = {"on_agent_drift": "ignore", "on_event": events.append}
    done = crashed.resume(["done"], agent=changed(crashed, "instructions"), **options)
    assert done.text == "done"
    assert "agent.drift" not in {event.type for event in events}
    assert caplog.text == ""


@pytest.mark.parametrize("policy", ["warn", "error", "ignore"])
def test_a_pending_calls_missing_tool_is_refused_whatever_the_policy(world: World, policy: str) -> None:
    world.tools = [world.ledger.tool("free"), world.ledger.tool("gone", dies=1)]
    world.crash([asks("free", "gone")], tool_concurrency=1)
    before = world.load()
    world.tools = world.tools[:1]
    with pytest.raises(SDKError) as refused:
        world.resume(["never"], on_agent_drift=policy)
    assert refused.value.code == "LOUSHO_RESUME_TOOL_MISSING"
    assert world.load() == before
    assert world.ledger.counts() == {"free": 1, "gone": 1}


def test_a_name_the_model_invented_is_no_missing_tool(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1)]
    world.crash([asks("a", "invented")], tool_concurrency=1)
    done = world.resume(["done"])
    assert results(done.messages)["call_invented"]["kind"] == "unknown-tool"


def test_changed_code_is_no_drift(crashed: World) -> None:
    crashed.tools = [crashed.ledger.tool("a", lambda: "new code"), crashed.ledger.tool("spare")]
    done = crashed.resume(["done"], on_agent_drift="error")
    assert results(done.messages) == {"call_a": "new code"}


def test_a_new_run_is_no_resume(world: World) -> None:
    world.execute(["one"])
    done = world.execute(["two"], "next", agent=Agent("bot", "be rude"), on_agent_drift="error")
    assert done.text == "two"
    again = world.fork(from_step=0)
    with pytest.raises(SDKError) as refused:
        world.resume(["x"], session=again.session_id, agent=Agent("bot", "other"), on_agent_drift="error")
    assert refused.value.code == "LOUSHO_AGENT_DRIFT"


def test_a_fingerprint_of_another_version_is_not_compared(crashed: World) -> None:
    import asyncio

    stored = crashed.load()
    fingerprint = {**(stored.agent_fingerprint or {}), "version": 1}
    old = stored.model_copy(update={"agent_fingerprint": fingerprint})
    asyncio.run(crashed.store.checkpoints.save("s1", old))
    done = crashed.resume(["done"], agent=changed(crashed, "instructions"), on_agent_drift="error")
    assert done.text == "done"


def test_an_approved_run_keeps_the_instructions_it_began_with(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])
    agent = Agent("bot", "be rude", world.tools)
    world.decide(paused.approval_id, ["done"], options={"agent": agent})
    assert world.sent()[0]["content"] == "be brief"
