"""One runner of a session at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ..errors import SessionBusyError
from ..execution.protocols import CheckpointStore
from ..execution.session import OpenSession
from ..execution.state import Record
from .bot import Bot, asks, said
from .lives import CheckpointFixtures, Lives, opening_sessions

LoseLease = Callable[[str], Awaitable[None]]


async def _say(session: OpenSession, text: str) -> None:
    await session.save(Record("save", "in-progress", 0, add=[{"role": "user", "content": text}]))


class RunnerContract(CheckpointFixtures):
    """Who may run a session."""

    def test_a_second_runner_of_a_session_is_refused_and_does_nothing(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a"), "Done."], "a")
            second = Bot(Lives(lives.store), ["Never."])

            async def run_again(event: str) -> None:
                with pytest.raises(SessionBusyError):
                    await second.run("Me too.", checkpoint_store=lives.store)

            bot.watch = run_again
            result = await bot.run("Go.", checkpoint_store=lives.store)
            assert (result.text, said(await bot.load()), second.generated) == ("Done.", ["Go."], [])

        asyncio.run(scene())

    def test_a_runner_over_another_store_object_is_refused(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a"), "Done."], "a")
            second = Bot(lives, ["Never."])

            async def run_again(event: str) -> None:
                with pytest.raises(SessionBusyError):
                    await second.run("Me too.", checkpoint_store=lives.reopened())

            bot.watch = run_again
            await bot.run("Go.")
            assert (said(await bot.load()), second.generated) == (["Go."], [])

        opening_sessions(lives.store)
        lives.reopened()
        asyncio.run(scene())

    def test_runners_of_other_sessions_do_not_wait(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot, other = Bot(lives, [asks("a"), "Done."], "a"), Bot(lives, ["Done too."])

            async def run_other(event: str) -> None:
                if event == "a":
                    assert (await other.run("Go.", session="other")).text == "Done too."

            bot.watch = run_other
            assert (await bot.run("Go.")).text == "Done."
            assert other.generated == [0]

        asyncio.run(scene())

    def test_a_runner_that_waits_goes_on_from_what_the_first_one_left(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            store, begun = lives.store, asyncio.Event()
            bot = Bot(lives, [asks("a"), "Done.", "Done again."], "a")

            async def take_time(event: str) -> None:
                begun.set()
                await asyncio.sleep(0.1)

            bot.watch = take_time
            first = asyncio.create_task(bot.run("One.", checkpoint_store=store))
            await begun.wait()
            second = await bot.run("Two.", checkpoint_store=store, wait=30)
            assert (await first).text == "Done."
            assert (second.text, said(second), bot.did) == ("Done again.", ["One.", "Two."], ["a"])

        asyncio.run(scene())

    def test_a_run_that_fails_lets_the_session_go(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a"), "Done."], "a")
            bot.dying = {"a"}
            await bot.crash("Go.", checkpoint_store=lives.store)
            assert (await bot.run(checkpoint_store=lives.store)).text == "Done."

        asyncio.run(scene())

    def test_a_session_that_is_held_cannot_be_saved_or_deleted_from_outside(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            session = await opening_sessions(lives.store).open_session("s")
            await _say(session, "mine")
            outside = lives.next()
            checkpoint = await outside.load("s")
            assert checkpoint is not None
            with pytest.raises(SessionBusyError):
                await outside.save("s", checkpoint)
            with pytest.raises(SessionBusyError):
                await outside.delete("s")
            await _say(session, "still mine")
            await session.close()
            found = await lives.next().load("s")
            assert found is not None
            assert said(found) == ["mine", "still mine"]

        opening_sessions(lives.store)
        asyncio.run(scene())

    def test_each_runner_has_a_larger_fencing_token_than_those_before(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            tokens = []
            for text in ("one", "two", "three"):
                session = await opening_sessions(lives.next()).open_session("s")
                tokens.append(session.fence)
                await _say(session, text)
                assert session.state.fence == session.fence
                await session.close()
            assert tokens == sorted(set(tokens))

        opening_sessions(lives.store)
        asyncio.run(scene())

    def test_a_runner_that_lost_its_lease_is_refused_at_its_next_save(
        self, lives: Lives[CheckpointStore], lose_lease: LoseLease | None
    ) -> None:
        if lose_lease is None:
            pytest.skip("the suite has no fixture `lose_lease`: how a lease is lost is not known")
        lose = lose_lease

        async def scene() -> None:
            old = await opening_sessions(lives.store).open_session("s")
            await _say(old, "one")
            await lose("s")
            new = await opening_sessions(lives.next()).open_session("s")
            assert new.fence > old.fence
            await _say(new, "two")
            with pytest.raises(SessionBusyError):
                await _say(old, "lost")
            await _say(new, "three")
            await new.close()
            await old.close()
            found = await lives.next().load("s")
            assert found is not None
            assert said(found) == ["one", "two", "three"]

        opening_sessions(lives.store)
        asyncio.run(scene())
