"""What an approval store has to keep of a request and of the decision on it."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from ..errors import SDKError
from ..execution.protocols import EXPIRY, ApprovalStore, StoredApproval
from ..execution.records import ApprovalDecision, Checkpoint, PendingApproval
from ..execution.unset import UNSET
from .lives import ApprovalFixtures, Lives
from .sameness import check_equal, check_same, json_of
from .samples import AT, NUMBERS, ODD_IDS, ODD_TEXT, asked_for, paused

APPROVAL_IDS = [id for id in ODD_IDS if len(id) < 100]
"""Ids that are all different requests. The engine makes short ones."""

DECISIONS: dict[str, dict[str, Any]] = {
    "approved": {"approved": True},
    "rejected": {"approved": False},
    "note": {"approved": False, "note": ODD_TEXT},
    "empty-note": {"approved": False, "note": ""},
    "by": {"approved": True, "by": "Zoë <zoe@example.org>"},
    "arguments": {"approved": True, "arguments": {"n": 2, "to": None, "text": ODD_TEXT, "numbers": NUMBERS}},
    "no-arguments": {"approved": True, "arguments": {}},
    "result": {"approved": True, "result": {"looked": ["up", NUMBERS], "text": ODD_TEXT}},
    "result-none": {"approved": True, "result": None},
    "result-false": {"approved": True, "result": False},
    "result-zero": {"approved": True, "result": 0},
    "result-empty-text": {"approved": True, "result": ""},
    "result-empty-list": {"approved": True, "result": []},
    "all": {"approved": True, "note": "n", "by": "Ann", "result": {"a": 1}},
}
"""The fields of decisions, by what each has in it."""


def pending(approval_id: str, session_id: str = "s") -> PendingApproval:
    """A request with every field."""
    return PendingApproval.model_validate(asked_for(session_id, approval_id))


async def ask(store: ApprovalStore, approval_id: str = "ap_1", session_id: str = "s") -> None:
    """Save a request and the checkpoint that waits for it."""
    await store.save(pending(approval_id, session_id), paused(session_id, approval_id))


async def found(store: ApprovalStore, approval_id: str = "ap_1") -> StoredApproval:
    stored = await store.get(approval_id)
    assert stored is not None, f"the request {approval_id!r} is not there"
    return stored


async def listed(store: ApprovalStore, **which: Any) -> list[str]:
    """The ids of the listed approvals; their order is the store's."""
    return sorted(stored.pending.id for stored in await store.list(**which))


def decided(approval_id: str = "ap_1", approved: bool = True, by: str = "Ann") -> ApprovalDecision:
    return ApprovalDecision(id=approval_id, approved=approved, by=by)


def check_decision(stored: StoredApproval, decision: ApprovalDecision) -> None:
    """Fail unless this very decision is the one that holds."""
    __tracebackhide__ = True
    assert stored.decision is not None, "the decision is not there"
    check_equal(_fields(stored.decision), _fields(decision))


def _fields(decision: ApprovalDecision) -> dict[str, Any]:
    """A decision's fields; a result that was not given is told from a result of None."""
    fields = {name: getattr(decision, name) for name in ("id", "approved", "note", "arguments", "by")}
    return fields if decision.result is UNSET else {**fields, "result": decision.result}


class RequestContract(ApprovalFixtures):
    """`save`, `get`, `list`, and what `decide` and `consume` leave behind."""

    def test_an_approval_nobody_asked_for_is_not_there(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            assert await lives.store.get("ap_0") is None
            assert await listed(lives.store) == []
            with pytest.raises(SDKError) as caught:
                await lives.store.decide("ap_0", decided("ap_0"))
            assert caught.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
            assert await listed(lives.store, status=None) == []

        asyncio.run(scene())

    def test_a_request_is_kept_with_its_snapshot(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            await ask(lives.store)
            for store in (lives.store, lives.next()):
                stored = await found(store)
                check_equal(json_of(stored.pending), json_of(pending("ap_1")))
                assert (stored.status, stored.decision, stored.decided_at) == ("pending", None, None)
                snapshot = stored.checkpoint()
                assert snapshot is not None
                check_same(Checkpoint.of(snapshot), paused("s"))

        asyncio.run(scene())

    def test_a_request_without_a_session_is_kept_too(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            request = PendingApproval(id="ap_1", tool_name="act", tool_call_id="c1")
            snapshot = paused("s").model_copy(update={"session_id": None})
            await lives.store.save(request, snapshot)
            stored = await found(lives.next())
            check_equal(json_of(stored.pending), json_of(request))
            check_same(stored.checkpoint(), snapshot)
            assert await listed(lives.next()) == ["ap_1"]

        asyncio.run(scene())

    def test_approvals_do_not_touch_each_other_whatever_their_ids(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            for approval_id in APPROVAL_IDS:
                await ask(lives.store, approval_id, f"session of {approval_id}"[:200])
            for approval_id in APPROVAL_IDS[::2]:
                await lives.store.decide(approval_id, decided(approval_id, by=approval_id))
            store = lives.next()
            for approval_id in APPROVAL_IDS:
                stored = await found(store, approval_id)
                by = stored.decision.by if stored.decision is not None else None
                expected = approval_id if approval_id in APPROVAL_IDS[::2] else None
                assert (stored.pending.id, by) == (approval_id, expected)
            assert await listed(store) == sorted(APPROVAL_IDS[1::2])
            assert await listed(store, status="approved") == sorted(APPROVAL_IDS[::2])

        asyncio.run(scene())

    def test_a_request_that_is_saved_again_replaces_the_one_before(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            await ask(lives.store)
            again = pending("ap_1").model_copy(update={"args": {"n": 9}, "digest": "d9"})
            await lives.store.save(again, paused("s"))
            check_equal(json_of((await found(lives.next())).pending), json_of(again))
            assert await listed(lives.next(), status=None) == ["ap_1"]

        asyncio.run(scene())

    def test_a_request_that_is_saved_again_keeps_its_decision(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            await ask(lives.store)
            await lives.store.decide("ap_1", decided())
            await ask(lives.store)
            stored = await found(lives.next())
            assert stored.status == "approved"
            check_decision(stored, decided())

        asyncio.run(scene())

    @pytest.mark.parametrize("fields", DECISIONS)
    def test_a_decision_is_kept_with_all_its_fields(self, lives: Lives[ApprovalStore], fields: str) -> None:
        async def scene() -> None:
            decision = ApprovalDecision(id="ap_1", **{"by": "Ann", **DECISIONS[fields]})
            await ask(lives.store)
            check_decision(await lives.store.decide("ap_1", decision), decision)
            stored = await found(lives.next())
            check_decision(stored, decision)
            assert stored.status == ("approved" if decision.approved else "rejected")

        asyncio.run(scene())

    def test_a_decision_says_when_it_was_made(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            await ask(lives.store)
            made = await lives.store.decide("ap_1", decided())
            assert made.decided_at is not None
            assert datetime.fromisoformat(made.decided_at).utcoffset() == timedelta(0), "decided_at is UTC"
            assert datetime.fromisoformat(made.decided_at) > datetime.fromisoformat(AT)
            assert (await found(lives.next())).decided_at == made.decided_at

        asyncio.run(scene())

    def test_a_decision_that_was_taken_up_keeps_its_record(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            await ask(lives.store)
            made = await lives.store.decide("ap_1", decided())
            for _ in range(2):
                await lives.store.consume("ap_1")
                stored = await found(lives.next())
                assert (stored.status, stored.decided_at) == ("consumed", made.decided_at)
                check_decision(stored, decided())
                check_equal(json_of(stored.pending), json_of(pending("ap_1")))

        asyncio.run(scene())

    def test_approvals_are_listed_by_their_status(self, lives: Lives[ApprovalStore]) -> None:
        async def scene() -> None:
            names = ("pending", "approved", "rejected", "expired", "consumed")
            for name in names:
                await ask(lives.store, name, f"session-{name}")
            await lives.store.decide("approved", decided("approved"))
            await lives.store.decide("rejected", decided("rejected", False))
            await lives.store.decide("expired", decided("expired", False, by=EXPIRY))
            await lives.store.decide("consumed", decided("consumed"))
            await lives.store.consume("consumed")
            for store in (lives.store, lives.next()):
                assert {name: await listed(store, status=name) for name in names} == {n: [n] for n in names}
                assert await listed(store) == ["pending"]
                assert await listed(store, status=None) == sorted(names)

        asyncio.run(scene())
