"""Forking a session from any of its saves (R3.10)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import rules_kit
from rules_kit import (
    World,
    asks,
    call,
    check_sent,
    check_transcript,
    dump,
    engine,
    kinds,
    queued,
    results,
    roles,
    said,
    turn,
    user,
)

from lousho_cli import ConfigurationError, ForkPatch, PropagatingToolError, SDKError, tool

world = rules_kit.world


def two_steps(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    cost = {"usage": {"input_tokens": 10, "output_tokens": 1}}
    world.execute([{**turn(call("a", n)), **cost} for n in "12"] + [{"text": "end", **cost}])


def patch_of(call_id: str, result: Any, **more: Any) -> ForkPatch:
    return ForkPatch.model_validate({"tool_result": {"tool_call_id": call_id, "result": result}, **more})


@pytest.mark.parametrize(
    ("step", "messages", "cost"), [(0, 2, 0), (1, 4, 10), (2, 6, 20), (3, 7, 30)], ids=str
)
def test_f50_a_fork_holds_exactly_the_steps_up_to_there(
    world: World, step: int, messages: int, cost: int
) -> None:
    two_steps(world)
    source, history, files = world.load(), world.history(), world.files()
    fork = world.fork(from_step=step)
    assert (fork.session_id, fork.step) == ("s1.fork-1", step)
    stored = world.load(fork.session_id)
    assert stored == fork.checkpoint
    assert (stored.status, stored.step_index, len(stored.messages)) == ("in-progress", step, messages)
    assert stored.usage.input_tokens == cost
    assert engine(stored)["parent"]["sessionId"] == "s1"
    assert engine(stored)["parent"]["seq"] in [entry.seq for entry in history]
    assert (world.load(), world.history(), world.files()) == (source, history, files)


def test_a_fork_of_the_finished_step_finishes_without_the_model(world: World) -> None:
    two_steps(world)
    fork = world.fork(from_step=3)
    done = world.resume(session=fork.session_id)
    assert (done.finish_reason, done.text, world.model.calls) == ("stop", "end", [])


def test_f50_every_fork_has_a_name_of_its_own(world: World) -> None:
    two_steps(world)
    names = [world.fork(from_step=1).session_id for _ in range(3)]
    assert names == ["s1.fork-1", "s1.fork-2", "s1.fork-3"]
    nested = world.fork("s1.fork-2", at=engine(world.load("s1.fork-2"))["seq"])
    assert nested.session_id == "s1.fork-2.fork-1"
    assert results(nested.checkpoint.messages) == {"1": "a done"}
    with pytest.raises(ConfigurationError, match="exists already"):
        world.fork(from_step=1, name="s1.fork-3")
    with pytest.raises(ConfigurationError, match="exists already"):
        world.fork(from_step=1, name="s1")


@pytest.mark.parametrize("wrong", [{"from_step": 9}, {"from_step": -1}, {"at": 99}, {"at": 0}], ids=str)
def test_f50_what_is_not_there_is_refused_with_the_steps_kept(world: World, wrong: dict[str, Any]) -> None:
    two_steps(world)
    with pytest.raises(SDKError, match="steps kept: 0, 1, 2, 3") as refused:
        world.fork(**wrong)
    assert refused.value.code == "LOUSHO_CHECKPOINT_NOT_FOUND"
    assert world.files("s1.fork-1") == {}
    assert world.fork(from_step=1).session_id == "s1.fork-1"


def test_an_unknown_session_cannot_be_forked(world: World) -> None:
    with pytest.raises(SDKError) as refused:
        world.fork("nobody", 1)
    assert refused.value.code == "LOUSHO_CHECKPOINT_NOT_FOUND"


def test_the_newest_save_of_the_step_is_taken(world: World) -> None:
    world.execute(["one"], "hi")
    world.execute(["two"], "again")
    assert said(world.fork(from_step=0).checkpoint.messages) == ["hi", "again"]
    assert said(world.fork(at=1).checkpoint.messages) == ["hi"]


def test_any_entry_can_be_taken_by_its_seq(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("a", "g")])
    world.decide(paused.approval_id, ["end"])
    for entry in world.history():
        fork = world.fork(at=entry.seq)
        assert fork.step == entry.step
        assert dump(fork.checkpoint.messages) == dump(entry.checkpoint.messages)
        check_transcript(fork.checkpoint.messages, open_end=True)


def test_an_absorbed_save_is_reported_as_absorbed(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("b")]
    world.execute([asks("a", "b"), "end"], tool_concurrency=1)
    kept = [entry.seq for entry in world.history()]
    (absorbed,) = set(range(1, max(kept) + 1)) - set(kept)
    with pytest.raises(SDKError, match=f"absorbed by save {absorbed + 1}"):
        world.fork(at=absorbed)


def test_a_dropped_save_is_called_dropped(tmp_path: Any) -> None:
    for kind in rules_kit.KINDS:
        world = rules_kit.World(kind, tmp_path, history_limit=2)
        two_steps(world)
        with pytest.raises(SDKError, match=r"step 1 was dropped .*steps kept: 2, 3"):
            world.fork(from_step=1)


def test_a_result_is_replaced_in_place(world: World) -> None:
    two_steps(world)
    fork = world.fork(from_step=2, patch=patch_of("1", {"forecast": "rain"}))
    before, after = dump(world.load().messages), dump(fork.checkpoint.messages)
    assert [m.get("toolCallId") for m in after] == [m.get("toolCallId") for m in before[:6]]
    assert results(fork.checkpoint.messages) == {"1": {"forecast": "rain"}, "2": "a done"}
    world.execute(["other"], [], session=fork.session_id)
    assert results(world.model.calls[0].messages) == {"1": {"forecast": "rain"}, "2": "a done"}
    assert results(world.load().messages) == {"1": "a done", "2": "a done"}


def test_an_error_that_is_replaced_is_no_error_any_more(world: World) -> None:
    world.execute([asks("nope"), "end"])
    fork = world.fork(from_step=1, patch=patch_of("call_nope", "fine"))
    assert kinds(fork.checkpoint.messages) == [None]


def test_a_pending_call_can_be_given_its_result(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1), world.ledger.tool("b")]
    world.crash([asks("a", "b")], tool_concurrency=1)
    fork = world.fork(from_step=1, patch=patch_of("call_b", "given"))
    done = world.resume(["done"], session=fork.session_id)
    assert results(done.messages) == {"call_a": "a done", "call_b": "given"}
    assert world.ledger.counts() == {"a": 2}


def test_a_result_for_an_unknown_call_is_refused_and_leaves_nothing(world: World) -> None:
    two_steps(world)
    with pytest.raises(ConfigurationError, match="no tool call 'zzz'"):
        world.fork(from_step=1, patch=patch_of("zzz", 1))
    assert world.fork(from_step=1).session_id == "s1.fork-1"


def test_appended_input_waits_behind_pending_calls(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1)]
    world.crash([asks("a")])
    fork = world.fork(from_step=1, patch=ForkPatch(append_input="other way"))
    assert queued(fork.checkpoint) == ["other way"]
    done = world.resume(["done"], session=fork.session_id)
    assert roles(done.messages) == ["system", "user", "assistant", "tool", "user", "assistant"]
    check_sent(world.model)


def test_the_patch_is_applied_in_order(world: World) -> None:
    two_steps(world)

    def shorten(messages: list[Any]) -> list[Any]:
        seen.append(len(messages))
        return messages[:4]

    seen: list[int] = []
    patch = patch_of("1", "new", messages=shorten, business_state={"k": 1}, append_input="other")
    fork = world.fork(from_step=2, patch=patch)
    assert seen == [6]
    assert results(fork.checkpoint.messages) == {"1": "new"}
    assert said(fork.checkpoint.messages) == ["go", "other"]
    assert fork.checkpoint.business_state == {"k": 1}
    assert world.load(fork.session_id) == fork.checkpoint


def test_a_result_patched_behind_the_cut_is_unknown(world: World) -> None:
    two_steps(world)
    with pytest.raises(ConfigurationError, match="no tool call '2'"):
        world.fork(from_step=2, patch=patch_of("2", "x", messages=lambda m: m[:4]))


BREAKING = {
    "a result without its call": lambda m: [*m[:2], m[3]],
    "a call without its result": lambda m: [*m[:3], user("but")],
    "a result twice": lambda m: [*m[:4], m[3]],
    "a result in front of its call": lambda m: [*m[:2], m[3], m[2]],
}


@pytest.mark.parametrize("breaking", BREAKING.values(), ids=BREAKING.keys())
def test_a_rewrite_that_breaks_pairs_is_refused_and_names_the_place(world: World, breaking: Any) -> None:
    two_steps(world)
    with pytest.raises(ConfigurationError, match=r"message \d"):
        world.fork(from_step=2, patch=ForkPatch(messages=breaking))
    assert world.files("s1.fork-1") == {}
    assert world.fork(from_step=1).session_id == "s1.fork-1"


@pytest.mark.parametrize("in_place", [False, True])
def test_a_patch_of_structured_content_reaches_the_fork_and_only_the_fork(
    world: World, in_place: bool
) -> None:
    parts = [{"type": "text", "text": "old"}]
    world.execute(["end"], {"role": "user", "content": parts})

    def change(messages: list[Any]) -> list[Any]:
        if in_place:
            messages[1].content[0]["text"] = "new"
            return messages[:2]
        return [messages[0], {"role": "user", "content": [{"type": "text", "text": "new"}]}]

    fork = world.fork(from_step=1, patch=ForkPatch(messages=change))
    assert said(world.load(fork.session_id).messages) == [[{"type": "text", "text": "new"}]]
    assert said(world.load().messages) == [[{"type": "text", "text": "old"}]]


def test_queued_input_stays_single_in_a_patched_fork(world: World) -> None:
    world.tools = [world.ledger.tool("a"), world.ledger.tool("b", dies=9)]
    world.crash([asks("a"), asks("b")])
    world.crash(input="queued")
    patch = patch_of("call_a", "new", messages=lambda m: m[:4])
    fork = world.fork(from_step=2, patch=patch)
    assert said(fork.checkpoint.messages) == ["go", "queued"]


def test_a_fork_of_a_pause_asks_again_under_another_id(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])
    fork = world.fork(from_step=1)
    assert (fork.checkpoint.status, fork.checkpoint.approval_id) == ("in-progress", None)
    again = world.resume(session=fork.session_id)
    assert again.approval_id not in (None, paused.approval_id)
    world.decide(again.approval_id, ["fork done"])
    assert world.ledger.runs("g") == 1
    assert world.load().approval_id == paused.approval_id
    assert world.decide(paused.approval_id, ["source done"]).session_id == "s1"
    assert world.ledger.runs("g") == 2


def test_a_fork_of_an_approved_call_asks_again(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True, dies=1)]
    paused = world.execute([asks("g")])
    with pytest.raises(PropagatingToolError):
        world.decide(paused.approval_id)
    fork = world.fork(from_step=1)
    assert world.resume(session=fork.session_id).finish_reason == "awaiting-approval"
    assert world.ledger.runs("g") == 1


def test_f37_a_fork_while_the_parent_runs_disturbs_nothing(world: World) -> None:
    async def go() -> None:
        started, release = asyncio.Event(), asyncio.Event()
        runs: list[str] = []

        @tool
        async def slow() -> str:
            "slow"
            runs.append("slow")
            if len(runs) == 1:
                started.set()
                await release.wait()
            return f"run {len(runs)}"

        world.tools = [slow]
        parent = asyncio.ensure_future(world.aexecute([asks("slow"), "parent done"]))
        await started.wait()
        fork = await world.afork(from_step=1)
        child = await world.aexecute(["child done"], [], session=fork.session_id)
        assert child.text == "child done"
        assert kinds(child.messages) == [None]
        release.set()
        assert (await parent).text == "parent done"
        await world.store.checkpoints.delete("s1")
        assert (await world.aexecute(["more"], "next", session=fork.session_id)).text == "more"

    asyncio.run(go())
    check_transcript(world.load("s1.fork-1").messages)


def test_f27_each_branch_holds_its_own_steps_after_a_reload(world: World) -> None:
    world.tools = [world.ledger.tool("a")]
    world.execute([*(turn(call("a", f"p{n}")) for n in range(1, 6)), "parent end"])
    one = world.fork(from_step=3, patch=ForkPatch(append_input="other way"))
    world.execute([turn(call("a", "x4")), "one end"], [], session=one.session_id)
    two = world.fork(from_step=3, patch=patch_of("p2", "patched"))
    world.execute(["two end"], [], session=two.session_id)
    three = world.fork(one.session_id, 4)
    world.execute(["three end"], [], session=three.session_id)
    world.execute([turn(call("a", "p7")), "parent end 2"], "go on")
    done = "a done"
    assert results(world.load("s1").messages) == dict.fromkeys(["p1", "p2", "p3", "p4", "p5", "p7"], done)
    assert results(world.load(one.session_id).messages) == dict.fromkeys(["p1", "p2", "p3", "x4"], done)
    assert results(world.load(two.session_id).messages) == {"p1": done, "p2": "patched", "p3": done}
    assert results(world.load(three.session_id).messages) == dict.fromkeys(["p1", "p2", "p3", "x4"], done)
    assert dump(world.load(three.session_id).messages)[-1]["content"] == "three end"


def test_business_state_of_a_loaded_checkpoint_is_the_callers_own(world: World) -> None:
    world.execute(["hi"], business_state={"k": [1]})
    fork = world.fork(from_step=1)
    fork.checkpoint.business_state["k"].append(2)
    world.load().business_state["k"].append(3)
    assert world.load().business_state == {"k": [1]}
    assert world.load(fork.session_id).business_state == {"k": [1]}


def test_a_step_or_a_save_is_needed_and_not_both(world: World) -> None:
    two_steps(world)
    both: dict[str, Any] = {"from_step": 1, "at": 1}
    for wrong in ({}, both):
        with pytest.raises(ConfigurationError, match="a step or a save"):
            world.fork(**wrong)
