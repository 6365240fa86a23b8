"""When a checkpoint is saved, and what it says (R3.1)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import rules_kit
from rules_kit import World, asks, call, dump, engine, queued, results, roles, turn

from lousho_cli import Cancel, Checkpoint, PropagatingToolError, tool

world = rules_kit.world


def shape(entry: Any) -> tuple[str, int, int]:
    return (entry.status, entry.step, len(entry.checkpoint.messages))


def test_every_kind_of_save_in_order(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("a", "g")])
    world.decide(paused.approval_id, ["end"])
    history = world.history()[::-1]
    assert [shape(entry) for entry in history] == [
        ("in-progress", 0, 2),
        ("in-progress", 1, 3),
        ("in-progress", 1, 4),
        ("awaiting-approval", 1, 4),
        ("in-progress", 1, 4),
        ("in-progress", 1, 5),
        ("finished", 2, 6),
    ]
    assert history[3].checkpoint.approval_id == paused.approval_id
    assert [entry.checkpoint.approval_id for entry in history if entry is not history[3]] == [None] * 6
    assert [entry.seq for entry in history] == sorted({entry.seq for entry in history})
    assert history[-1].checkpoint == world.load()


def test_the_input_is_saved_before_the_model_is_asked(world: World) -> None:
    async def look(request: Any) -> str:
        stored = await world.store.checkpoints.load("s1")
        assert stored is not None
        seen.append((stored.status, stored.step_index, roles(stored.messages)))
        return "done"

    seen: list[Any] = []
    world.execute([look])
    assert seen == [("in-progress", 0, ["system", "user"])]


def test_the_turn_is_saved_before_its_tools_run(world: World) -> None:
    seen: list[Checkpoint | None] = []

    @tool
    async def probe() -> str:
        "probe"
        seen.append(await world.store.checkpoints.load("s1"))
        return "ok"

    world.tools = [probe]
    world.execute([asks("probe", "gone"), "done"])
    assert seen[0] is not None
    assert (seen[0].status, seen[0].step_index) == ("in-progress", 1)
    assert [one.id for one in seen[0].tool_calls] == ["call_probe", "call_gone"]


def test_each_result_is_saved_before_the_next_call_starts(world: World) -> None:
    seen: list[Any] = []

    @tool
    async def probe(n: int) -> int:
        "probe"
        stored = await world.store.checkpoints.load("s1")
        assert stored is not None
        seen.append(list(results(stored.messages).values()))
        return n

    world.tools = [probe]
    world.execute([turn(*(call("probe", str(n), n=n) for n in range(3))), "done"], tool_concurrency=1)
    assert seen == [[], [0], [0, 1]]


def test_a_turns_results_share_one_history_entry(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    world.execute([turn(*(call("a", str(n)) for n in range(5))), "done"], tool_concurrency=1)
    assert [shape(entry)[2] for entry in world.history()[::-1]] == [2, 3, 8, 9]


def test_saves_that_abort_or_queue_keep_an_entry_of_their_own(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("b", dies=2)]
    world.crash([asks("a", "b")], tool_concurrency=1)
    world.crash(input="queued", tool_concurrency=1)
    cancel = Cancel()
    cancel.cancel()
    world.resume(cancel=cancel)
    history = world.history()[::-1]
    assert [shape(entry)[2] for entry in history] == [2, 3, 4, 4, 6]
    assert queued(history[3].checkpoint) == ["queued"]
    assert history[4].checkpoint.finish_reason == "aborted"


def test_running_out_of_steps_is_saved_as_finished(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    world.execute([asks("a")], max_steps=1)
    stored = world.load()
    assert (stored.status, stored.finish_reason, stored.step_index) == ("finished", "max-steps", 1)


@pytest.mark.parametrize("script", [[{"error": "the model died"}], [asks("a"), {"error": "the model died"}]])
def test_a_failed_run_keeps_its_last_checkpoint(world: World, script: list[Any]) -> None:
    world.tools = [world.ledger.tool("a")]
    world.crash(script)
    stored = world.load()
    assert (stored.status, stored.step_index) == ("in-progress", len(script) - 1)
    assert stored == world.history()[0].checkpoint


def test_the_history_limit_keeps_the_newest_and_the_latest_state_always(tmp_path: Any) -> None:
    for kind in rules_kit.KINDS:
        for limit in (0, 1, 3):
            world = World(kind, tmp_path / f"{kind}{limit}", history_limit=limit)
            world.tools = [world.ledger.tool("a", dies=1)]
            world.crash([asks("a")])
            world.execute([asks("a"), "done"], "queued")
            assert len(world.history()) == limit
            assert rules_kit.said(world.load().messages) == ["go", "queued"]


def test_a_result_out_of_order_is_in_the_checkpoint_at_once(world: World) -> None:
    @tool
    async def slow() -> str:
        "slow"
        await asyncio.sleep(0.02)
        raise PropagatingToolError("slow died")

    world.tools = [slow, world.ledger.tool("fast")]
    world.crash([asks("slow", "fast")])
    stored = world.load()
    assert results(stored.messages) == {}
    assert engine(stored)["results"]["call_fast"]["content"] == '"fast done"'


def test_the_checkpoint_has_the_documented_keys(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    world.execute([asks("g")], business_state={"k": 1})
    data = world.load().model_dump(mode="json", by_alias=True, exclude_none=True)
    assert data.keys() >= {
        "agentId", "sessionId", "stepIndex", "messages", "toolCalls", "usage", "businessState", "status",
        "approvalId", "agentFingerprint", "runConfig",
    }  # fmt: skip
    assert data["toolCalls"][0]["function"] == {"name": "g", "arguments": "{}"}
    assert Checkpoint.of(data) == world.load()


def test_saving_a_loaded_checkpoint_changes_nothing(world: World) -> None:
    world.tools = [world.ledger.tool("fast"), world.ledger.tool("dies", dies=9, on_interrupt="ask")]
    world.crash([asks("dies", "fast")])
    with pytest.raises(PropagatingToolError):
        world.decide(world.resume().approval_id)
    world.execute(input="queued")
    before = world.load()
    asyncio.run(world.store.checkpoints.save("s1", before))
    after = world.load()
    assert dump(after.messages) == dump(before.messages)
    for key in ("queue", "results", "marks", "approval", "run"):
        assert engine(after).get(key) == engine(before).get(key), key
    assert (after.status, after.approval_id) == (before.status, before.approval_id)
