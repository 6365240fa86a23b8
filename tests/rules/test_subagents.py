"""Sub-agents: they pause, crash and go on inside their lead's run (R3.14)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import rules_kit
from rules_kit import (
    Data,
    Killed,
    Killer,
    KillingApprovals,
    KillingCheckpoints,
    World,
    asks,
    call,
    check_sent,
    check_transcript,
    dump,
    kinds,
    results,
    said,
    turn,
)

from lousho_cli import (
    Agent,
    Cancel,
    Checkpoint,
    ConfigurationError,
    Event,
    ForkPatch,
    KVStore,
    MemoryStore,
    SDKError,
    SessionAwaitingApprovalError,
    Tool,
    ToolContext,
    tool,
)
from lousho_cli.execution.executor import resume_after_approval
from lousho_cli.testing import ScriptedModel

POLICIES = ("warn", "error", "ignore")
DEAD: Data = {"error": "the model died"}


class Team(World):
    """A world whose agent `bot` may delegate. An agent's instructions are its name.

    Attributes:
        crew: makes the agents that `bot` may delegate to, anew for each life.
        asked: which turn of which agent the model was asked for.
    """

    def __init__(self, kind: str, path: Path) -> None:
        super().__init__(kind, path)
        self.crew: Callable[[], Sequence[Agent]] = tuple
        self.asked: list[tuple[str, int]] = []

    def agent(self) -> Agent:
        return Agent("bot", "bot", self.tools, subagents=self.crew())

    def speaks(self, **turns: Sequence[Any]) -> list[Any]:
        """A script in which each agent says its own turns, in any life."""

        def answer(request: Any) -> Any:
            who = str(request.messages[0].content)
            number = sum(message.role == "assistant" for message in request.messages)
            self.asked.append((who, number))
            return turns[who][number]

        return [answer] * 40

    def has_crew(self, *members: tuple[str, Sequence[Tool]], **options: Any) -> None:
        self.crew = lambda: [Agent(name, name, tools, **options) for name, tools in members]

    def elsewhere(self) -> Team:
        """The same team in another process: another store object, where the store outlives a process."""
        other = Team(self.kind, self.path)
        if self.kind in ("memory", "kv"):
            other.store = self.store
            other.checkpoints, other.approvals = self.store.checkpoints, self.store.approvals
        other.ledger, other.tools, other.crew, other.asked = self.ledger, self.tools, self.crew, self.asked
        return other

    def elsewhere_without_checkpoints(self) -> Team:
        other = self.elsewhere()
        other.checkpoints = None
        return other

    def waiting(self) -> list[Any]:
        return list(asyncio.run(self.store.approvals.list()))


@pytest.fixture(params=rules_kit.KINDS)
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Team:
    return Team(request.param, tmp_path)


@pytest.fixture
def kitchen(team: Team) -> Team:
    """`bot` may delegate to `cook`, who has the free tools `prep` and `serve` and the gated `fire`."""
    ledger = team.ledger
    team.tools = [ledger.tool("a"), ledger.tool("b")]
    tools = [ledger.tool("prep"), ledger.tool("fire", needs_approval=True), ledger.tool("serve")]
    team.has_crew(("cook", tools))
    return team


def delegate(agent: str, id: str | None = None, task: str = "please") -> Data:
    return call(f"delegate_{agent}", id, input=task)


COOKING: dict[str, Sequence[Any]] = {
    "bot": [turn(call("a"), delegate("cook"), call("b")), "done"],
    "cook": [asks("prep", "fire", "serve"), "soup"],
}
COOKED = {"call_a": "a done", "call_delegate_cook": "soup", "call_b": "b done"}


def test_a_sub_agents_reply_is_the_result_of_its_call(team: Team) -> None:
    team.has_crew(("cook", [team.ledger.tool("prep")]))
    done = team.execute(
        team.speaks(bot=[turn(delegate("cook", task="a soup")), "done"], cook=[asks("prep"), "soup"])
    )
    assert done.text == "done"
    assert results(done.messages) == {"call_delegate_cook": "soup"}
    assert team.asked == [("bot", 0), ("cook", 0), ("cook", 1), ("bot", 1)]
    assert [message["content"] for message in dump(team.model.calls[1].messages)] == ["cook", "a soup"]
    assert [each.name for each in team.model.calls[0].tools] == ["delegate_cook"]
    assert [each.name for each in team.model.calls[1].tools] == ["prep"]
    check_sent(team.model)


@pytest.mark.parametrize("args", [{}, {"input": ""}, {"input": 3}, {"input": "x", "more": 1}], ids=str)
def test_a_call_without_a_task_does_not_run_the_sub_agent(team: Team, args: Data) -> None:
    team.has_crew(("cook", []))
    done = team.execute(team.speaks(bot=[turn(call("delegate_cook", **args)), "done"], cook=["never"]))
    assert kinds(done.messages) == ["invalid-arguments"]
    assert ("cook", 0) not in team.asked


def test_a_gated_call_inside_pauses_the_lead_and_the_decision_goes_on_there(kitchen: Team) -> None:
    script = kitchen.speaks(**COOKING)
    paused = kitchen.execute(script, tool_concurrency=1)
    assert paused.finish_reason == "awaiting-approval"
    assert (kitchen.load().status, kitchen.load().approval_id) == ("awaiting-approval", paused.approval_id)
    (stored,) = kitchen.waiting()
    for pending in (paused.approval, stored.pending):
        assert pending is not None
        assert (pending.tool_name, pending.args, pending.subagent) == ("fire", {"n": 0}, ["cook"])
        assert (pending.session_id, pending.agent) == ("s1", "bot")
    assert kitchen.ledger.counts() == {"a": 1, "prep": 1}
    with pytest.raises(SessionAwaitingApprovalError):
        kitchen.execute(script, "hurry up")

    done = kitchen.decide(paused.approval_id, script)
    assert (done.text, results(done.messages)) == ("done", COOKED)
    assert kitchen.ledger.counts() == {"a": 1, "prep": 1, "fire": 1, "serve": 1, "b": 1}
    assert kitchen.asked == [("bot", 0), ("cook", 0), ("cook", 1), ("bot", 1)]
    assert kitchen.waiting() == []
    check_sent(kitchen.model)


def test_a_decision_goes_on_in_another_process(kitchen: Team) -> None:
    script = kitchen.speaks(**COOKING)
    paused = kitchen.execute(script)
    there = kitchen.elsewhere()
    there.record_only(paused.approval_id)
    done = there.elsewhere().resume(script)
    assert (done.text, results(done.messages)) == ("done", COOKED)
    assert set(kitchen.ledger.counts().values()) == {1}
    assert len(kitchen.asked) == 4


def test_a_rejection_inside_is_read_by_the_sub_agent(kitchen: Team) -> None:
    script = kitchen.speaks(**COOKING)
    paused = kitchen.execute(script)
    done = kitchen.decide(paused.approval_id, script, approved=False, note="no gas")
    assert results(done.messages) == COOKED
    assert kitchen.ledger.runs("fire") == 0
    (request,) = [r for r in kitchen.model.calls if r.messages[0].content == "cook"]
    assert kinds(request.messages) == [None, "rejected", None]
    rejected = dump(request.messages)[4]
    assert json.loads(rejected["content"])["note"] == "no gas"


def test_edited_arguments_inside_are_what_runs(team: Team) -> None:
    fired: list[int] = []

    @tool(needs_approval=True)
    def fire(heat: int) -> str:
        "fire"
        fired.append(heat)
        return "fired"

    team.has_crew(("cook", [fire]))
    script = team.speaks(bot=[turn(delegate("cook")), "done"], cook=[turn(call("fire", heat=9)), "soup"])
    paused = team.execute(script)
    with pytest.raises(ConfigurationError, match="do not fit fire") as refused:
        team.decide(paused.approval_id, script, arguments={"heat": "high"})
    assert refused.value.code == "LOUSHO_TOOL_ARGS_INVALID"
    assert [each.pending.id for each in team.waiting()] == [paused.approval_id]
    done = team.decide(paused.approval_id, script, arguments={"heat": 5})
    assert (fired, results(done.messages)) == ([5], {"call_delegate_cook": "soup"})


def test_a_result_supplied_inside_stands_for_the_call(kitchen: Team) -> None:
    script = kitchen.speaks(**COOKING)
    paused = kitchen.execute(script)
    done = kitchen.decide(paused.approval_id, script, result="fired by hand")
    assert results(done.messages) == COOKED
    assert kitchen.ledger.runs("fire") == 0
    (request,) = [r for r in kitchen.model.calls if r.messages[0].content == "cook"]
    assert list(results(request.messages).values()) == ["prep done", "fired by hand", "serve done"]


@pytest.fixture
def nested(team: Team) -> Team:
    """`bot` delegates to `cook`, who delegates to `maid`, who has the gated tool `buy`."""
    team.tools = [team.ledger.tool("a")]
    team.crew = lambda: [
        Agent(
            "cook", "cook", [team.ledger.tool("prep")],
            subagents=[Agent("maid", "maid", [team.ledger.tool("buy", needs_approval=True)])],
        )
    ]  # fmt: skip
    return team


ERRANDS: dict[str, Sequence[Any]] = {
    "bot": [turn(call("a"), delegate("cook")), "done"],
    "cook": [turn(call("prep"), delegate("maid")), "soup"],
    "maid": [turn(call("buy", "buy_1"), call("buy", "buy_2")), "bought"],
}


def test_pauses_two_levels_down_go_on_there_each(nested: Team) -> None:
    script = nested.speaks(**ERRANDS)
    first = nested.execute(script)
    assert first.approval is not None
    assert first.approval.subagent == ["cook", "maid"]
    second = nested.elsewhere().decide(first.approval_id, script)
    assert second.approval is not None
    assert (second.approval.subagent, second.approval.tool_name) == (["cook", "maid"], "buy")
    assert second.approval_id != first.approval_id
    assert second.approval.tool_call_id != first.approval.tool_call_id
    done = nested.elsewhere().decide(second.approval_id, script, approved=False)
    assert (done.text, results(done.messages)["call_delegate_cook"]) == ("done", "soup")
    assert nested.ledger.counts() == {"a": 1, "prep": 1, "buy": 1}
    assert nested.asked == [(who, n) for who, n in [
        ("bot", 0), ("cook", 0), ("maid", 0), ("maid", 1), ("cook", 1), ("bot", 1)]]  # fmt: skip


@pytest.mark.parametrize("concurrency", [1, 8])
def test_several_paused_sub_agents_of_one_turn_are_decided_one_after_another(
    team: Team, concurrency: int
) -> None:
    team.has_crew(*((name, [team.ledger.tool(f"{name}_go", needs_approval=True)]) for name in ("one", "two")))
    calls = turn(delegate("two", "d1"), delegate("one", "d2"), delegate("two", "d3"))
    script = team.speaks(
        bot=[calls, "done"], one=[asks("one_go"), "one done"], two=[asks("two_go"), "two done"]
    )
    result = team.execute(script, tool_concurrency=concurrency)
    seen = []
    for approved in (True, False, True):
        assert result.approval is not None
        assert [each.pending.id for each in team.waiting()] == [result.approval_id]
        seen.append(result.approval.subagent)
        result = team.elsewhere().decide(
            result.approval_id, script, approved, options={"tool_concurrency": concurrency}
        )
    assert seen == [["two"], ["one"], ["two"]]
    assert results(result.messages) == {"d1": "two done", "d2": "one done", "d3": "two done"}
    assert team.ledger.counts() == {"two_go": 2}
    assert sorted(team.asked) == sorted(
        [("bot", 0), ("bot", 1), ("one", 0), ("one", 1), *[("two", 0), ("two", 1)] * 2]
    )


class Fatal(Killer):
    """After the n-th write nothing of this process arrives any more."""

    dead = False

    def writes(self) -> Iterator[None]:
        if self.dead:
            raise Killed("dead already")
        try:
            yield from super().writes()
        except Killed:
            self.dead = True
            raise


def live_through(team: Team, script: list[Any], concurrency: int) -> set[str]:
    """Run, resume and approve until the session is finished; returns the approvals given."""
    approved: set[str] = set()
    waiting: str | None = None
    for _ in range(20):
        try:
            if waiting is not None:
                approved.add(waiting)
                result = team.decide(waiting, script, options={"tool_concurrency": concurrency})
            else:
                result = team.execute(script, tool_concurrency=concurrency)
            waiting = result.approval_id
        except Killed:
            team.checkpoints, team.approvals = team.store.checkpoints, team.store.approvals
            waiting = None
        except SessionAwaitingApprovalError as error:
            waiting = error.approval_id
        stored = asyncio.run(team.store.checkpoints.load("s1"))
        if stored is not None and stored.status == "finished":
            return approved
    raise AssertionError("it never ends")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("kind", "concurrency"), [*((kind, 1) for kind in rules_kit.KINDS), ("memory", 8)])
def test_a_crash_at_any_write_repeats_only_what_was_running(
    tmp_path: Path, kind: str, concurrency: int, after: bool
) -> None:
    at, killed = 0, True
    while killed:
        at += 1
        team = Team(kind, tmp_path / str(at))
        team.tools = [team.ledger.tool("a")]
        buying = [team.ledger.tool("buy", needs_approval=True), team.ledger.tool("carry")]
        team.crew = lambda team=team, buying=buying: [  # type: ignore[misc]
            Agent("cook", "cook", [team.ledger.tool("prep")], subagents=[Agent("maid", "maid", buying)])
        ]
        killer = Fatal(at, after=after)
        team.checkpoints = KillingCheckpoints(team.store.checkpoints, killer)
        team.approvals = KillingApprovals(team.store.approvals, killer)
        script = team.speaks(**{**ERRANDS, "maid": [asks("buy", "carry"), "bought"]})
        approved = live_through(team, script, concurrency)
        done = team.load()
        killed = killer.dead
        where = f"write {at}"
        assert results(done.messages) == {"call_a": "a done", "call_delegate_cook": "soup"}, where
        assert said(done.messages) == ["go"], where
        check_transcript(done.messages)
        assert team.ledger.runs("buy") <= len(approved), where
        doubtful = 1 if killed and concurrency == 1 else 2 * killed
        assert sum(team.ledger.counts().values()) <= 4 + doubtful, f"{where}: {team.ledger.counts()}"
        assert len(team.asked) <= 6 + (1 if killed else 0), f"{where}: {team.asked}"
    assert at > 10


def test_the_same_decision_again_goes_on_after_a_crash_on_its_way_inside(kitchen: Team) -> None:
    """A decision that is not consumed yet may be given again (R3.4)."""
    script = kitchen.speaks(**COOKING)
    paused = kitchen.execute(script)
    # The decision is recorded, and the one save that takes it in is not made.
    kitchen.checkpoints = KillingCheckpoints(kitchen.store.checkpoints, Fatal(1, after=False))
    with pytest.raises(Killed):
        kitchen.decide(paused.approval_id, script)
    kitchen.checkpoints = kitchen.store.checkpoints
    (stored,) = asyncio.run(kitchen.store.approvals.list(status=None))
    assert stored.status == "approved"
    with pytest.raises(SDKError, match="approved by"):
        kitchen.decide(paused.approval_id, script, approved=False)
    done = kitchen.decide(paused.approval_id, script)
    assert (done.text, kitchen.ledger.runs("fire")) == ("done", 1)


def test_a_sub_agents_pause_without_an_approval_store_is_a_clear_error(kitchen: Team) -> None:
    script = kitchen.speaks(**COOKING)
    with pytest.raises(ConfigurationError) as missing:
        kitchen.execute(script, approval_store=None)
    assert missing.value.code == "LOUSHO_APPROVAL_STORE_MISSING"
    assert kitchen.ledger.runs("fire") == 0
    assert kitchen.resume(script).finish_reason == "awaiting-approval"


def test_a_half_made_pause_without_an_approval_store_is_a_clear_error(kitchen: Team) -> None:
    script = kitchen.speaks(bot=[turn(delegate("cook")), "done"], cook=[asks("fire"), "soup"])
    # The writes: input, turn, and inside: input, turn, pause. The lead's own pause never was written.
    kitchen.checkpoints = KillingCheckpoints(kitchen.store.checkpoints, Fatal(5, after=True))
    with pytest.raises(Killed):
        kitchen.execute(script)
    kitchen.checkpoints = kitchen.store.checkpoints
    with pytest.raises(ConfigurationError) as missing:
        kitchen.resume(script, approval_store=None)
    assert missing.value.code == "LOUSHO_APPROVAL_STORE_MISSING"
    assert kitchen.resume(script).finish_reason == "awaiting-approval"


def changed(team: Team, level: str) -> Callable[[], Sequence[Agent]]:
    """Today's crew of `nested`, other in its instructions at one level."""
    buy = team.ledger.tool("buy", needs_approval=True)
    cook = "cook, louder" if level == "cook" else "cook"
    maid = "maid, louder" if level == "maid" else "maid"
    prep = team.ledger.tool("prep")
    return lambda: [Agent("cook", cook, [prep], subagents=[Agent("maid", maid, [buy])])]


CHANGES = {
    "cook": "sub-agent cook: instructions changed",
    "maid": "sub-agent cook: sub-agent maid: instructions changed",
}


@pytest.mark.parametrize("level", CHANGES)
def test_drift_at_a_paused_level_is_refused_under_error(nested: Team, level: str) -> None:
    script = nested.speaks(**ERRANDS)
    paused = nested.execute(script)
    before, crew = nested.load(), nested.crew
    nested.crew = changed(nested, level)
    with pytest.raises(SDKError, match="instructions changed") as refused:
        nested.decide(paused.approval_id, script, options={"on_agent_drift": "error"})
    assert refused.value.code == "LOUSHO_AGENT_DRIFT"
    assert nested.load() == before
    assert [each.status for each in nested.waiting()] == ["pending"]
    assert nested.ledger.counts() == {"a": 1, "prep": 1}
    nested.crew = crew
    assert nested.decide(paused.approval_id, script).finish_reason == "awaiting-approval"


@pytest.mark.parametrize("level", CHANGES)
def test_drift_at_a_paused_level_is_told_under_warn(
    nested: Team, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    script = nested.speaks(**ERRANDS)
    paused = nested.execute(script)
    nested.crew = changed(nested, level)
    events: list[Event] = []
    with caplog.at_level(logging.WARNING):
        again = nested.decide(paused.approval_id, script, options={"on_event": events.append})
    assert again.finish_reason == "awaiting-approval"
    told = [event.data["changes"] for event in events if event.type == "agent.drift"]
    assert told == [[CHANGES[level]]]
    assert CHANGES[level] in caplog.text


@pytest.mark.parametrize("level", CHANGES)
def test_drift_at_a_paused_level_is_no_matter_under_ignore(
    nested: Team, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    script = nested.speaks(**ERRANDS)
    paused = nested.execute(script)
    nested.crew = changed(nested, level)
    again = nested.decide(paused.approval_id, script, options={"on_agent_drift": "ignore"})
    assert again.finish_reason == "awaiting-approval"
    assert caplog.text == ""


def test_drift_inside_is_refused_on_a_resume_after_a_crash(team: Team) -> None:
    prep = team.ledger.tool("prep", dies=1)
    team.has_crew(("cook", [prep]))
    script = team.speaks(bot=[turn(delegate("cook")), "done"], cook=[asks("prep"), "soup"])
    team.crash(script)
    before = team.load()
    team.crew = lambda: [Agent("cook", "cook", [prep], model="another")]
    with pytest.raises(SDKError, match="model was scripted, is another") as refused:
        team.resume(script, on_agent_drift="error")
    assert refused.value.code == "LOUSHO_AGENT_DRIFT"
    assert team.load() == before
    assert team.resume(script).text == "done"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_missing_tool_inside_leaves_the_request_undecided(kitchen: Team, policy: str) -> None:
    script = kitchen.speaks(**COOKING)
    paused = kitchen.execute(script)
    before = kitchen.load()
    kitchen.has_crew(("cook", [kitchen.ledger.tool("prep"), kitchen.ledger.tool("serve")]))
    with pytest.raises(SDKError, match="'fire'") as refused:
        kitchen.decide(paused.approval_id, script, options={"on_agent_drift": policy})
    assert refused.value.code == "LOUSHO_RESUME_TOOL_MISSING"
    assert kitchen.load() == before
    assert [each.status for each in kitchen.waiting()] == ["pending"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_missing_tool_inside_is_refused_on_a_resume_after_a_crash(team: Team, policy: str) -> None:
    team.tools = [team.ledger.tool("a")]
    team.has_crew(("cook", [team.ledger.tool("gone", dies=1)]))
    script = team.speaks(bot=[turn(delegate("cook"), call("a")), "done"], cook=[asks("gone"), "soup"])
    team.crash(script, tool_concurrency=1)
    before = team.load()
    team.has_crew(("cook", []))
    with pytest.raises(SDKError, match="'gone'") as refused:
        team.resume(script, on_agent_drift=policy)
    assert refused.value.code == "LOUSHO_RESUME_TOOL_MISSING"
    assert team.load() == before
    assert team.ledger.counts() == {"gone": 1}


@pytest.mark.parametrize("policy", ["warn", "ignore"])
def test_a_rejection_inside_needs_no_tool(kitchen: Team, policy: str) -> None:
    script = kitchen.speaks(**COOKING)
    paused = kitchen.execute(script)
    kitchen.has_crew(("cook", [kitchen.ledger.tool("prep"), kitchen.ledger.tool("serve")]))
    done = kitchen.decide(paused.approval_id, script, approved=False, options={"on_agent_drift": policy})
    assert results(done.messages) == COOKED
    (request,) = [r for r in kitchen.model.calls if r.messages[0].content == "cook"]
    assert kinds(request.messages) == [None, "rejected", None]


def test_an_approval_inside_a_sub_agent_that_is_gone_stays_undecided(kitchen: Team) -> None:
    """`approve` refuses what it could not carry out, or the decision would be lost (R3.4)."""
    script = kitchen.speaks(**COOKING)
    paused = kitchen.execute(script)
    before, crew = kitchen.load(), kitchen.crew
    kitchen.crew = tuple
    with pytest.raises(SDKError, match="cook") as refused:
        kitchen.decide(paused.approval_id, script)
    assert refused.value.code == "LOUSHO_RESUME_TOOL_MISSING"
    assert kitchen.load() == before
    assert [each.status for each in kitchen.waiting()] == ["pending"]
    kitchen.crew = crew
    assert results(kitchen.decide(paused.approval_id, script).messages) == COOKED


def test_a_fork_of_a_pause_inside_asks_again_for_itself(kitchen: Team) -> None:
    script = kitchen.speaks(**COOKING)
    paused = kitchen.execute(script)
    before, files = kitchen.load(), kitchen.files()
    name = kitchen.fork(from_step=1).session_id
    assert name == "s1.fork-1"
    again = kitchen.resume(script, session=name)
    assert again.approval is not None
    assert again.approval_id != paused.approval_id
    assert (again.approval.subagent, again.approval.session_id) == (["cook"], name)
    assert (kitchen.load(), kitchen.files()) == (before, files)
    assert {each.pending.session_id for each in kitchen.waiting()} == {"s1", name}

    forked = kitchen.decide(again.approval_id, script, approved=False)
    assert (forked.session_id, results(forked.messages)) == (name, COOKED)
    assert kitchen.ledger.runs("fire") == 0
    done = kitchen.decide(paused.approval_id, script)
    assert (done.session_id, results(done.messages)) == ("s1", COOKED)
    assert kitchen.ledger.counts() == {"a": 1, "prep": 1, "fire": 1, "serve": 2, "b": 1}


def test_tools_inside_a_fork_know_the_forks_session(team: Team) -> None:
    told: list[str | None] = []

    @tool(needs_approval=True)
    def fire(ctx: ToolContext) -> str:
        "fire"
        told.append(ctx.session_id)
        return "fired"

    team.has_crew(("cook", [fire]))
    script = team.speaks(bot=[turn(delegate("cook")), "done"], cook=[asks("fire"), "soup"])
    team.execute(script)
    name = team.fork(from_step=1, name="other").session_id
    again = team.resume(script, session=name)
    assert team.decide(again.approval_id, script).session_id == "other"
    assert told == ["other"]


def test_a_fork_with_a_result_for_the_paused_call_leaves_the_sub_agent(kitchen: Team) -> None:
    script = kitchen.speaks(**COOKING)
    kitchen.execute(script)
    patch = ForkPatch.of({"toolResult": {"toolCallId": "call_delegate_cook", "result": "bread"}})
    name = kitchen.fork(from_step=1, patch=patch).session_id
    done = kitchen.resume(script, session=name)
    assert results(done.messages) == {**COOKED, "call_delegate_cook": "bread"}
    assert kitchen.asked == [("bot", 0), ("cook", 0), ("bot", 1)]


def test_an_abort_stops_what_runs_inside(team: Team) -> None:
    cancel = Cancel()
    told: list[str] = []

    @tool
    async def simmer() -> str:
        "simmer"
        cancel.cancel("enough")
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.05)
            told.append("the stove is off")
        return "never"

    team.tools = [team.ledger.tool("a")]
    team.has_crew(("cook", [simmer]))
    script = team.speaks(bot=[turn(delegate("cook"), call("a")), "well, then"], cook=[asks("simmer"), "soup"])
    stopped = team.execute(script, cancel=cancel, tool_concurrency=1)
    assert stopped.finish_reason == "aborted"
    assert told == ["the stove is off"]
    assert kinds(stopped.messages) == ["cancelled", "cancelled"]
    assert "may have acted" in results(stopped.messages)["call_delegate_cook"]["error"]
    assert team.load().status == "in-progress"
    done = team.execute(script, "go on")
    assert (done.text, said(done.messages)) == ("well, then", ["go", "go on"])
    assert team.ledger.counts() == {}
    check_sent(team.model)


def test_an_abort_two_levels_down_lets_tools_end_what_they_do(team: Team) -> None:
    cancel = Cancel()
    told: list[str] = []

    @tool
    async def buy() -> str:
        "buy"
        cancel.cancel("enough")
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.05)
            told.append("left the shop")
        return "never"

    team.crew = lambda: [Agent("cook", "cook", subagents=[Agent("maid", "maid", [buy])])]
    script = team.speaks(
        bot=[turn(delegate("cook")), "well"], cook=[turn(delegate("maid"))], maid=[asks("buy")]
    )
    stopped = team.execute(script, cancel=cancel)
    assert (stopped.finish_reason, told) == ("aborted", ["left the shop"])
    assert team.resume(script).text == "well"


def test_an_abort_while_the_model_of_a_sub_agent_is_asked(kitchen: Team) -> None:
    cancel = Cancel()

    async def slow(request: Any) -> str:
        cancel.cancel("enough")
        await asyncio.sleep(30)
        return "never"

    cook = ScriptedModel([slow])
    kitchen.crew = lambda: [Agent("cook", "cook", provider=cook)]
    script = kitchen.speaks(bot=[turn(delegate("cook")), "well"])
    stopped = kitchen.execute(script, cancel=cancel)
    assert stopped.finish_reason == "aborted"
    assert kinds(stopped.messages) == ["cancelled"]
    assert kitchen.resume(script).text == "well"


def test_a_sub_agent_that_runs_out_of_steps_is_an_error_its_lead_reads(team: Team) -> None:
    team.has_crew(("cook", [team.ledger.tool("prep")]), max_steps=2)
    script = team.speaks(bot=[turn(delegate("cook")), "done"], cook=[asks("prep"), turn(call("prep", "2"))])
    done = team.execute(script)
    assert (done.text, done.finish_reason, done.steps) == ("done", "stop", 2)
    assert kinds(done.messages) == ["tool-error"]
    assert "max-steps" in results(done.messages)["call_delegate_cook"]["error"]
    assert team.ledger.runs("prep") == 2


def test_a_sub_agent_has_its_own_step_limit(team: Team) -> None:
    team.has_crew(("cook", [team.ledger.tool("prep")]))
    steps = [turn(call("prep", str(n))) for n in range(3)]
    script = team.speaks(bot=[turn(delegate("cook")), "done"], cook=[*steps, "soup"])
    done = team.execute(script, max_steps=2)
    assert (done.text, results(done.messages)) == ("done", {"call_delegate_cook": "soup"})


def test_a_failing_model_inside_ends_the_run_which_resumes_there(team: Team) -> None:
    team.has_crew(("cook", [team.ledger.tool("prep")]))
    bot: Sequence[Any] = [turn(delegate("cook")), "done"]
    team.crash(team.speaks(bot=bot, cook=[asks("prep"), DEAD]))
    assert team.load().status == "in-progress"
    done = team.resume(team.speaks(bot=bot, cook=[asks("prep"), "soup"]))
    assert (done.text, results(done.messages)) == ("done", {"call_delegate_cook": "soup"})
    assert team.ledger.runs("prep") == 1
    assert team.asked == [("bot", 0), ("cook", 0), ("cook", 1), ("cook", 1), ("bot", 1)]


def test_a_tool_that_ends_the_run_inside_runs_again_with_the_same_id(team: Team) -> None:
    team.tools = [team.ledger.tool("a")]
    team.has_crew(("cook", [team.ledger.tool("prep"), team.ledger.tool("fire", dies=1)]))
    script = team.speaks(bot=[turn(delegate("cook"), call("a")), "done"], cook=[asks("prep", "fire"), "soup"])
    team.crash(script)
    done = team.elsewhere().resume(script)
    assert done.text == "done"
    assert team.ledger.counts() == {"prep": 1, "fire": 2, "a": 1}
    assert len(set(team.ledger.ids("fire"))) == 1
    assert len(team.asked) == 4


@pytest.mark.parametrize(
    ("policy", "expected"), [("rerun", 2), ("ask", 1), ("fail", 1)], ids=["rerun", "ask", "fail"]
)
def test_a_call_interrupted_inside_follows_its_own_rule(team: Team, policy: Any, expected: int) -> None:
    team.has_crew(("cook", [team.ledger.tool("fire", on_interrupt=policy)]))
    script = team.speaks(bot=[turn(delegate("cook")), "done"], cook=[asks("fire"), "soup"])
    # The result of `fire` is the save behind: input, turn, inside input, turn and, but for rerun, start.
    team.checkpoints = KillingCheckpoints(
        team.store.checkpoints, Fatal(5 if policy == "rerun" else 6, after=False)
    )
    with pytest.raises(Killed):
        team.execute(script)
    assert team.ledger.runs("fire") == 1
    again = team.elsewhere()
    result = again.resume(script)
    if policy == "ask":
        assert result.approval is not None
        assert (result.approval.kind, result.approval.subagent) == ("interrupted", ["cook"])
        result = again.decide(result.approval_id, script, result="it burns")
    assert (result.text, team.ledger.runs("fire")) == ("done", expected)


USED: Data = {"usage": {"input_tokens": 10, "output_tokens": 1, "cost_usd": 0.5}}


def test_a_sub_agents_usage_counts_into_its_leads_once(team: Team) -> None:
    team.tools = [team.ledger.tool("a", dies=1)]
    team.has_crew(("cook", [team.ledger.tool("fire", needs_approval=True)]))
    script = team.speaks(
        bot=[turn(delegate("cook"), call("a"), **USED), {"text": "done", **USED}],
        cook=[turn(call("fire"), **USED), {"text": "soup", **USED}],
    )
    paused = team.execute(script, tool_concurrency=1)
    with pytest.raises(SDKError, match="died"):
        team.decide(paused.approval_id, script, options={"tool_concurrency": 1})
    done = team.resume(script)
    usage = done.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (40, 4, 44)
    assert (usage.model_calls, usage.cost_usd) == (4, 2.0)
    assert team.load().usage == usage
    assert done.steps == 2


def test_the_usage_of_a_stopped_sub_agent_is_not_lost(team: Team) -> None:
    cancel = Cancel()
    team.has_crew(("cook", [team.ledger.tool("stop", cancel.cancel)]))
    script = team.speaks(bot=[turn(delegate("cook"), **USED)], cook=[turn(call("stop"), **USED)])
    stopped = team.execute(script, cancel=cancel)
    assert stopped.finish_reason == "aborted"
    assert (stopped.usage.input_tokens, stopped.usage.model_calls) == (20, 2)


@tool
def add(ctx: ToolContext, key: str) -> str:
    "Note a key in the business state."
    ctx.business_state = {**ctx.business_state, key: ctx.agent}
    return "added"


def test_business_state_flows_into_a_sub_agent_and_back(team: Team) -> None:
    team.tools = [add]
    team.has_crew(("cook", [add]))
    script = team.speaks(
        bot=[turn(call("add", key="first")), turn(delegate("cook")), turn(call("add", key="last")), "x"],
        cook=[turn(call("add", key="inside")), "soup"],
    )
    done = team.execute(script, business_state={})
    assert team.load().business_state == {"first": "bot", "inside": "cook", "last": "bot"}
    assert done.text == "x"


def test_a_sub_agent_that_changes_no_business_state_undoes_no_siblings_change(team: Team) -> None:
    team.tools = [add]
    team.has_crew(("cook", [team.ledger.tool("prep")]))
    script = team.speaks(
        bot=[turn(delegate("cook"), call("add", key="mine")), "done"], cook=[asks("prep"), "soup"]
    )
    team.execute(script, business_state={"start": True})
    assert team.load().business_state == {"start": True, "mine": "bot"}


def test_business_state_given_on_a_resume_is_not_undone_by_a_paused_sub_agent(kitchen: Team) -> None:
    script = kitchen.speaks(**COOKING)
    paused = kitchen.execute(script, business_state={"heat": 1})
    kitchen.decide(paused.approval_id, script, options={"business_state": {"heat": 2}})
    assert kitchen.load().business_state == {"heat": 2}


def test_events_tell_which_sub_agent_they_come_from(nested: Team) -> None:
    events: list[Event] = []
    script = nested.speaks(**ERRANDS)
    paused = nested.execute(script, on_event=events.append)
    heard = {event.path for event in events}
    assert heard == {(), ("cook",), ("cook", "maid")}
    assert {event.session_id for event in events} == {"s1"}
    (asked,) = [event for event in events if event.type == "approval.requested"]
    assert asked.path == ()
    assert asked.data["approval"]["subagent"] == ["cook", "maid"]
    inside = [event for event in events if event.path == ("cook", "maid")]
    assert [event.type for event in inside if event.type.startswith("run.")] == ["run.start", "run.done"]
    assert inside[-1].data["finishReason"] == "awaiting-approval"
    assert inside[0].to_json()["path"] == ["cook", "maid"]
    events.clear()
    nested.decide(paused.approval_id, script, options={"on_event": events.append})
    started = [(event.path, event.data["toolName"]) for event in events if event.type == "tool.start"]
    assert started == [((), "delegate_cook"), (("cook",), "delegate_maid"), (("cook", "maid"), "buy")]
    for event in events:
        json.dumps(event.to_json(), allow_nan=False)


def test_call_ids_inside_never_meet_those_of_the_lead(team: Team) -> None:
    team.tools = [team.ledger.tool("a")]
    team.has_crew(("cook", [team.ledger.tool("prep")]))
    same = "call_0"
    script = team.speaks(
        bot=[
            turn(call("a", same), delegate("cook", "call_1")),
            turn(call("a", same), delegate("cook", "call_1")),
            "done",
        ],
        cook=[turn(call("prep", same), call("prep", "call_1")), "soup"],
    )
    done = team.execute(script)
    ids = [line[1] for line in team.ledger.lines]
    assert len(ids) == 6
    assert len(set(ids)) == 6
    delegated = [each.id for each in done.tool_calls if each.name == "delegate_cook"]
    assert not set(ids) & set(delegated)
    check_transcript(done.messages)
    check_sent(team.model)


def test_without_a_store_a_pause_inside_goes_on_from_its_request(kitchen: Team) -> None:
    script = kitchen.speaks(**COOKING)
    kitchen.checkpoints = None
    paused = kitchen.execute(script, session=None)
    assert paused.approval is not None
    assert paused.approval.subagent == ["cook"]
    done = kitchen.elsewhere_without_checkpoints().decide(paused.approval_id, script)
    assert (done.text, results(done.messages)) == ("done", COOKED)
    assert set(kitchen.ledger.counts().values()) == {1}
    assert len(kitchen.asked) == 4


def test_a_decision_without_the_checkpoint_store_leaves_the_session_as_it_is(kitchen: Team) -> None:
    script = kitchen.speaks(**COOKING)
    paused = kitchen.execute(script)
    before = kitchen.load()
    done = kitchen.elsewhere_without_checkpoints().decide(paused.approval_id, script)
    assert (done.text, results(done.messages)) == ("done", COOKED)
    assert kitchen.load() == before
    assert set(kitchen.ledger.counts().values()) == {1}


def test_without_the_agent_an_approval_inside_is_refused(kitchen: Team) -> None:
    """`resume_after_approval` needs no agent, but it cannot guess sub-agents."""
    paused = kitchen.execute(kitchen.speaks(**COOKING))
    decision = {"id": paused.approval_id, "approved": True}
    with pytest.raises(SDKError, match="cook"):
        asyncio.run(
            resume_after_approval(
                decision, kitchen.approvals, None, ScriptedModel(["x"]), None, kitchen.checkpoints
            )
        )
    assert [each.status for each in kitchen.waiting()] == ["pending"]


class ThreeMethods:
    """The smallest checkpoint store, somewhere that takes a moment to reach."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    async def save(self, session_id: str, checkpoint: Checkpoint) -> None:
        text = checkpoint.model_dump_json(by_alias=True, exclude_none=True)
        await asyncio.sleep(0.001)
        self.texts[session_id] = text

    async def load(self, session_id: str) -> Checkpoint | None:
        text = self.texts.get(session_id)
        return None if text is None else Checkpoint.model_validate_json(text)

    async def delete(self, session_id: str, *, keep_history: bool = False) -> None:
        self.texts.pop(session_id, None)


class FarKV(rules_kit.DictKV):
    """A KV that takes a moment to reach."""

    async def put(self, key: str, value: str, *, ttl: float | None = None) -> None:
        await asyncio.sleep(0.001)
        await super().put(key, value, ttl=ttl)

    async def put_if(self, key: str, value: str, expected: str | None, *, ttl: float | None = None) -> bool:
        await asyncio.sleep(0.001)
        return await super().put_if(key, value, expected, ttl=ttl)


FAR: dict[str, Callable[[], Any]] = {
    "three methods": ThreeMethods,
    "kv": lambda: KVStore(FarKV()).checkpoints,
}


@pytest.fixture(params=FAR)
def far(request: pytest.FixtureRequest, tmp_path: Path) -> Team:
    """A team whose checkpoints lie in a store that other tasks do not wait for."""
    team = Team("memory", tmp_path)
    team.approvals = MemoryStore().approvals
    team.checkpoints = FAR[request.param]()
    return team


def test_a_far_store_keeps_a_pause_inside(far: Team) -> None:
    far.tools = [far.ledger.tool("a"), far.ledger.tool("b")]
    tools = [far.ledger.tool("prep"), far.ledger.tool("fire", needs_approval=True), far.ledger.tool("serve")]
    far.has_crew(("cook", tools))
    script = far.speaks(**COOKING)
    paused = far.execute(script, tool_concurrency=1)
    done = far.decide(paused.approval_id, script, options={"tool_concurrency": 1})
    assert (done.text, results(done.messages)) == ("done", COOKED)
    assert set(far.ledger.counts().values()) == {1}
    assert len(far.asked) == 4


def test_sub_agents_that_run_side_by_side_lose_none_of_each_others_saves(far: Team) -> None:
    names = ("one", "two", "three")
    far.tools = [far.ledger.tool("a")]
    far.has_crew(
        *((name, [far.ledger.tool(f"{name}_1"), far.ledger.tool(f"{name}_2", dies=1)]) for name in names)
    )
    turns = {name: [asks(f"{name}_1"), asks(f"{name}_2"), f"{name} done"] for name in names}
    script = far.speaks(bot=[turn(*map(delegate, names), call("a")), "done"], **turns)
    far.crash(script)
    done = far.resume(script)
    assert results(done.messages) == {
        **{f"call_delegate_{name}": f"{name} done" for name in names}, "call_a": "a done"
    }  # fmt: skip
    assert far.ledger.counts() == {"a": 1, **{f"{n}_1": 1 for n in names}, **{f"{n}_2": 2 for n in names}}
    assert sorted(far.asked) == sorted(
        [("bot", 0), ("bot", 1), *[(name, n) for name in names for n in range(3)]]
    )
    saved = json.loads(asyncio.run(far.checkpoints.load("s1")).model_dump_json(by_alias=True))
    assert saved["engine"]["seq"] >= 15, "saves share a number"
