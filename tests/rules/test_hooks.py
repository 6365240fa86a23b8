"""Hooks: what they see, what they may change, and what holds when they fail."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
import rules_kit
from rules_kit import World, asks, call, check_transcript, dump, kinds, results, turn

from lousho_cli import Agent, Cancel, Hooks, ModelRequest, ModelResponse, ToolContext, tool
from lousho_cli.execution.conversation import Messages
from lousho_cli.execution.hooks import ToolUse
from lousho_cli.testing import ScriptedModel

world = rules_kit.world


@pytest.fixture
def counted(world: World) -> World:
    """A world with the tools `free` and `gated` of a number, which note what they were given."""

    @tool
    def free(ctx: ToolContext, n: int = 0) -> int:
        "free"
        world.ledger.lines.append((f"free {n}", ctx.tool_call_id))
        return n

    @tool(needs_approval=True)
    def gated(ctx: ToolContext, n: int = 0) -> int:
        "gated"
        world.ledger.lines.append((f"gated {n}", ctx.tool_call_id))
        return n

    world.tools = [free, gated]
    return world


def double(use: ToolUse) -> dict[str, Any]:
    return {"n": use.args["n"] * 2}


async def double_later(use: ToolUse) -> dict[str, Any]:
    await asyncio.sleep(0)
    return double(use)


def ran(world: World) -> list[str]:
    return [line[0] for line in world.ledger.lines]


def test_hooks_that_return_nothing_change_nothing(counted: World) -> None:
    seen: list[str] = []

    def note(*about: Any) -> None:
        seen.append(type(about[0]).__name__)

    hooks = Hooks(note, note, note, note)
    done = counted.execute([turn(call("free", n=3)), "done"], hooks=hooks)
    assert (done.text, results(done.messages)) == ("done", {"call_free": 3})
    assert seen == ["ModelRequest", "ModelResponse", "ToolUse", "ToolUse", "ModelRequest", "ModelResponse"]


def test_the_model_is_asked_what_before_model_returns_and_the_transcript_stays(counted: World) -> None:
    async def brief(request: ModelRequest) -> ModelRequest:
        await asyncio.sleep(0)
        return replace(request, messages=Messages(request.messages.log, "be briefer"), model="small")

    done = counted.execute(["done"], hooks=Hooks(before_model=brief))
    assert counted.sent()[0]["content"] == "be briefer"
    assert counted.model.calls[0].model == "small"
    assert dump(done.messages)[0]["content"] == "be brief"
    assert dump(counted.load().messages)[0]["content"] == "be brief"


def test_what_after_model_returns_is_what_is_recorded_and_run(counted: World) -> None:
    def other(response: ModelResponse) -> Any:
        if not response.tool_calls:
            return response.model_copy(update={"content": response.content + "!"})
        function = {"name": "free", "arguments": '{"n": 7}'}
        return {"content": "rather", "toolCalls": [{"id": "mine", "function": function}]}

    done = counted.execute([turn(call("gated", n=1)), "done"], hooks=Hooks(after_model=other))
    assert (done.text, results(done.messages)) == ("done!", {"mine": 7})
    assert ran(counted) == ["free 7"]
    assert dump(counted.load().messages) == dump(done.messages)
    check_transcript(done.messages)


@pytest.mark.parametrize("hook", [double, double_later])
def test_a_call_runs_with_what_before_tool_returns(counted: World, hook: Any) -> None:
    done = counted.execute([turn(call("free", n=3)), "done"], hooks=Hooks(before_tool=hook))
    assert results(done.messages) == {"call_free": 6}


def test_what_before_tool_returns_is_validated(counted: World) -> None:
    hooks = Hooks(before_tool=lambda use: {"n": "many"})
    done = counted.execute([turn(call("free", n=3)), "done"], hooks=hooks)
    assert kinds(done.messages) == ["invalid-arguments"]
    assert ran(counted) == []


def test_arguments_changed_in_place_change_nothing(counted: World) -> None:
    def spoil(use: ToolUse) -> None:
        use.args["n"] = 99

    done = counted.execute([turn(call("free", n=3)), "done"], hooks=Hooks(before_tool=spoil))
    assert results(done.messages) == {"call_free": 3}


def test_before_tool_sees_no_call_that_does_not_fit(counted: World) -> None:
    seen: list[str] = []
    hooks = Hooks(before_tool=lambda use: seen.append(use.name))
    calls = turn(call("free", "1", n="x"), call("unknown", "2"), call("free", "3", n=1))
    done = counted.execute([calls, "done"], hooks=hooks)
    assert kinds(done.messages) == ["invalid-arguments", "unknown-tool", None]
    assert seen == ["free"]


def test_an_approval_shows_what_before_tool_returns_and_that_runs_once_changed(counted: World) -> None:
    hooks = Hooks(before_tool=double)
    paused = counted.execute([turn(call("gated", n=3))], hooks=hooks)
    assert paused.approval is not None
    assert paused.approval.args == {"n": 6}
    done = counted.decide(paused.approval_id, ["done"], options={"hooks": hooks})
    assert (done.text, ran(counted)) == ("done", ["gated 6"])


def test_an_approval_covers_what_it_showed_though_the_hook_is_gone(counted: World) -> None:
    paused = counted.execute([turn(call("gated", n=3))], hooks=Hooks(before_tool=double))
    counted.decide(paused.approval_id, ["done"])
    assert ran(counted) == ["gated 6"]


def test_a_humans_arguments_are_not_changed_by_before_tool(counted: World) -> None:
    hooks = Hooks(before_tool=double)
    paused = counted.execute([turn(call("gated", n=3))], hooks=hooks)
    counted.decide(paused.approval_id, ["done"], arguments={"n": 5}, options={"hooks": hooks})
    assert ran(counted) == ["gated 5"]


@pytest.mark.parametrize("value", [0, "", False, [], {}, "123", 2**70, {"a": [1, None]}], ids=repr)
def test_the_result_is_what_after_tool_returns(counted: World, value: Any) -> None:
    done = counted.execute([turn(call("free", n=3)), "done"], hooks=Hooks(after_tool=lambda u, r: value))
    assert results(done.messages) == {"call_free": value}
    assert results(counted.model.calls[1].messages) == {"call_free": value}
    assert results(counted.load().messages) == {"call_free": value}


def test_after_tool_sees_errors_and_leaves_them_marked(counted: World) -> None:
    seen: list[Any] = []

    async def soften(use: ToolUse, result: Any) -> Any:
        seen.append((use.id, result["kind"]))
        return {**result, "error": "it did not work"}

    done = counted.execute([asks("unknown"), "done"], hooks=Hooks(after_tool=soften))
    assert seen == [("call_unknown", "unknown-tool")]
    assert kinds(done.messages) == ["unknown-tool"]
    assert results(done.messages)["call_unknown"]["error"] == "it did not work"


def fails(*about: Any) -> Any:
    raise ValueError("the hook died")


async def fails_later(*about: Any) -> Any:
    await asyncio.sleep(0)
    raise ValueError("the hook died")


@pytest.mark.parametrize("hook", [fails, fails_later])
@pytest.mark.parametrize(
    ("name", "runs", "asked"),
    [("before_model", 1, 2), ("after_model", 1, 3), ("before_tool", 1, 2), ("after_tool", 1, 2)],
)
def test_a_hook_that_raises_ends_the_run_which_can_be_resumed(
    counted: World, name: str, runs: int, asked: int, hook: Any
) -> None:
    script = [rules_kit.scripted_by_position([turn(call("free", n=1)), "done"])] * 4
    counted.crash(script, hooks=Hooks(**{name: hook}))
    before = len(counted.model.calls)
    assert counted.load().status == "in-progress"
    done = counted.resume(script)
    assert (done.text, results(done.messages)) == ("done", {"call_free": 1})
    assert ran(counted) == ["free 1"] * runs
    assert before + len(counted.model.calls) == asked


def test_where_after_tool_raises_the_tools_own_result_is_kept(counted: World) -> None:
    counted.crash([turn(call("free", "1", n=1), call("free", "2", n=2))], hooks=Hooks(after_tool=fails))
    assert results(counted.load().messages) == {"1": 1, "2": 2}
    assert sorted(ran(counted)) == ["free 1", "free 2"]


def test_after_tool_that_raises_once_still_sees_the_other_calls(world: World) -> None:
    def seldom(use: ToolUse, result: Any) -> Any:
        if use.name == "fast":
            raise ValueError("the hook died")
        return "hidden"

    @tool
    async def slow() -> str:
        "slow"
        await asyncio.sleep(0.05)
        return "secret"

    world.tools = [world.ledger.tool("fast"), slow]
    world.crash([asks("fast", "slow")], hooks=Hooks(after_tool=seldom))
    assert results(world.load().messages) == {"call_fast": "fast done", "call_slow": "hidden"}


def test_a_result_that_is_kept_on_an_abort_went_through_after_tool(world: World) -> None:
    cancel = Cancel()

    @tool
    async def stubborn() -> str:
        "stubborn"
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "secret"
        return "never"

    @tool
    async def stop() -> str:
        "stop"
        await asyncio.sleep(0.02)
        cancel.cancel("enough")
        return "secret"

    world.tools = [stubborn, stop]
    stopped = world.execute(
        [asks("stubborn", "stop")], cancel=cancel, hooks=Hooks(after_tool=lambda use, result: "hidden")
    )
    assert stopped.finish_reason == "aborted"
    assert "secret" not in results(stopped.messages).values()


def test_hooks_are_around_the_calls_of_sub_agents_too(world: World) -> None:
    seen: list[tuple[str, Any]] = []

    def shout(use: ToolUse, result: Any) -> Any:
        seen.append((use.name, use.args))
        return f"{result}!"

    cook = Agent("cook", "cook", [world.ledger.tool("prep")])
    script = [turn(call("delegate_cook", input="soup")), turn(call("prep", n=2)), "soup", "done"]
    done = world.execute(script, agent=Agent("bot", "bot", subagents=[cook]), hooks=Hooks(after_tool=shout))
    assert seen == [("prep", {"n": 2}), ("delegate_cook", {"input": "soup"})]
    assert results(done.messages) == {"call_delegate_cook": "soup!"}
    assert list(results(world.model.calls[2].messages).values()) == ["prep done!"]


def test_before_tool_may_change_what_a_sub_agent_is_told(world: World) -> None:
    hooks = Hooks(before_tool=lambda use: {"input": use.args["input"].upper()})
    script = [turn(call("delegate_cook", input="soup")), "soup", "done"]
    world.execute(script, agent=Agent("bot", "bot", subagents=[Agent("cook", "cook")]), hooks=hooks)
    assert dump(world.model.calls[1].messages)[1]["content"] == "SOUP"


def test_a_provider_that_fails_is_not_seen_by_after_model(world: World) -> None:
    seen: list[Any] = []
    hooks = Hooks(after_model=seen.append)
    world.crash([{"error": "the model died"}], hooks=hooks)
    assert seen == []
    assert world.resume(["done"], hooks=hooks).text == "done"
    assert [response.content for response in seen] == ["done"]
    assert isinstance(world.model, ScriptedModel)
