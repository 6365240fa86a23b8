"""What a checkpoint store has to do with a checkpoint: keep all of it, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ..execution.protocols import CheckpointStore
from ..execution.records import Checkpoint
from .lives import CheckpointFixtures, Lives, keeping_history
from .sameness import check_equal, check_same
from .samples import ODD_IDS, SAMPLES, paused, text_only, unknown_fields, with_state

Part = Callable[[Checkpoint], Any]


def _engine(checkpoint: Checkpoint) -> Any:
    return (checkpoint.model_extra or {})["engine"]


def _first_part(checkpoint: Checkpoint) -> Any:
    return next(message for message in checkpoint.messages if message.role == "user").content[0]


PARTS: dict[str, Part] = {
    "business-state": lambda checkpoint: checkpoint.business_state,
    "run-config": lambda checkpoint: checkpoint.run_config,
    "agent-fingerprint": lambda checkpoint: checkpoint.agent_fingerprint,
    "engine": _engine,
    "message": _first_part,
}
"""The parts of a checkpoint that can be changed in place: each a function from the checkpoint to a dict."""


class SavingContract(CheckpointFixtures):
    """`save`, `load` and `delete`."""

    def test_a_session_that_was_never_saved_is_none(self, lives: Lives[CheckpointStore]) -> None:
        assert asyncio.run(lives.store.load("nobody")) is None

    @pytest.mark.parametrize("sample", SAMPLES)
    def test_a_checkpoint_comes_back_as_it_was_saved(
        self, lives: Lives[CheckpointStore], sample: str
    ) -> None:
        async def scene() -> None:
            saved = SAMPLES[sample]("s")
            await lives.store.save("s", saved)
            check_same(await lives.store.load("s"), SAMPLES[sample]("s"))

        asyncio.run(scene())

    @pytest.mark.parametrize("sample", SAMPLES)
    def test_a_checkpoint_is_there_for_the_next_process(
        self, lives: Lives[CheckpointStore], sample: str
    ) -> None:
        async def scene() -> None:
            await lives.store.save("s", SAMPLES[sample]("s"))
            check_same(await lives.reopened().load("s"), SAMPLES[sample]("s"))

        asyncio.run(scene())

    @pytest.mark.parametrize("value", [None, False, 0, "", [], {}, {"n": None}], ids=repr)
    def test_a_business_state_that_is_empty_is_kept(
        self, lives: Lives[CheckpointStore], value: object
    ) -> None:
        async def scene() -> None:
            await lives.store.save("s", with_state("s", value))
            found = await lives.store.load("s")
            assert found is not None
            check_equal([Checkpoint.of(found).business_state], [value])

        asyncio.run(scene())

    def test_a_save_replaces_all_of_the_one_before(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            for name, sample in SAMPLES.items():
                # That a session is a fork stays true whatever is saved over it, and stores may keep it.
                if name != "fork":
                    await lives.store.save("s", sample("s"))
                    check_same(await lives.store.load("s"), sample("s"))

        asyncio.run(scene())

    def test_sessions_do_not_touch_each_other_whatever_their_ids(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            for session_id in ODD_IDS:
                await lives.store.save(session_id, text_only(session_id, f"for {session_id}"))
            store = lives.next()
            for session_id in ODD_IDS:
                check_same(await store.load(session_id), text_only(session_id, f"for {session_id}"))

        asyncio.run(scene())

    @pytest.mark.parametrize("part", PARTS)
    def test_changing_a_loaded_checkpoint_changes_nothing_that_is_stored(
        self, lives: Lives[CheckpointStore], part: str
    ) -> None:
        async def scene() -> None:
            await lives.store.save("s", unknown_fields("s"))
            found = await lives.store.load("s")
            assert found is not None
            PARTS[part](Checkpoint.of(found))["changed"] = True
            check_same(await lives.store.load("s"), unknown_fields("s"))

        asyncio.run(scene())

    @pytest.mark.parametrize("part", PARTS)
    def test_changing_a_checkpoint_after_it_was_saved_changes_nothing_that_is_stored(
        self, lives: Lives[CheckpointStore], part: str
    ) -> None:
        async def scene() -> None:
            saved = unknown_fields("s")
            await lives.store.save("s", saved)
            PARTS[part](saved)["changed"] = True
            check_same(await lives.store.load("s"), unknown_fields("s"))

        asyncio.run(scene())

    def test_saving_changes_nothing_of_what_is_saved(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            for sample in SAMPLES.values():
                saved = sample("s")
                await lives.store.save("s", saved)
                check_same(saved, sample("s"))

        asyncio.run(scene())

    def test_a_deleted_session_is_gone_and_the_others_are_not(self, lives: Lives[CheckpointStore]) -> None:
        async def scene() -> None:
            for session_id in ODD_IDS:
                await lives.store.save(session_id, text_only(session_id))
            for session_id in ODD_IDS[::2]:
                await lives.store.delete(session_id)
            store = lives.next()
            left = [session_id for session_id in ODD_IDS if await store.load(session_id) is not None]
            assert left == list(ODD_IDS[1::2])

        asyncio.run(scene())

    @pytest.mark.parametrize("keep_history", [False, True])
    def test_a_deleted_session_begins_anew(self, lives: Lives[CheckpointStore], keep_history: bool) -> None:
        async def scene() -> None:
            await lives.store.save("s", paused("s"))
            await lives.store.delete("s", keep_history=keep_history)
            assert await lives.store.load("s") is None
            assert await lives.next().load("s") is None
            await lives.store.save("s", text_only("s", "again"))
            check_same(await lives.store.load("s"), text_only("s", "again"))

        asyncio.run(scene())

    @pytest.mark.parametrize("keep_history", [False, True])
    def test_deleting_what_is_not_there_is_no_error(
        self, lives: Lives[CheckpointStore], keep_history: bool
    ) -> None:
        async def scene() -> None:
            await lives.store.delete("nobody", keep_history=keep_history)
            await lives.store.save("s", text_only("s"))
            await lives.store.delete("s", keep_history=keep_history)
            await lives.store.delete("s", keep_history=keep_history)
            assert await lives.store.load("s") is None

        asyncio.run(scene())

    def test_deleting_takes_the_history_along_unless_told_to_keep_it(
        self, lives: Lives[CheckpointStore]
    ) -> None:
        async def scene() -> None:
            for session_id in ("gone", "kept"):
                await lives.store.save(session_id, text_only(session_id, "one"))
                await lives.store.save(session_id, text_only(session_id, "two"))
            await lives.store.delete("gone")
            await lives.store.delete("kept", keep_history=True)
            history = keeping_history(lives.next())
            assert list(await history.history("gone")) == []
            kept = await history.history("kept")
            assert [entry.checkpoint.messages[-1].content for entry in kept] == ["two", "one"]

        keeping_history(lives.store)
        asyncio.run(scene())
