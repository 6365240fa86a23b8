"""What a run may use up: counted over crashes, pauses and forks, and a larger budget goes on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rules_kit import Data, Killed, World, asks, call, check_transcript, kinds, turn

from lousho_cli import Agent, ConfigurationError, Event
from lousho_cli.execution import budget as budgets
from lousho_cli.testing import ScriptedModel

TEN = {"usage": {"input_tokens": 8, "output_tokens": 2, "cost_usd": 0.5}}
UNKNOWN = {"usage": {"input_tokens": 8, "output_tokens": 2}}


@pytest.fixture(params=("memory", "file"))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    world = World(request.param, tmp_path)
    world.tools = [world.ledger.tool("a"), world.ledger.tool("g", needs_approval=True)]
    return world


def step(n: int, **usage: Any) -> Data:
    return {**turn(call("a", f"a{n}")), **(usage or TEN)}


@pytest.mark.parametrize(
    ("limit", "steps"),
    [({"max_tokens": 25}, 3), ({"max_tokens": 20}, 2), ({"max_cost_usd": 0.9}, 2), ({"max_steps": 2}, 2)],
)
def test_a_run_that_has_used_up_its_budget_stops_before_tools_run_and_can_go_on(
    world: World, limit: Data, steps: int
) -> None:
    events: list[Event] = []
    stopped = world.execute([step(n) for n in range(9)], budget=limit, on_event=events.append)
    assert (stopped.finish_reason, stopped.steps, world.ledger.runs("a")) == (
        "budget-exceeded", steps, steps - 1,
    )  # fmt: skip
    assert (world.load().status, world.load().finish_reason) == ("in-progress", "budget-exceeded")
    check_transcript(world.load().messages, open_end=True)
    assert [event.type for event in events][-2:] == ["budget.exceeded", "run.done"]
    assert (list(events[-2].data["budget"].values()), len(events[-2].data["exceeded"])) == (
        list(limit.values()), 1,
    )  # fmt: skip
    assert world.resume(["never"]).finish_reason == "budget-exceeded"
    assert world.model.calls == []
    larger = dict.fromkeys(limit, 100)
    done = world.resume([{"text": "done", **TEN}], budget=larger)
    assert (done.finish_reason, done.steps, world.ledger.runs("a")) == ("stop", steps + 1, steps)
    assert done.usage.total_tokens == 10 * (steps + 1)


def test_an_answer_counts_even_if_it_exceeds_the_budget(world: World) -> None:
    assert world.execute([{"text": "done", **TEN}], budget={"max_tokens": 1}).finish_reason == "stop"


def test_the_next_run_has_a_budget_of_its_own(world: World) -> None:
    done = world.execute([step(1), {"text": "done", **TEN}], budget={"max_tokens": 15})
    assert done.finish_reason == "stop"
    done = world.execute([step(2), {"text": "done", **TEN}], "more", budget={"max_tokens": 15})
    assert (done.finish_reason, done.usage.total_tokens) == ("stop", 20)


def test_what_was_used_before_a_crash_counts(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1)]
    world.crash([step(1)], budget={"max_tokens": 15})
    stopped = world.resume([step(2), step(3)])
    assert (stopped.finish_reason, stopped.steps) == ("budget-exceeded", 2)


def test_a_fork_counts_what_was_used_up_to_there(world: World) -> None:
    world.execute([step(n) for n in range(9)], budget={"max_tokens": 30})
    fork = world.fork(from_step=1)
    stopped = world.resume([step(n) for n in range(20, 29)], session=fork.session_id)
    assert (stopped.finish_reason, stopped.steps) == ("budget-exceeded", 3)


def test_a_call_that_a_human_approved_runs_whatever_the_budget(world: World) -> None:
    paused = world.execute([{**asks("g"), **TEN}], budget={"max_tokens": 5})
    assert paused.finish_reason == "awaiting-approval"
    stopped = world.decide(paused.approval_id, ["never"])
    assert (stopped.finish_reason, world.ledger.runs("g")) == ("budget-exceeded", 1)
    done = world.resume(["done"], budget={"max_tokens": 50})
    assert (done.finish_reason, world.ledger.runs("g"), kinds(done.messages)) == ("stop", 1, [None])


def test_a_failed_request_that_was_paid_for_uses_up_the_budget(world: World) -> None:
    paid = {"error": {"status": 503, "usage": {"input_tokens": 8, "output_tokens": 2}}}
    stopped = world.execute([paid, paid, "never"], budget={"max_tokens": 20}, retries={"base_seconds": 0})
    assert (stopped.finish_reason, len(world.model.calls)) == ("budget-exceeded", 2)


def test_seconds_are_summed_over_resumes_and_do_not_pass_between_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(budgets, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def later(request: Any) -> Data:
        now[0] += 4
        return step(int(now[0]))

    stopped = world.execute([later] * 9, budget={"max_seconds": 10, "max_steps": 2})
    assert (stopped.finish_reason, stopped.steps) == ("budget-exceeded", 2)
    now[0] += 1000
    stopped = world.resume([later] * 9, budget={"max_steps": 9})
    assert (stopped.finish_reason, stopped.steps) == ("budget-exceeded", 3)
    now[0] += 1000
    assert world.resume(["done"], budget={"max_seconds": 13}).finish_reason == "stop"


def test_a_cost_that_is_not_known_is_said_once_and_what_is_known_counts(world: World) -> None:
    events: list[Event] = []
    stopped = world.execute(
        [step(1, **UNKNOWN), step(2), step(3, **UNKNOWN), step(4), step(5)],
        budget={"max_cost_usd": 1.0},
        on_event=events.append,
    )
    assert (stopped.finish_reason, stopped.steps) == ("budget-exceeded", 4)
    assert (stopped.usage.cost_usd, stopped.usage.known_cost_usd) == (None, 1.0)
    assert [event.type for event in events].count("budget.unpriced") == 1


def test_sub_agents_use_up_the_budget_of_their_lead(world: World) -> None:
    cook = Agent("cook", "cook", [world.ledger.tool("stir")])
    lead = Agent("bot", "be brief", world.tools, subagents=[cook], budget={"max_tokens": 35})
    inside = [{**turn(call("stir", f"s{n}")), **TEN} for n in range(9)]
    first = {**turn(call("a", "a1"), call("delegate_cook", "d1", input="soup")), **TEN}
    stopped = world.execute([first, *inside], agent=lead)
    assert (stopped.finish_reason, world.ledger.counts()) == ("budget-exceeded", {"a": 1, "stir": 2})
    assert len(world.model.calls) == 4
    rest = [{"text": "soup", **TEN}, {"text": "done", **TEN}]
    done = world.resume(rest, agent=lead, budget={"max_tokens": 1000})
    assert (done.text, world.ledger.counts()) == ("done", {"a": 1, "stir": 3})
    assert done.usage.total_tokens == 60


@pytest.mark.parametrize(
    "at", ["step.start", "checkpoint.saved", "tool.done", "step.done", "budget.exceeded"]
)
def test_a_crash_anywhere_around_the_end_of_a_budget_changes_nothing(world: World, at: str) -> None:
    def die(event: Event) -> None:
        if event.type == at:
            raise Killed

    script = ScriptedModel([lambda request: step(sum(m.role == "assistant" for m in request.messages))] * 40)
    for _ in range(8):
        try:
            world.execute(provider=script, budget={"max_tokens": 20}, on_event=die)
        except Killed:
            continue
    stopped = world.resume(provider=script)
    assert (stopped.finish_reason, stopped.steps, world.ledger.runs("a")) == ("budget-exceeded", 2, 1)
    check_transcript(stopped.messages, open_end=True)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"max_token": 1}, "unknown key"),
        ({"max_cost_usd": True}, "is True"),
    ],
)
def test_an_impossible_budget_is_refused(world: World, limit: Data, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        world.execute(["never"], budget=limit)
    assert world.history() == []
