"""Forks of sessions of the store under test."""

from __future__ import annotations

import asyncio

import pytest

from ..errors import ConfigurationError, NotFoundError
from ..execution.protocols import CheckpointStore, KeepsHistory
from ..execution.records import Checkpoint
from .bot import Bot, asks, results, roles
from .lives import CheckpointFixtures, Lives, forking_sessions, keeping_history
from .sameness import content_of

SCRIPT = [asks("a"), asks("b"), "Done.", "Done otherwise."]


async def _finished(lives: Lives[CheckpointStore]) -> Bot:
    """A bot whose session ran over steps 1 to 3, calling `a` and `b`."""
    bot = Bot(lives, SCRIPT, "ab")
    await bot.run("Go.")
    bot.did.clear()
    bot.generated.clear()
    return bot


class ForkContract(CheckpointFixtures):
    """`AgentExecutor.fork`, where the store keeps a history."""

    def test_a_store_without_history_says_that_it_cannot_fork(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = await _finished(lives)
            with pytest.raises(ConfigurationError, match="history"):
                await bot.fork(from_step=1)

        if isinstance(lives.store, KeepsHistory):
            pytest.skip("this store keeps a history")
        asyncio.run(scene())

    def test_a_fork_goes_on_from_its_step_and_repeats_nothing_before_it(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            bot = await _finished(lives)
            fork = await bot.fork(from_step=1)
            assert (fork.session_id, fork.step) == ("s.fork-1", 1)
            result = await bot.run(session="s.fork-1")
            assert (result.text, result.steps) == ("Done.", 3)
            assert bot.did == ["b"]
            assert bot.generated == [1, 2]

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_a_fork_can_be_given_another_result(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = await _finished(lives)
            result = {"tool_call_id": "call_a", "result": {"rain": True}}
            patch = {"tool_result": result, "append_input": "And?"}
            fork = await bot.fork(from_step=1, patch=patch, new_session_id="other/one")
            assert roles(fork.checkpoint) == ["system", "user", "assistant", "tool", "user"]
            loaded = await bot.load("other/one")
            assert content_of(loaded) == content_of(fork.checkpoint)
            assert results(loaded) == {"call_a": '{"rain":true}'}

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_forking_leaves_the_session_and_its_history_as_they_were(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            bot = await _finished(lives)
            before = await _all_of(bot)
            for step in (0, 1, 2, 3):
                fork = await bot.fork(from_step=step, patch={"append_input": "Otherwise."})
                await bot.run(session=fork.session_id)
            assert await _all_of(bot) == before

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_a_fork_outlives_its_parent(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = await _finished(lives)
            fork = await bot.fork(from_step=1)
            await lives.next().delete("s")
            again = await bot.fork(session_id=fork.session_id, from_step=1)
            await lives.next().delete(fork.session_id)
            assert (await bot.run(session=again.session_id)).text == "Done."
            assert bot.did == ["b"]

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_forks_take_the_first_free_number_and_no_name_that_is_taken(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            bot = await _finished(lives)
            names = [(await bot.fork(from_step=1)).session_id for _ in range(3)]
            assert names == ["s.fork-1", "s.fork-2", "s.fork-3"]
            taken = content_of(await bot.load("s.fork-2"))
            with pytest.raises(ConfigurationError):
                await bot.fork(from_step=2, new_session_id="s.fork-2")
            assert content_of(await bot.load("s.fork-2")) == taken
            await lives.next().delete("s.fork-2")
            assert (await bot.fork(from_step=2)).session_id == "s.fork-2"

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_a_step_or_a_session_that_is_not_there_cannot_be_forked(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            bot = await _finished(lives)
            for where in ({"from_step": 9}, {"at": 99}, {"session_id": "nobody", "from_step": 1}):
                with pytest.raises(NotFoundError) as caught:
                    await bot.fork(**where)
                assert caught.value.code == "LOUSHO_CHECKPOINT_NOT_FOUND"
            for session_id in ("s.fork-1", "nobody", "nobody.fork-1"):
                assert await lives.next().load(session_id) is None

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_the_store_names_the_saves_it_keeps_as_its_history_has_them(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            bot = await _finished(lives)
            kept = await forking_sessions(lives.next()).kept_saves("s")
            assert kept is not None
            assert list(kept.saves) == [(entry.seq, entry.step) for entry in await bot.history()]
            assert (kept.newest, kept.last_step) == (kept.saves[0][0], 3)
            assert await forking_sessions(lives.next()).kept_saves("nobody") is None

        forking_sessions(lives.store)
        asyncio.run(scene())


async def _all_of(bot: Bot) -> list[object]:
    """The session and its history."""
    entries = [(e.seq, e.step, e.status, e.saved_at, content_of(e.checkpoint)) for e in await bot.history()]
    return [content_of(Checkpoint.of(await bot.load())), entries]
