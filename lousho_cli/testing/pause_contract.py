"""Runs on the checkpoint store under test that wait for a human."""

from __future__ import annotations

import asyncio

import pytest

from ..errors import SessionAwaitingApprovalError
from ..execution.protocols import CheckpointStore
from ..execution.records import ApprovalDecision
from .bot import Bot, asks, delegates, results
from .lives import CheckpointFixtures, Lives

GATED = [asks("a", "gated", "b"), "Done."]
TOOLS = ("a", "gated", "b")


class PauseContract(CheckpointFixtures):
    """Pauses, decisions, and calls that may have happened."""

    def test_a_run_waits_for_a_decision_and_nothing_slips_past(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = Bot(lives, GATED, TOOLS)
            waiting = await bot.run("Go.")
            checkpoint = await bot.load()
            assert (checkpoint.status, checkpoint.approval_id) == ("awaiting-approval", waiting.approval_id)
            with pytest.raises(SessionAwaitingApprovalError):
                await bot.run("Never mind.")
            assert bot.did == ["a"]
            result = await bot.decide(waiting, True, note="fine")
            assert (result.text, bot.did, bot.generated) == ("Done.", ["a", "gated", "b"], [0, 1])
            assert list(results(result)) == ["call_a", "call_gated", "call_b"]
            assert (await bot.load()).approval_id is None

        asyncio.run(scene())

    def test_a_rejected_call_does_not_run_and_the_rest_does(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = Bot(lives, GATED, TOOLS)
            result = await bot.decide(await bot.run("Go."), False, note="wrong address")
            assert (result.text, bot.did) == ("Done.", ["a", "b"])
            assert "wrong address" in results(await bot.load())["call_gated"]

        asyncio.run(scene())

    def test_a_decision_that_was_only_recorded_is_used_by_the_next_run(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            bot = Bot(lives, GATED, TOOLS)
            waiting = await bot.run("Go.")
            decision = ApprovalDecision(id=str(waiting.approval_id), approved=True, by="Ann")
            await bot.approvals.store.decide(decision.id, decision)
            assert (await bot.run()).text == "Done."
            assert bot.did == ["a", "gated", "b"]

        asyncio.run(scene())

    def test_an_approved_call_that_was_interrupted_is_not_repeated_unasked(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            bot = Bot(lives, GATED, TOOLS)
            waiting = await bot.run("Go.")
            bot.dying = {"gated"}
            with pytest.raises(Exception, match="gated died"):
                await bot.decide(waiting, True)
            again = await bot.run()
            assert again.approval is not None
            assert (again.approval.kind, again.approval.tool_call_id) == ("interrupted", "call_gated")
            assert again.approval_id != waiting.approval_id
            assert bot.did == ["a", "gated"]
            result = await bot.decide(again, True, result={"looked": "up"})
            assert results(result)["call_gated"] == '{"looked":"up"}'
            assert (bot.did, bot.generated) == (["a", "gated", "b"], [0, 1])

        asyncio.run(scene())

    def test_a_sub_agent_goes_on_where_it_waited(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            scout = Bot(lives, [], TOOLS)
            agent = scout.agent(name="scout", provider=scout.model(GATED))
            bot = Bot(lives, [delegates("scout"), "All done."], subagents=[agent])
            waiting = await bot.run("Go.")
            assert waiting.approval is not None
            assert waiting.approval.subagent == ["scout"]
            result = await bot.decide(waiting, True)
            assert (result.text, results(result)) == ("All done.", {"call_1": '"Done."'})
            assert scout.did == ["a", "gated", "b"]
            assert (bot.generated, scout.generated) == ([0, 1], [0, 1])

        asyncio.run(scene())
