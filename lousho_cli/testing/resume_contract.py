"""Runs on the store under test that crash, and go on without repeating anything."""

from __future__ import annotations

import asyncio

import pytest

from ..errors import AgentChangedError
from ..execution.cancel import Cancel
from ..execution.protocols import CheckpointStore
from .bot import Bot, asks, delegates, results, roles, said
from .lives import CheckpointFixtures, Lives

SCOUT = [asks("x"), asks("y"), "Found."]


class ResumeContract(CheckpointFixtures):
    """The rules of durable execution, as far as a store can break them."""

    def test_each_save_is_there_before_what_depends_on_it(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a"), asks("b"), "Done."], "ab")
            seen = []

            async def look(event: str) -> None:
                checkpoint = await bot.load()
                seen.append((event, checkpoint.status, checkpoint.step_index, len(checkpoint.messages)))

            bot.watch = look
            await bot.run("Go.")
            assert seen == [
                ("model", "in-progress", 0, 2), ("a", "in-progress", 1, 3), ("model", "in-progress", 1, 4),
                ("b", "in-progress", 2, 5), ("model", "in-progress", 2, 6),
            ]  # fmt: skip

        asyncio.run(scene())

    def test_a_process_that_dies_after_any_save_repeats_nothing(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            saves = 0
            dies = True
            while dies:
                saves += 1
                bot = Bot(lives, [asks("a", "b"), asks("c"), "Done."], "abc")
                dies = await bot.dies_after(saves, "Go.", session=f"s{saves}")
                if (await bot.load(f"s{saves}")).status != "finished":
                    await bot.run(session=f"s{saves}")
                assert bot.did == ["a", "b", "c"], f"died after save {saves}"
                assert bot.generated == [0, 1, 2], f"died after save {saves}"
                checkpoint = await bot.load(f"s{saves}")
                assert said(checkpoint) == ["Go."]
                assert list(results(checkpoint)) == ["call_a", "call_b", "call_c"]
            # The input, two turns, three results, the answer.
            assert saves > 7

        asyncio.run(scene())

    def test_a_result_that_came_before_an_earlier_call_is_not_asked_for_again(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a", "b", "c"), "Done."], "abc")
            bot.dying = {"a"}
            await bot.crash("Go.")
            first = sorted(bot.did)
            result = await bot.run()
            assert (first, bot.did[3:]) == (["a", "b", "c"], ["a"])
            assert list(results(result)) == ["call_a", "call_b", "call_c"]
            assert bot.generated == [0, 1]

        asyncio.run(scene())

    def test_new_input_waits_behind_the_results_and_survives_another_crash(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a"), "Done."], "a")
            for input in ("Go.", "And tea.", ""):
                bot.dying = {"a"}
                await bot.crash(input)
            result = await bot.run()
            assert roles(result) == ["system", "user", "assistant", "tool", "user", "assistant"]
            assert said(result) == ["Go.", "And tea."]
            assert bot.generated == [0, 1]

        asyncio.run(scene())

    def test_the_same_input_again_is_a_retry_until_the_run_is_finished(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a"), "Done.", "Once more."], "a")
            bot.dying = {"a"}
            await bot.crash("Go.")
            assert said(await bot.run("Go.")) == ["Go."]
            result = await bot.run("Go.")
            assert said(result) == ["Go.", "Go."]
            assert (result.text, result.steps, bot.generated) == ("Once more.", 1, [0, 1, 2])

        asyncio.run(scene())

    def test_steps_usage_and_the_step_limit_go_on(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a"), asks("b"), asks("a")], "ab")
            for name in ("a", "b"):
                bot.dying = {name}
                await bot.crash("Go.", max_steps=2)
            result = await bot.run()
            assert (result.steps, result.finish_reason) == (2, "max-steps")
            usage = result.usage
            assert (usage.input_tokens, usage.output_tokens, usage.model_calls) == (4, 2, 2)
            assert (await bot.load()).finish_reason == "max-steps"

        asyncio.run(scene())

    def test_the_business_state_goes_on(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a"), asks("b"), asks("c"), "Done."], "abc")
            bot.dying = {"b"}
            await bot.crash("Go.", business_state={"seats": 2, "did": []})
            assert (await bot.load()).business_state == {"seats": 2, "did": ["a"]}
            await bot.run()
            assert (await bot.load()).business_state == {"seats": 2, "did": ["a", "b", "c"]}

        asyncio.run(scene())

    def test_an_agent_that_changed_is_noticed(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a"), "Done."], "a")
            bot.dying = {"a"}
            await bot.crash("Go.")
            with pytest.raises(AgentChangedError):
                await bot.run(agent=bot.agent(instructions="Be long."), on_agent_drift="error")
            assert (await bot.run(on_agent_drift="error")).text == "Done."

        asyncio.run(scene())

    def test_a_run_keeps_the_model_it_began_with(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a"), "Done."], "a")
            bot.dying = {"a"}
            await bot.crash("Go.", agent=bot.agent(model=lambda context: "small"))
            await bot.run(agent=bot.agent(model=lambda context: "large"))
            assert [request.model for request in bot.requests] == ["small", "small"]

        asyncio.run(scene())

    def test_an_aborted_run_keeps_what_was_done(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a"), asks("b"), "Done."], "ab")
            cancel = Cancel()

            async def stop(event: str) -> None:
                if event == "b":
                    cancel.cancel("enough")
                    await asyncio.sleep(60)

            bot.watch = stop
            assert (await bot.run("Go.", cancel=cancel)).finish_reason == "aborted"
            assert (await bot.load()).status == "in-progress"
            bot.watch = None
            result = await bot.run()
            assert (result.text, bot.did, bot.generated) == ("Done.", ["a"], [0, 1, 2])
            assert list(results(result)) == ["call_a", "call_b"]

        asyncio.run(scene())

    def test_a_sub_agent_goes_on_where_it_was(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            scout = Bot(lives, SCOUT, "xy")
            agent = scout.agent(name="scout", provider=scout.model(SCOUT))
            bot = Bot(lives, [delegates("scout"), "Done."], subagents=[agent])
            scout.dying = {"y"}
            await bot.crash("Go.")
            result = await bot.run()
            assert (result.text, results(result)) == ("Done.", {"call_1": '"Found."'})
            assert scout.did == ["x", "y", "y"]
            assert (bot.generated, scout.generated) == ([0, 1], [0, 1, 2])

        asyncio.run(scene())
