"""Approvals in a key-value store: never lost, decided once, listed while their session waits (R3.4)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from kv_bench import KINDS, DictKV, KVBench, SwapKV, Turns, calls, texts

from lousho_cli import ApprovalDecision, ExecutionResult, ToolRegistry, resume_after_approval
from lousho_cli.errors import NotFoundError, SessionAwaitingApprovalError, StorageError
from lousho_cli.execution.protocols import StoredApproval
from lousho_cli.stores.kv import KVStore

PAY: Turns = [calls("pay", step=1), "paid"]

each_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def pause(bench: KVBench, session: str = "s") -> str:
    approval_id = bench.run(session, "go", PAY).approval_id
    assert approval_id is not None
    return approval_id


def decide(bench: KVBench, approval_id: str, approved: bool = True, stored: bool = True) -> ExecutionResult:
    return asyncio.run(
        resume_after_approval(
            {"id": approval_id, "approved": approved, "by": "ann"}, bench.store.approvals,
            ToolRegistry(bench.tools), bench.model(PAY), {"agent": bench.agent},
            bench.store.checkpoints if stored else None,
        )
    )  # fmt: skip


def listed(bench: KVBench, status: str | None = "pending") -> list[str]:
    return [stored.pending.id for stored in asyncio.run(bench.store.approvals.list(status=status))]


def get(bench: KVBench, approval_id: str) -> StoredApproval:
    stored: StoredApproval | None = asyncio.run(bench.store.approvals.get(approval_id))
    assert stored is not None
    return stored


def test_approvals_lie_under_keys_of_their_own() -> None:
    bench = KVBench(prefix="app:")
    ids = [pause(bench, "one"), pause(bench, "two")]
    decide(bench, ids[0])
    own = {key for key in bench.kv.data if key.startswith("app:#")}
    assert own == {
        "app:#approvals", *(f"app:#approvals/{id}" for id in ids), f"app:#approvals/{ids[0]}/decision",
    }  # fmt: skip
    assert bench.kv.json("app:#approvals") == ids
    request = bench.kv.json(f"app:#approvals/{ids[1]}")
    assert list(request) == ["version", "pending"]
    assert request["pending"] == bench.kv.json("app:two")["engine"]["approval"]
    decision = bench.kv.json(f"app:#approvals/{ids[0]}/decision")
    assert (decision["version"], decision["approved"], decision["by"]) == (1, True, "ann")
    assert {"at", "consumedAt", "how"} <= set(decision)


@pytest.mark.parametrize("id", ["a/decision", "a#b", "a%2Fdecision", "a"])
def test_ids_of_approvals_share_no_key(id: str) -> None:
    bench = KVBench()
    pending = get(bench, pause(bench)).pending
    others = ["a/decision", "a#b", "a%2Fdecision", "a"]

    snapshot = bench.load()

    async def scene() -> list[StoredApproval | None]:
        approvals = bench.store.approvals
        for other in others:
            await approvals.save(pending.model_copy(update={"id": other}), snapshot)
        await approvals.decide(id, ApprovalDecision(id=id, approved=True))
        return [await approvals.get(other) for other in others]

    stored = asyncio.run(scene())
    assert [each.pending.id for each in stored if each is not None] == others
    assert [each.status for each in stored if each is not None] == [
        "approved" if other == id else "pending" for other in others
    ]


@each_kind
def test_an_approval_goes_from_pending_to_consumed(make: Callable[..., DictKV]) -> None:
    bench = KVBench(make())
    id = pause(bench)
    assert listed(bench) == listed(bench, None) == [id]
    assert get(bench, id).status == "pending"
    assert get(bench, id).checkpoint() == bench.load()
    assert decide(bench, id).text == "paid"
    assert get(bench, id).status == "consumed"
    assert (listed(bench), listed(bench, "consumed"), listed(bench, None)) == ([], [id], [id])
    with pytest.raises(NotFoundError, match="already approved by ann"):
        decide(bench, id, approved=False)
    assert bench.did.count("pay-1") == 1


@each_kind
def test_of_deciders_at_the_same_time_exactly_one_wins(make: Callable[..., DictKV]) -> None:
    bench = KVBench(make())
    id = pause(bench)
    stores = [bench.store, KVStore(bench.kv)]

    async def scene() -> list[Any]:
        decisions = [
            ApprovalDecision(id=id, approved=number % 2 == 0, by=f"person {number}") for number in range(8)
        ]
        return await asyncio.gather(
            *(stores[number % 2].approvals.decide(id, each) for number, each in enumerate(decisions))
        )

    held = [each.decision for each in asyncio.run(scene())]
    assert len({(each.by, each.approved) for each in held}) == 1
    assert get(bench, id).decision == held[0]


@each_kind
def test_pauses_at_the_same_time_are_all_listed(make: Callable[..., DictKV]) -> None:
    bench = KVBench(make())

    async def scene() -> list[ExecutionResult]:
        return await asyncio.gather(*(bench.arun(f"s{n}", "go", PAY) for n in range(6)))

    ids = {result.approval_id for result in asyncio.run(scene())}
    assert set(listed(bench)) == ids


def test_a_list_shared_by_processes_loses_no_request() -> None:
    data: dict[str, str] = {}
    benches = [KVBench(SwapKV(data)) for _ in range(4)]

    async def scene() -> list[ExecutionResult]:
        return await asyncio.gather(*(bench.arun(f"s{n}", "go", PAY) for n, bench in enumerate(benches)))

    ids = {result.approval_id for result in asyncio.run(scene())}
    assert set(listed(benches[0])) == ids


@each_kind
def test_a_crash_anywhere_in_a_pause_leaves_what_can_be_decided(make: Callable[..., DictKV]) -> None:
    whole = KVBench(make())
    pause(whole)
    for dies_at in range(len(whole.kv.did)):
        before = KVBench(make())
        before.kv.dies_at = dies_at
        with suppress(StorageError):
            before.run("s", "go", PAY)
        data = {key: value for key, value in before.kv.data.items() if not key.endswith("#lease")}
        after = KVBench(make(data))
        if "s" not in data or after.load().status != "awaiting-approval":
            assert listed(after) == []
            pause(after)
        id = after.load().approval_id
        assert id is not None
        assert listed(after) == [id]
        assert decide(after, id).text == "paid"
        assert after.did.count("pay-1") == 1


def test_a_request_that_was_lost_is_rebuilt_when_its_session_is_opened() -> None:
    bench = KVBench()
    id = pause(bench)
    pending = get(bench, id).pending
    for key in [key for key in bench.kv.data if key.startswith("#approvals")]:
        del bench.kv.data[key]
    assert listed(bench) == []
    with pytest.raises(SessionAwaitingApprovalError):
        bench.run("s", [], PAY)
    assert listed(bench) == [id]
    assert get(bench, id).pending == pending
    assert decide(bench, id).text == "paid"


def test_a_request_whose_session_does_not_wait_for_it_is_not_pending() -> None:
    bench = KVBench()
    id = pause(bench)
    bench.delete()
    assert listed(bench) == []
    assert pause(bench) != id
    assert len(listed(bench)) == 1
    with pytest.raises(NotFoundError, match="no longer waits"):
        decide(bench, id)


def test_a_run_without_a_stored_session_goes_on_from_the_snapshot() -> None:
    bench = KVBench()
    result = asyncio.run(bench.arun(None, "go", PAY, checkpoint_store=None))
    assert result.approval_id is not None
    assert listed(bench) == [result.approval_id]
    assert "snapshot" in bench.kv.json(f"#approvals/{result.approval_id}")
    done = decide(bench, result.approval_id, stored=False)
    assert (done.text, bench.did.count("pay-1")) == ("paid", 1)


def test_a_request_that_expired_is_skipped() -> None:
    bench = KVBench()
    id, other = pause(bench), pause(bench, "other")
    del bench.kv.data[f"#approvals/{id}"]
    assert listed(bench) == [other]
    with pytest.raises(NotFoundError, match="there is no approval"):
        decide(bench, id)


def test_a_result_and_edited_arguments_survive_in_a_decision() -> None:
    bench = KVBench()
    id = pause(bench)
    for given in ({"result": None}, {"result": {"a": [1, None]}}, {"arguments": {"n": 7}, "note": "less"}):
        bench.kv.data.pop(f"#approvals/{id}/decision", None)
        wanted = ApprovalDecision(id=id, approved=True, by="ann", **given)
        held = asyncio.run(bench.store.approvals.decide(id, wanted))
        assert held.decision == wanted == get(bench, id).decision


def test_deciding_what_nobody_asked_is_an_error() -> None:
    with pytest.raises(NotFoundError):
        asyncio.run(KVBench().store.approvals.decide("x", ApprovalDecision(id="x", approved=True)))


@pytest.mark.parametrize("part", ["", "/decision"])
def test_approvals_of_a_newer_version_are_refused_and_left_alone(part: str) -> None:
    bench = KVBench()
    id = pause(bench)
    asyncio.run(bench.store.approvals.decide(id, ApprovalDecision(id=id, approved=True, by="ann")))
    key = f"#approvals/{id}{part}"
    bench.kv.data[key] = json.dumps({**bench.kv.json(key), "version": 2})
    before = dict(bench.kv.data)
    with pytest.raises(StorageError, match=r"version 2.*up to version 1") as caught:
        listed(bench)
    assert caught.value.code == "LOUSHO_CHECKPOINT_VERSION"
    assert bench.kv.data == before


@pytest.mark.parametrize("value", ["[", "{}", '{"pending": {"id": "ap_other"}}', "7"])
def test_a_damaged_request_is_an_error_that_names_its_key(value: str) -> None:
    bench = KVBench()
    id = pause(bench)
    bench.kv.data[f"#approvals/{id}"] = value
    with pytest.raises(StorageError, match=f"#approvals/{id}") as caught:
        listed(bench)
    assert caught.value.code == "LOUSHO_SESSION_FILE_CORRUPT"


def test_a_rejection_reaches_the_model() -> None:
    bench = KVBench(SwapKV())
    decide(bench, pause(bench), approved=False)
    assert "rejected" in texts(bench.load())[-2]
    assert "pay-1" not in bench.did
