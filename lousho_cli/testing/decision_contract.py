"""A decision on the approval store under test: made once, by one decider, and used by one run."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ..errors import NotFoundError
from ..execution.protocols import ApprovalStore
from ..execution.records import ApprovalDecision
from ..stores.memory import MemoryStore
from .bot import Bot, asks, results
from .lives import ApprovalFixtures, Lives
from .request_contract import ask, check_decision, decided, found, listed

DECIDERS, ROUNDS = 8, 10
GATED = [asks("a", "gated", "b"), "Done."]


def _bot(lives: Lives[ApprovalStore]) -> Bot:
    return Bot(Lives(MemoryStore().checkpoints), GATED, ("a", "gated", "b"), approvals=lives)


def _choices(approval_id: str) -> list[ApprovalDecision]:
    """What the deciders want, each something else."""
    return [decided(approval_id, n % 2 == 0, by=f"decider {n}") for n in range(DECIDERS)]


class DecisionContract(ApprovalFixtures):
    """`decide` as a compare-and-set, and the runs that rely on it."""

    def test_the_first_decision_holds(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            await ask(lives.store)
            first = await lives.store.decide("ap_1", decided(by="first"))
            for later in (decided(by="first"), decided(by="second"), decided(approved=False, by="third")):
                for store in (lives.store, lives.next()):
                    held = await store.decide("ap_1", later)
                    check_decision(held, decided(by="first"))
                    assert (held.status, held.decided_at) == ("approved", first.decided_at)
            check_decision(await found(lives.next()), decided(by="first"))

        asyncio.run(scene())

    def test_a_decision_that_was_taken_up_cannot_be_changed(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            await ask(lives.store)
            await lives.store.decide("ap_1", decided(by="first"))
            await lives.store.consume("ap_1")
            held = await lives.next().decide("ap_1", decided(approved=False, by="late"))
            check_decision(held, decided(by="first"))
            assert (held.status, (await found(lives.next())).status) == ("consumed", "consumed")

        asyncio.run(scene())

    def test_of_deciders_in_one_loop_exactly_one_wins(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            for n in range(ROUNDS):
                await ask(lives.store, f"ap_{n}")
                choices = _choices(f"ap_{n}")
                held = await asyncio.gather(*(lives.store.decide(f"ap_{n}", choice) for choice in choices))
                winners = {stored.decision.by for stored in held if stored.decision is not None}
                stored = await found(lives.next(), f"ap_{n}")
                assert stored.decision is not None
                assert winners == {stored.decision.by}

        asyncio.run(scene())

    def test_of_deciders_in_threads_exactly_one_wins(self, lives: Lives[ApprovalStore]) -> None:
        with _switching_often():
            for n in range(ROUNDS):
                asyncio.run(ask(lives.next(), f"ap_{n}"))
                winners = _decide_in_threads(lives, _choices(f"ap_{n}"))
                stored = asyncio.run(found(lives.next(), f"ap_{n}"))
                assert stored.decision is not None
                assert winners == [stored.decision.by] * DECIDERS

    def test_a_request_waits_is_decided_is_taken_up_and_stays(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            bot = _bot(lives)
            waiting = await bot.run("Go.")
            approval_id = str(waiting.approval_id)
            assert await listed(lives.next()) == [approval_id]
            result = await bot.decide(waiting, True, note="fine")
            assert (result.text, bot.did) == ("Done.", ["a", "gated", "b"])
            assert await listed(lives.next()) == []
            stored = await found(lives.next(), approval_id)
            assert stored.decision is not None
            assert (stored.status, stored.decision.by, stored.decision.note) == ("consumed", "Ann", "fine")

        asyncio.run(scene())

    def test_a_decision_that_nobody_acted_on_is_used_by_the_next_run(
        self, lives: Lives[ApprovalStore]
    ) -> None:
        async def scene() -> None:
            bot = _bot(lives)
            approval_id = str((await bot.run("Go.")).approval_id)
            choice = ApprovalDecision(id=approval_id, approved=True, by="Ann", result=None)
            await lives.next().decide(approval_id, choice)
            result = await bot.run()
            assert (result.text, bot.did) == ("Done.", ["a", "b"])
            assert results(result)["call_gated"] == "null"
            assert (await found(lives.next(), approval_id)).status == "consumed"

        asyncio.run(scene())

    def test_a_contrary_or_late_decision_is_told_who_decided(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            bot = _bot(lives)
            waiting = await bot.run("Go.")
            approval_id = str(waiting.approval_id)
            await lives.next().decide(approval_id, decided(approval_id, False, by="Bea"))
            with pytest.raises(NotFoundError, match="rejected by Bea") as caught:
                await bot.decide(waiting, True)
            assert caught.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
            await bot.decide(waiting, False)
            with pytest.raises(NotFoundError, match="rejected by Bea"):
                await bot.decide(waiting, False)
            assert bot.did == ["a", "b"]

        asyncio.run(scene())

    def test_a_request_that_nobody_decided_in_time_is_expired(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            bot = _bot(lives)
            approval_id = str((await bot.run("Go.", approval_ttl=0.01)).approval_id)
            await asyncio.sleep(0.02)
            assert (await bot.run()).text == "Done."
            assert bot.did == ["a", "b"]
            stored = await found(lives.next(), approval_id)
            assert stored.status == "consumed"
            assert stored.decision is not None
            assert (stored.decision.approved, stored.decision.by) == (False, "expiry")

        asyncio.run(scene())

    def test_a_run_can_go_on_from_the_snapshot_alone(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            bot = _bot(lives)
            waiting = await bot.run("Go.")
            result = await bot.decide_over(None, waiting, True)
            assert (result.text, bot.did, bot.generated) == ("Done.", ["a", "gated", "b"], [0, 1])
            assert list(results(result)) == ["call_a", "call_gated", "call_b"]

        asyncio.run(scene())


def _decide_in_threads(lives: Lives[ApprovalStore], choices: list[ApprovalDecision]) -> list[str | None]:
    """Who decided, as each of several threads was told, which all decided at once, each in its own loop."""
    stores = [lives.next() for _ in choices]
    told: list[str | None] = []
    problems: list[BaseException] = []
    start = threading.Barrier(len(choices))

    async def decide_with_the_others(store: ApprovalStore, choice: ApprovalDecision) -> None:
        start.wait(30)
        held = await store.decide(choice.id, choice)
        told.append(held.decision.by if held.decision is not None else None)

    def decide(store: ApprovalStore, choice: ApprovalDecision) -> None:
        try:
            asyncio.run(decide_with_the_others(store, choice))
        except BaseException as problem:
            problems.append(problem)

    threads = [
        threading.Thread(target=decide, args=pair, daemon=True) for pair in zip(stores, choices, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return told


@contextmanager
def _switching_often() -> Iterator[None]:
    """Threads give way to each other all the time, so that what is not one step is seen to be two."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
