"""Agents whose model, instructions and tools depend on the run's context (R3.13)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
import rules_kit
from rules_kit import World, asks, call, dump, results, turn

from lousho_cli import Agent, ForkPatch, SDKError, Tool, ToolContext, ToolRegistry, tool
from lousho_cli.execution.agent import RunContext
from lousho_cli.testing import ScriptedModel

world = rules_kit.world


class Shop:
    """A dynamic agent: everything about it depends on who the customer is."""

    def __init__(self, world: World, *, dies: int = 0, later: bool = False) -> None:
        self.contexts: list[RunContext] = []
        self.model = "large"
        self._later = later
        self._tools: dict[str, list[Tool]] = {
            "ann": [world.ledger.tool("refund", dies=dies), world.ledger.tool("pay", needs_approval=True)],
            "bob": [world.ledger.tool("quote")],
        }

    def agent(self) -> Agent:
        return Agent(
            "shop", self._when(self._instructions), self._when(self._its_tools), self._when(self._model)
        )

    def _when(self, decide: Any) -> Any:
        async def later(context: RunContext) -> Any:
            await asyncio.sleep(0)
            return decide(context)

        return later if self._later else decide

    def _model(self, context: RunContext) -> str:
        self.contexts.append(context)
        return f"{self.model}-{context.business_state['who']}"

    def _instructions(self, context: RunContext) -> str:
        return f"Serve {context.business_state['who']}."

    def _its_tools(self, context: RunContext) -> list[Tool]:
        return self._tools[context.business_state["who"]]


ANN = {"who": "ann"}


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
def test_each_part_is_decided_from_the_context(world: World, later: bool) -> None:
    shop = Shop(world, later=later)
    done = world.execute(["hello"], agent=shop.agent(), business_state=ANN)
    (request,) = world.model.calls
    assert request.model == "large-ann"
    assert [each.name for each in request.tools] == ["refund", "pay"]
    assert dump(done.messages)[0]["content"] == "Serve ann."
    assert shop.contexts == [RunContext("shop", "s1", ANN)]


def test_the_choice_and_the_context_are_saved(world: World) -> None:
    world.execute(["hello"], agent=Shop(world).agent(), business_state=ANN)
    assert world.load().run_config == {"model": "large-ann", "context": ANN}
    stored = world.load().model_dump(mode="json", by_alias=True, exclude_none=True)
    assert stored["runConfig"] == {"model": "large-ann", "context": ANN}


def test_an_agent_without_dynamic_parts_saves_its_model_alone(world: World) -> None:
    world.execute(["hello"], business_state=ANN)
    assert world.load().run_config == {"model": "scripted"}


def test_a_crash_resume_keeps_the_model_and_asks_for_the_rest_with_the_saved_context(world: World) -> None:
    shop = Shop(world, dies=1)
    world.crash([asks("refund")], agent=shop.agent(), business_state=ANN)
    shop.model = "small"
    shop.contexts.clear()
    done = world.resume(["done"], agent=shop.agent(), business_state={"who": "bob"}, on_agent_drift="error")
    assert done.text == "done"
    (request,) = world.model.calls
    assert request.model == "large-ann"
    assert [each.name for each in request.tools] == ["refund", "pay"]
    assert shop.contexts == []
    assert world.load().business_state == {"who": "bob"}
    assert world.load().run_config == {"model": "large-ann", "context": ANN}


def test_a_resume_after_an_approval_does_so_too(world: World) -> None:
    shop = Shop(world)
    paused = world.execute([asks("pay")], agent=shop.agent(), business_state=ANN)
    shop.model = "small"
    options = {"agent": shop.agent(), "on_agent_drift": "error"}
    world.tools = shop._tools["ann"]
    done = world.decide(paused.approval_id, ["done"], options=options)
    assert (done.text, world.ledger.runs("pay")) == ("done", 1)
    assert world.model.calls[0].model == "large-ann"


def test_a_tool_may_change_the_business_state_and_not_the_context(world: World) -> None:
    @tool
    def become(ctx: ToolContext) -> str:
        "become"
        ctx.business_state["who"] = "bob"
        return "now bob"

    tools = [become, world.ledger.tool("dies", dies=1)]
    contexts: list[Any] = []

    def choose(context: RunContext) -> list[Tool]:
        contexts.append(context.business_state)
        return tools

    agent = Agent("shop", tools=choose)
    world.crash([turn(call("become")), asks("dies")], agent=agent, business_state=ANN)
    assert world.load().business_state == {"who": "bob"}
    contexts.clear()
    assert world.resume(["done"], agent=agent).text == "done"
    assert contexts
    assert all(context == ANN for context in contexts)


def test_a_new_run_decides_anew(world: World) -> None:
    shop = Shop(world)
    world.execute(["hello"], agent=shop.agent(), business_state=ANN)
    shop.model = "small"
    done = world.execute(["hi"], "next", agent=shop.agent(), business_state={"who": "bob"})
    (request,) = world.model.calls
    assert request.model == "small-bob"
    assert [each.name for each in request.tools] == ["quote"]
    assert dump(done.messages)[0]["content"] == "Serve bob."
    assert world.load().run_config == {"model": "small-bob", "context": {"who": "bob"}}
    again = world.execute(["hi"], "and now?", agent=shop.agent())
    assert dump(again.messages)[0]["content"] == "Serve bob."


def test_a_context_that_a_function_changes_changes_no_save(world: World) -> None:
    def spoil(context: RunContext) -> str:
        context.business_state["spoiled"] = True
        return "m"

    world.execute(["one"], business_state={"who": "ann"})
    before = [entry.checkpoint.business_state for entry in world.history()]
    given: dict[str, Any] = {"who": "bob"}
    world.execute(["two"], "next", agent=Agent("bot", "be brief", model=spoil))
    world.execute(["three"], "next", agent=Agent("bot", "be brief", model=spoil), business_state=given)
    assert given == {"who": "bob"}
    entries = world.history()
    assert [entry.checkpoint.business_state for entry in entries[-len(before) :]] == before
    assert world.load().business_state == {"who": "bob"}


def test_dynamic_parts_that_differ_on_a_resume_are_drift(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    shop = Shop(world, dies=1)
    world.crash([asks("refund")], agent=shop.agent(), business_state=ANN)
    shop._tools["ann"].append(world.ledger.tool("fresh"))
    with pytest.raises(SDKError, match="tool fresh is new") as refused:
        world.resume(["never"], agent=shop.agent(), on_agent_drift="error")
    assert refused.value.code == "LOUSHO_AGENT_DRIFT"
    with caplog.at_level(logging.WARNING):
        assert world.resume(["done"], agent=shop.agent()).text == "done"
    assert "tool fresh is new" in caplog.text


def test_a_tool_that_is_not_offered_any_more_is_missing(world: World) -> None:
    shop = Shop(world, dies=1)
    world.crash([asks("refund")], agent=shop.agent(), business_state=ANN)
    shop._tools["ann"] = shop._tools["bob"]
    with pytest.raises(SDKError, match="refund") as refused:
        world.resume(["never"], agent=shop.agent(), on_agent_drift="ignore")
    assert refused.value.code == "LOUSHO_RESUME_TOOL_MISSING"


def test_a_function_that_raises_starts_nothing(world: World) -> None:
    shop = Shop(world)
    with pytest.raises(TypeError):
        world.execute(["never"], agent=shop.agent())
    assert asyncio.run(world.store.checkpoints.load("s1")) is None
    assert world.model.calls == []


def test_a_fork_keeps_the_choice_and_the_context(world: World) -> None:
    shop = Shop(world, dies=1)
    world.crash([asks("refund")], agent=shop.agent(), business_state=ANN)
    shop.model = "small"
    patch = ForkPatch(business_state={"who": "bob"})
    name = world.fork(from_step=1, patch=patch).session_id
    done = world.resume(["done"], session=name, agent=shop.agent())
    assert results(done.messages) == {"call_refund": "refund done"}
    assert world.model.calls[0].model == "large-ann"
    assert world.load(name).business_state == {"who": "bob"}


def test_a_registry_given_stands_for_the_agents_dynamic_tools(world: World) -> None:
    registry = ToolRegistry([world.ledger.tool("other")])
    world.execute(["hi"], agent=Shop(world).agent(), business_state=ANN, tool_registry=registry)
    assert [each.name for each in world.model.calls[0].tools] == ["other"]


def test_a_sub_agent_is_decided_from_the_business_state_it_is_called_with(world: World) -> None:
    shop = Shop(world)
    model = ScriptedModel([asks("pay"), "paid"])
    seller = shop.agent()
    seller.provider = model
    lead = Agent("lead", "lead", subagents=[seller])
    script = [turn(call("delegate_shop", input="sell")), "done"]
    paused = world.execute(script, agent=lead, business_state=ANN)
    assert paused.finish_reason == "awaiting-approval"
    shop.model = "small"
    world.tools = []
    done = world.decide(paused.approval_id, ["done"], options={"agent": lead, "on_agent_drift": "error"})
    assert results(done.messages) == {"call_delegate_shop": "paid"}
    assert [request.model for request in model.calls] == ["large-ann", "large-ann"]
    assert dump(model.calls[0].messages)[0]["content"] == "Serve ann."
