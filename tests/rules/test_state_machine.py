"""Random lives of sessions against a small model of what may happen to them (R3.5).

A life is a list of runs, decisions and forks, any of which may be killed at any write, be aborted at any
event, or be ended by a dying tool. After each of them every session is checked, and in the end every session
must be able to finish.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import rules_kit
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from rules_kit import (
    Data,
    Killed,
    Killer,
    KillingApprovals,
    KillingCheckpoints,
    World,
    check_transcript,
    dump,
    engine,
    queued,
    said,
    turn,
)

from lousho_cli import (
    ApprovalDecision,
    Cancel,
    Event,
    ExecutionResult,
    ForkPatch,
    PropagatingToolError,
    SDKError,
    SessionAwaitingApprovalError,
    ToolContext,
    tool,
)
from lousho_cli.execution.triggers import POINTS, watching

MARKED = {"gated", "ask", "fail"}
EDITED = 9
NAMES = ("free", "slow", "dies", "raises", *sorted(MARKED))


@st.composite
def model_calls(draw: st.DrawFn) -> Data:
    name = draw(st.sampled_from([*NAMES, "gated", "nope"]))
    args = draw(st.sampled_from(['{"n":1}', '{"n":2}', "{}"] * 3 + ['{"n":"x"}', "{", ""]))
    return {"name": name, "args": args, "id": draw(st.sampled_from(["", "call_0", "call_1", "fresh"]))}


def _deaths(name: str, n: int) -> int:
    """How many runs of a call die."""
    if name == "dies":
        return 1
    return {2: 1, EDITED: 2}.get(n, 0) if name in MARKED else 0


turns = st.integers(0, 5).flatmap(lambda size: st.lists(model_calls(), min_size=size, max_size=size))
scripts = st.integers(0, 3).flatmap(lambda size: st.lists(turns, min_size=size, max_size=size))


@dataclass(frozen=True)
class Fate:
    """What befalls one action.

    Attributes:
        kill_at: the write at which the process dies, 0 for none; `after` it is durable, or before.
        abort_at: the event at which the run is told to stop, 0 for none.
        point: the trigger point at which the process dies, at the `kill_at`-th time it is passed.
    """

    kill_at: int = 0
    after: bool = False
    abort_at: int = 0
    point: str | None = None


fates = st.one_of(
    st.just(Fate()),
    st.builds(Fate, kill_at=st.integers(1, 8), after=st.booleans()),
    st.builds(Fate, abort_at=st.integers(1, 15)),
    st.builds(Fate, point=st.sampled_from(POINTS), kill_at=st.integers(1, 3)),
)
picks = st.integers(0, 1000)


@dataclass
class Expected:
    """What is known of a session.

    Attributes:
        inputs: what the user said, in order.
        transcript: as of the last look; it may only grow.
        results: recorded so far, by call id.
        approvals: how often each call was allowed to run, and with which argument last.
        rejected: calls that were rejected and never allowed.
        crashes: how often a run of it died.
        waits_for: the approval it waits for.
    """

    inputs: list[str] = field(default_factory=list)
    transcript: list[Data] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    approvals: Counter[str] = field(default_factory=Counter)
    argument: dict[str, int] = field(default_factory=dict)
    rejected: set[str] = field(default_factory=set)
    crashes: int = 0
    waits_for: str | None = None
    decided: bool = False


class Lives(RuleBasedStateMachine):
    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp())
        self.world = World(self.kind, self._folder)
        self.world.tools = [self._tool(name) for name in NAMES]
        self.sessions: dict[str, Expected] = {}
        self.runs: Counter[tuple[str, str]] = Counter()
        self.names: dict[tuple[str, str], str] = {}
        self.wrong: list[str] = []
        self.number = 0

    def teardown(self) -> None:
        try:
            for session in list(self.sessions):
                self._finish(session)
        finally:
            shutil.rmtree(self._folder)

    # What the tools and the model see.

    def _tool(self, name: str) -> Any:
        async def body(ctx: ToolContext, n: int = 0) -> Any:
            await self._entered(name, ctx, n)
            if name == "slow":
                for _ in range(3):
                    await asyncio.sleep(0)
            if name == "raises":
                raise ValueError("no luck")
            if self.runs[str(ctx.session_id), ctx.tool_call_id] <= _deaths(name, n):
                raise PropagatingToolError("the process died")
            return [name, n]

        options: dict[str, Any] = {"gated": {"needs_approval": True}}.get(name, {})
        if name in ("ask", "fail"):
            options = {"on_interrupt": name}
        return tool(name=name, description=name, **options)(body)

    async def _entered(self, name: str, ctx: ToolContext, n: int) -> None:
        session, call_id = str(ctx.session_id), ctx.tool_call_id
        self.runs[session, call_id] += 1
        self.names[session, call_id] = name
        stored = await self.world.store.checkpoints.load(session)
        assert stored is not None
        if call_id in self._recorded(stored):
            self.wrong.append(f"{name} runs although its result is recorded")
        last = [m for m in dump(stored.messages) if m["role"] == "assistant"][-1]
        if call_id not in [one["id"] for one in last.get("toolCalls", [])]:
            self.wrong.append(f"{name} runs although its turn is not on disk")
        if name in MARKED and engine(stored).get("marks", {}).get(call_id, {}).get("started") is None:
            self.wrong.append(f"{name} runs although its start is not on disk")
        expected = self.sessions[session]
        if call_id in expected.argument and expected.argument[call_id] != n:
            self.wrong.append(f"{name} runs with {n}, and {expected.argument[call_id]} was approved")

    def _model(self, session: str, script: list[list[Data]]) -> Any:
        left = list(script)

        async def next_turn(request: Any) -> Any:
            stored = await self.world.store.checkpoints.load(session)
            assert stored is not None
            if dump(request.messages) != dump(stored.messages):
                self.wrong.append("the model is asked about what is not on disk")
            try:
                check_transcript(request.messages)
            except AssertionError as error:
                self.wrong.append(f"the model is sent a broken transcript: {error}")
            self.number += 1
            calls = left.pop(0) if left else []
            return turn(*(self._fresh(call) for call in calls), text=f"turn {self.number}")

        return [next_turn] * 20

    def _fresh(self, call: Data) -> Data:
        self.number += 1
        return {**call, "id": f"fresh_{self.number}"} if call["id"] == "fresh" else call

    # What happens.

    def _act(self, session: str, fate: Fate, action: Any) -> ExecutionResult | BaseException:
        killer = Killer(0 if fate.point else fate.kill_at, after=fate.after)
        passed: Counter[str] = Counter()

        def pass_by(point: str) -> None:
            passed[point] += 1
            if point == fate.point and passed[point] == fate.kill_at:
                raise Killed(point)

        self.world.checkpoints = KillingCheckpoints(self.world.store.checkpoints, killer)
        self.world.approvals = KillingApprovals(self.world.store.approvals, killer)
        cancel, events = Cancel(), 0

        def observe(event: Event) -> None:
            nonlocal events
            events += 1
            if events == fate.abort_at:
                cancel.cancel()

        try:
            with watching(pass_by):
                outcome: ExecutionResult = action(
                    {"cancel": cancel, "on_event": observe, "tool_concurrency": 3}
                )
        except (Killed, SDKError) as error:
            outcome_or_error: ExecutionResult | BaseException = error
            self.sessions[session].crashes += 1
        else:
            outcome_or_error = outcome
            if fate.abort_at == 0:
                assert outcome.finish_reason != "aborted"
        self.world.checkpoints = self.world.store.checkpoints
        self.world.approvals = self.world.store.approvals
        return outcome_or_error

    def _pick(self, pick: int) -> str:
        return sorted(self.sessions)[pick % len(self.sessions)]

    @rule(script=scripts, fate=fates)
    def start(self, script: list[list[Data]], fate: Fate) -> None:
        if len(self.sessions) < 2:
            session = f"s{len(self.sessions)}"
            self.sessions[session] = Expected()
            self._run(session, script, fate, "new")

    @precondition(lambda self: self.sessions)
    @rule(pick=picks, script=scripts, fate=fates, given=st.sampled_from(["new", "again", "none"]))
    def run(self, pick: int, script: list[list[Data]], fate: Fate, given: str) -> None:
        self._run(self._pick(pick), script, fate, given)

    def _run(self, session: str, script: list[list[Data]], fate: Fate, given: str) -> None:
        expected = self.sessions[session]
        before = self._load(session)
        unfinished = before is not None and before.status != "finished"
        text: Any = []
        if given == "new" or not unfinished:
            self.number += 1
            text = f"say {self.number}"
        elif given == "again" and expected.inputs:
            text = expected.inputs[-1]
        outcome = self._act(
            session,
            fate,
            lambda options: self.world.execute(
                self._model(session, script), text, session=session, **options
            ),
        )
        if isinstance(outcome, SessionAwaitingApprovalError):
            assert expected.waits_for in (None, outcome.approval_id)
            assert not expected.decided, "a decision was lost"
        elif text and text not in expected.inputs:
            stored = self._load(session)
            heard = [] if stored is None else [*said(stored.messages), *queued(stored)]
            if not isinstance(outcome, Killed) or text in heard:
                expected.inputs.append(text)
        self._look(session)

    @precondition(lambda self: any(one.waits_for for one in self.sessions.values()))
    @rule(
        pick=picks, script=scripts, fate=fates, approved=st.booleans(), edit=st.booleans(),
        only=st.booleans(),
    )  # fmt: skip
    def decide(
        self, pick: int, script: list[list[Data]], fate: Fate, approved: bool, edit: bool, only: bool
    ) -> None:
        waiting = sorted(name for name, one in self.sessions.items() if one.waits_for)
        session = waiting[pick % len(waiting)]
        self._decide(session, script, fate, approved, edit and approved, only)

    def _decide(
        self, session: str, script: list[list[Data]], fate: Fate, approved: bool, edit: bool, only: bool
    ) -> None:
        expected, stored = self.sessions[session], self._load(session)
        assert stored is not None
        approval_id = expected.waits_for
        assert approval_id is not None
        pending = engine(stored)["approval"]
        held = asyncio.run(self.world.store.approvals.get(approval_id))
        decision: Mapping[str, Any] = {"arguments": {"n": EDITED}} if edit else {}
        if held is not None and held.decision is not None:
            approved = held.decision.approved
            decision = {"arguments": held.decision.arguments} if held.decision.arguments else {}
        else:
            self._note_decision(expected, pending, approved, decision)
        if only and held is not None:
            wanted = ApprovalDecision(id=approval_id, approved=approved, by="ann", **decision)
            asyncio.run(self.world.store.approvals.decide(approval_id, wanted))
        else:
            self._act(
                session,
                fate,
                lambda options: self.world.decide(
                    approval_id, self._model(session, script), approved, options=options, **decision
                ),
            )
        self._look(session)

    def _note_decision(
        self, expected: Expected, pending: Data, approved: bool, decision: Mapping[str, Any]
    ) -> None:
        call_id = pending["toolCallId"]
        if approved:
            expected.approvals[call_id] += 1
            expected.argument[call_id] = {**pending["args"], **decision.get("arguments", {})}["n"]
            expected.rejected.discard(call_id)
        elif not expected.approvals[call_id] and pending["kind"] == "needs-approval":
            expected.rejected.add(call_id)

    @precondition(lambda self: self.sessions and len(self.sessions) < 5)
    @rule(pick=picks, entry=picks, how=st.sampled_from(["plain", "input", "result"]))
    def fork(self, pick: int, entry: int, how: str) -> None:
        session = self._pick(pick)
        history = self.world.history(session)
        if not history:
            return
        source = history[entry % len(history)]
        before = (self.world.load(session), history, self.world.files(session))
        patch = ForkPatch()
        heard = [*said(source.checkpoint.messages), *queued(source.checkpoint)]
        called = [c["id"] for m in dump(source.checkpoint.messages) for c in m.get("toolCalls", [])]
        replaced: dict[str, str] = {}
        if how == "input":
            self.number += 1
            heard.append(f"say {self.number}")
            patch = ForkPatch(append_input=heard[-1])
        elif how == "result" and called:
            replaced = {called[entry % len(called)]: '"patched"'}
            (call_id,) = replaced
            patch = ForkPatch.model_validate({"tool_result": {"tool_call_id": call_id, "result": "patched"}})
        forked = self.world.fork(session, at=source.seq, patch=patch)
        assert (self.world.load(session), self.world.history(session), self.world.files(session)) == before
        assert forked.checkpoint.status == "in-progress"
        assert forked.checkpoint.step_index == source.step
        child = Expected(inputs=heard, results={**self._recorded(source.checkpoint), **replaced})
        self.sessions[forked.session_id] = child
        self._look(forked.session_id)

    # What must hold.

    def _load(self, session: str) -> Any:
        return asyncio.run(self.world.store.checkpoints.load(session))

    @staticmethod
    def _recorded(checkpoint: Any) -> dict[str, str]:
        waiting = engine(checkpoint).get("results", {}).values()
        settled = [message for message in dump(checkpoint.messages) if message["role"] == "tool"]
        return {message["toolCallId"]: message["content"] for message in (*waiting, *settled)}

    def _look(self, session: str) -> None:
        assert self.wrong == []
        expected, stored = self.sessions[session], self._load(session)
        if stored is None:
            assert not expected.transcript
            assert not expected.inputs
            return
        check_transcript(stored.messages, open_end=stored.status != "finished")
        now = dump(stored.messages)
        assert now[: len(expected.transcript)] == expected.transcript, "the past changed"
        assert [*said(stored.messages), *queued(stored)] == expected.inputs
        results = self._recorded(stored)
        assert results.items() >= expected.results.items(), "a recorded result changed"
        for call_id in expected.rejected:
            assert self.runs[session, call_id] == 0, "a rejected call ran"
        for (where, call_id), runs in self.runs.items():
            if where == session:
                self._check_runs(expected, self.names[where, call_id], call_id, runs)
        assert (stored.approval_id is not None) == (stored.status == "awaiting-approval")
        expected.transcript, expected.results = now, results
        expected.waits_for = stored.approval_id
        held = stored.approval_id and asyncio.run(self.world.store.approvals.get(stored.approval_id))
        expected.decided = bool(held and held.decision)

    @staticmethod
    def _check_runs(expected: Expected, name: str, call_id: str, runs: int) -> None:
        allowed = {"gated": 0, "fail": 1, "ask": 1}.get(name, 1 + expected.crashes)
        if name in ("gated", "ask"):
            allowed += expected.approvals[call_id]
        assert runs <= allowed, f"{name} ran {runs} times, {allowed} were allowed"

    def _finish(self, session: str) -> None:
        """Whatever happened, a session can be brought to its end."""
        expected = self.sessions[session]
        for _ in range(60):
            stored = self._load(session)
            if stored is None or stored.status == "finished":
                break
            # A request that was lost with its writer is made again by whoever asks for the session.
            self._run(session, [], Fate(), "none")
            if expected.waits_for and not expected.decided:
                self._decide(session, [], Fate(), True, False, False)
        else:
            raise AssertionError("the session does not come to its end")
        if stored is not None:
            check_transcript(stored.messages)
            assert queued(stored) == []


COMMON = settings(
    stateful_step_count=10,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
EXAMPLES = {"memory": 200}


def live(kind: str, examples: int) -> None:
    machine = type(f"{kind.title()}Lives", (Lives,), {"kind": kind})
    run_state_machine_as_test(machine, settings=settings(COMMON, max_examples=examples))


# It passes in seconds; looking for the shortest life that goes wrong takes longer.
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", rules_kit.KINDS)
def test_whatever_happens_the_guarantees_hold(kind: str) -> None:
    live(kind, EXAMPLES.get(kind, 60))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", rules_kit.KINDS)
def test_whatever_happens_in_thousands_of_lives_the_guarantees_hold(kind: str) -> None:
    live(kind, 5000)
