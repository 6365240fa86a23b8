"""What a checkpoint store that keeps a history has to keep, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from ..execution.protocols import CheckpointStore
from ..execution.records import HistoryEntry
from .bot import Bot, asks
from .lives import CheckpointFixtures, Lives, keeping_history, opening_sessions
from .sameness import check_same, content_of
from .samples import ODD_IDS, SAMPLES, text_only

WithLimit = Callable[[int], CheckpointStore]


async def _entries(
    store: CheckpointStore, session_id: str = "s", limit: int | None = None
) -> list[HistoryEntry]:
    entries = await keeping_history(store).history(session_id, limit=limit)
    return [HistoryEntry.of(entry) for entry in entries]


async def _texts(store: CheckpointStore, session_id: str = "s", limit: int | None = None) -> list[str]:
    """The last texts of the kept saves."""
    return [e.checkpoint.messages[-1].content for e in await _entries(store, session_id, limit)]


async def _save(store: CheckpointStore, *texts: str, session_id: str = "s") -> None:
    for text in texts:
        await store.save(session_id, text_only(session_id, text))


class HistoryContract(CheckpointFixtures):
    """`history`, where there is one."""

    def test_a_session_that_was_never_saved_has_an_empty_history(self, lives: Lives[CheckpointStore]) -> None:
        assert list(asyncio.run(keeping_history(lives.store).history("nobody"))) == []

    def test_the_newest_save_comes_first(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            await _save(lives.store, "one", "two", "three")
            assert await _texts(lives.store) == ["three", "two", "one"]
            seqs = [entry.seq for entry in await _entries(lives.store)]
            assert seqs == sorted(set(seqs), reverse=True), "seq grows with each save"

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_a_limit_gives_the_newest_saves(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            await _save(lives.store, "one", "two", "three", "four")
            found = {limit: await _texts(lives.store, limit=limit) for limit in (0, 1, 3, 4, 9, None)}
            newest_first = ["four", "three", "two", "one"]
            assert found == {
                0: [], 1: ["four"], 3: ["four", "three", "two"], 4: newest_first, 9: newest_first,
                None: newest_first,
            }  # fmt: skip

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_an_entry_is_the_whole_checkpoint_of_its_time(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            samples = [sample for name, sample in SAMPLES.items() if name != "fork"]
            for sample in samples:
                await lives.store.save("s", sample("s"))
            entries = await _entries(lives.next())
            assert len(entries) == len(samples)
            for entry, sample in zip(entries, reversed(samples), strict=True):
                check_same(entry.checkpoint, sample("s"))

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_a_fork_that_was_copied_from_elsewhere_has_a_history_like_any_session(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            for _ in range(2):
                await lives.store.save("s", SAMPLES["fork"]("s"))
            entries = await _entries(lives.next())
            assert len(entries) == 2
            for entry in entries:
                check_same(entry.checkpoint, SAMPLES["fork"]("s"))

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_an_entry_says_step_status_and_when(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            for sample in SAMPLES.values():
                await lives.store.save("s", sample("s"))
            for entry in await _entries(lives.store):
                assert (entry.step, entry.status) == (entry.checkpoint.step_index, entry.checkpoint.status)
                assert datetime.fromisoformat(entry.saved_at).utcoffset() == timedelta(0), "saved_at is UTC"

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_the_history_is_there_for_the_next_process(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            await _save(lives.store, "one", "two")
            assert await _texts(lives.reopened()) == ["two", "one"]
            await _save(lives.reopened(), "three")
            entries = await _entries(lives.reopened())
            assert [entry.seq for entry in entries] == sorted((entry.seq for entry in entries), reverse=True)
            assert await _texts(lives.reopened()) == ["three", "two", "one"]

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_histories_of_sessions_do_not_touch_each_other(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            for text in ("one", "two"):
                for session_id in ODD_IDS:
                    await _save(lives.store, f"{text} of {session_id}", session_id=session_id)
            store = lives.next()
            for session_id in ODD_IDS:
                assert await _texts(store, session_id) == [f"two of {session_id}", f"one of {session_id}"]

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_changing_an_entry_changes_nothing_that_is_stored(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            await _save(lives.store, "one", "two")
            before = [content_of(entry.checkpoint) for entry in await _entries(lives.store)]
            for entry in await _entries(lives.store):
                entry.checkpoint.business_state["changed"] = True
            assert [content_of(entry.checkpoint) for entry in await _entries(lives.store)] == before

        keeping_history(lives.store)
        asyncio.run(scene())

    def test_a_run_leaves_an_entry_for_each_thing_that_happened(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            bot = Bot(lives, [asks("a", "b", "c"), asks("d"), "Done."], "abcd")
            await bot.run("Go.")
            entries = [(e.step, e.status, len(e.checkpoint.messages)) for e in await bot.history()]
            # The system message and the input; then turns, and the results of each turn as one entry.
            assert entries == [
                (3, "finished", 9), (2, "in-progress", 8), (2, "in-progress", 7), (1, "in-progress", 6),
                (1, "in-progress", 3), (0, "in-progress", 2),
            ]  # fmt: skip

        keeping_history(lives.store)
        opening_sessions(lives.store)
        asyncio.run(scene())

    @pytest.mark.parametrize("limit", [0, 1, 3])
    def test_no_more_saves_are_kept_than_the_store_is_to_keep(
        self, with_limit: WithLimit | None, limit: int
    ) -> None:
        async def scene(store: CheckpointStore) -> None:
            await _save(store, "one", "two", "three", "four", "five")
            assert await _texts(store) == ["five", "four", "three", "two", "one"][:limit]
            check_same(await store.load("s"), text_only("s", "five"))

        asyncio.run(scene(_limited(with_limit, limit)))

    @pytest.mark.parametrize("limit", [0, 1])
    def test_what_an_unfinished_run_needs_outlives_the_limit(
        self, with_limit: WithLimit | None, limit: int
    ) -> None:
        async def scene(store: CheckpointStore) -> None:
            script = [asks("a"), asks("gated"), asks("b", "c"), "Done."]
            bot = Bot(Lives(store), script, ["a", "gated", "b", "c"])
            waiting = await bot.run("Go.")
            bot.dying = {"b"}
            with pytest.raises(Exception, match="b died"):
                await bot.decide(waiting, True)
            result = await bot.run()
            assert result.text == "Done."
            assert bot.did == ["a", "gated", "b", "c", "b"]
            assert bot.generated == [0, 1, 2, 3]

        asyncio.run(scene(_limited(with_limit, limit)))


def _limited(with_limit: WithLimit | None, limit: int) -> CheckpointStore:
    if with_limit is None:
        pytest.skip("the suite has no fixture `with_limit`: how many saves are kept is not tested")
    return with_limit(limit)
