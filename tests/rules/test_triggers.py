"""Dying at every named place of the engine loses nothing and repeats nothing (R3.1, R3.4 to R3.6)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import rules_kit
from rules_kit import (
    Killed,
    World,
    asks,
    call,
    check_sent,
    check_transcript,
    kinds,
    said,
    scripted_by_position,
    turn,
)

from lousho_cli import Agent, Cancel, PropagatingToolError, SessionAwaitingApprovalError
from lousho_cli.errors import NotFoundError
from lousho_cli.execution.triggers import POINTS, watching
from lousho_cli.testing import ScriptedModel

world = rules_kit.world

SCRIPT = [
    turn(call("a"), call("risky"), call("g")),
    turn(call("a", "a2"), call("delegate_cook", input="soup")),
    "done",
]


def die_at(point: str, nth: int = 1) -> Callable[[str], None]:
    passed: Counter[str] = Counter()

    def watch(reached: str) -> None:
        passed[reached] += 1
        if reached == point and passed[reached] == nth:
            raise Killed(point)

    return watch


class Life:
    """One conversation with a gate, a call that must not be repeated, and a sub-agent, to its very end."""

    def __init__(self, world: World) -> None:
        self.world = world
        ledger = world.ledger
        cook = Agent("cook", "cook", [ledger.tool("stir")], provider=self._cook())
        self.agent = Agent(
            "bot",
            "be brief",
            [
                ledger.tool("a"),
                ledger.tool("risky", on_interrupt="ask"),
                ledger.tool("g", needs_approval=True),
            ],
            subagents=[cook],
        )
        world.tools = list(self.agent.tools)  # type: ignore[arg-type]
        self.waiting: str | None = None
        self.approved: Counter[str] = Counter()

    def _cook(self) -> Any:
        return ScriptedModel([scripted_by_position([asks("stir"), "soup"])], on_exhausted="repeat-last")

    def go(self) -> Any:
        """Run or decide, once."""
        script = [scripted_by_position(SCRIPT)] * 4
        try:
            if self.waiting is None:
                result = self.world.execute(script, agent=self.agent)
            else:
                result = self.world.decide(self.waiting, script, options={"agent": self.agent})
        except SessionAwaitingApprovalError as error:
            self._wait(error.approval_id)
            return None
        self._wait(result.approval_id)
        return result

    def _wait(self, approval_id: str | None) -> None:
        self.waiting = approval_id
        if approval_id is not None:
            self.approved[approval_id] += 1

    def is_finished(self) -> bool:
        found = asyncio.run(self.world.store.checkpoints.load("s1"))
        return found is not None and found.status == "finished"

    def finish(self) -> Any:
        for _ in range(12):
            result = self.go()
            check_sent(self.world.model)
            if result is not None and result.approval_id is None:
                return result
        raise AssertionError("it does not come to its end")


LIFE = sorted(
    {
        f"{kind}.{when}"
        for kind in ("input", "turn", "start", "result", "pause", "decision", "sub", "finish")
        for when in ("saving", "saved")
    }
    | {point for point in POINTS if point.split(".")[0] in ("model", "call", "request")}
    | {
        "decision.recording",
        "decision.recorded",
        "decision.noting",
        "decision.noted",
    }
)


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("point", LIFE)
def test_dying_at_a_trigger_point_loses_nothing_and_repeats_nothing(
    world: World, point: str, nth: int
) -> None:
    life = Life(world)
    died = False
    with watching(die_at(point, nth)):
        for _ in range(12):
            try:
                result = life.go()
            except Killed:
                died = True
                life.waiting = None
                break
            if result is not None and result.approval_id is None:
                break
    assert died or nth == 2, f"{point} is never passed"
    if died and not life.is_finished():
        assert life.finish().text == "done"
    messages = world.load().messages
    check_transcript(messages)
    assert kinds(messages) == [None] * 5
    assert said(messages) == ["go"]
    assert world.ledger.runs("risky") <= 1 + len(life.approved)
    assert world.ledger.runs("g") <= len(life.approved)
    assert world.ledger.runs("stir") <= 2
    assert world.load().status == "finished"


def test_every_trigger_point_is_passed_by_some_life(world: World) -> None:
    passed: set[str] = set()
    with watching(passed.add):
        Life(world).finish()
        dying = world.ledger.tool("dies", dies=1)
        world.tools = [dying]
        with pytest.raises(PropagatingToolError):
            world.execute([asks("dies")], session="s2")
        world.execute(["ok"], "and this", session="s2", max_steps=7)
        cancel = Cancel()
        world.tools = [world.ledger.tool("stop", cancel.cancel)]
        world.execute([asks("stop")], session="s3", cancel=cancel)
        world.fork(from_step=1)
    assert passed == set(POINTS)


def test_who_decided_is_known_although_the_request_was_never_kept(world: World) -> None:
    if world.kind == "memory":
        pytest.skip("it dies with its process")
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    with watching(die_at("request.saving")), pytest.raises(Killed):
        world.execute([asks("g")])
    approval_id = world.load().approval_id
    assert approval_id is not None
    world.record_only(approval_id)
    world.resume(["done"])
    stored = asyncio.run(world.store.approvals.get(approval_id))
    assert stored is not None
    assert (stored.status, stored.decision and stored.decision.by) == ("consumed", "ann")
    with pytest.raises(NotFoundError, match="was already approved by ann"):
        world.decide(approval_id, approved=False)
