"""R3.10, F27, F50: forks in files stand alone, leave their source alone, and are whole or not there."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from store_bench import TWO_STEPS, Bench, Turns, calls, sealed, texts

from lousho_cli.errors import ConfigurationError, SDKError, StorageError
from lousho_cli.execution.state import Record
from lousho_cli.stores.lease import Lease


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.run()
    return bench


def of(bench: Bench, session: str) -> dict[str, bytes | str]:
    return {name: data for name, data in bench.files().items() if Path(name).stem == session}


def test_the_source_is_unchanged_byte_for_byte(bench: Bench) -> None:
    before = of(bench, "s")
    bench.fork(from_step=1, patch={"append_input": "other way"})
    bench.fork(from_step=2, patch={"tool_result": {"tool_call_id": "echo-1", "result": "patched"}})
    bench.fork(at=1, patch={"messages": lambda messages: messages})
    bench.run("s.fork-1", "")
    assert of(bench, "s") == before


@pytest.mark.parametrize("torn", [b'{"seq":9,"at', bytes(100)])
def test_a_torn_end_of_the_source_is_neither_copied_nor_cut(bench: Bench, torn: bytes) -> None:
    data = bench.journal().read_bytes() + torn
    bench.journal().write_bytes(data)
    bench.fork(from_step=3)
    assert bench.journal().read_bytes() == data
    assert all(map(sealed, bench.journal("s.fork-1").read_bytes().splitlines()))


def test_a_last_save_without_line_break_can_be_forked(bench: Bench) -> None:
    bench.journal().write_bytes(bench.journal().read_bytes()[:-1])
    bench.fork(at=6)
    assert texts(bench.loaded("s.fork-1")) == texts(bench.loaded())
    assert all(map(sealed, bench.journal("s.fork-1").read_bytes().splitlines()))


def test_a_fork_needs_none_of_its_parents(bench: Bench) -> None:
    bench.fork(from_step=1)
    bench.fork("s.fork-1", from_step=1)
    bench.delete()
    bench.delete("s.fork-1")
    assert bench.run("s.fork-1.fork-1", "").text == "done"
    assert bench.state("s.fork-1.fork-1").parent == {"sessionId": "s.fork-1", "seq": 4, "step": 1}


def test_f27_each_session_holds_its_own_steps_only(bench: Bench) -> None:
    bench.fork(from_step=1, patch={"append_input": "other way"})
    bench.run("s.fork-1", "", [*TWO_STEPS[:1], calls("echo", step=7), "forked"])
    bench.fork(from_step=1, patch={"tool_result": {"tool_call_id": "echo-1", "result": "patched"}})
    bench.run("s.fork-2", "")
    bench.fork("s.fork-1", from_step=2)
    bench.run("s", "more", [*TWO_STEPS, "parent goes on"])
    both = ["system: Be brief.", "user: go", "assistant: "]
    assert texts(bench.loaded("s.fork-1")) == [
        *both, 'tool: "result 1"', "user: other way", "assistant: ", 'tool: "result 7"', "assistant: forked",
    ]  # fmt: skip
    assert texts(bench.loaded("s.fork-2"))[3] == 'tool: "patched"'
    assert texts(bench.loaded("s.fork-1.fork-1")) == texts(bench.loaded("s.fork-1"))[:7]
    assert texts(bench.loaded("s"))[-1] == "assistant: parent goes on"


def test_a_fork_begins_a_history_of_its_own(bench: Bench) -> None:
    bench.fork(from_step=1)
    assert bench.seqs("s.fork-1") == bench.kept_in_file("s.fork-1") == [4]
    bench.run("s.fork-1", "")
    assert bench.seqs("s.fork-1")[-1] == 4
    assert bench.kept_in_file("s.fork-1") == bench.seqs("s.fork-1")[::-1]


def test_a_taken_name_is_refused_and_untouched(bench: Bench) -> None:
    bench.run("taken")
    before = bench.files()
    for name in ("taken", "s"):
        with pytest.raises(ConfigurationError, match=name):
            bench.fork(from_step=1, new_session_id=name)
    assert bench.files() == before


def test_f50_the_default_name_is_the_first_free_one(bench: Bench) -> None:
    assert [bench.fork(from_step=1).session_id for _ in range(3)] == [f"s.fork-{n}" for n in (1, 2, 3)]
    bench.delete("s.fork-2")
    assert bench.fork(from_step=1).session_id == "s.fork-2"


@pytest.mark.parametrize("where", [{"from_step": 9}, {"from_step": -1}, {"at": 99}, {"at": 0}])
def test_f50_a_fork_from_nowhere_leaves_nothing(bench: Bench, where: dict[str, Any]) -> None:
    before = bench.files()
    with pytest.raises(SDKError) as caught:
        bench.fork(**where)
    assert caught.value.code == "LOUSHO_CHECKPOINT_NOT_FOUND"
    assert "steps kept: 0, 1, 2, 3" in caught.value.message
    assert bench.files() == before


def test_a_patch_that_does_not_fit_leaves_nothing(bench: Bench) -> None:
    before = bench.files()
    with pytest.raises(ConfigurationError):
        bench.fork(from_step=2, patch={"messages": lambda messages: [*messages[:2], *messages[3:]]})
    with pytest.raises(ConfigurationError):
        bench.fork(from_step=2, patch={"tool_result": {"tool_call_id": "nobody", "result": 1}})
    assert bench.files() == before


def _without_history(journal: Path) -> None:
    """A fork's history file is written when its journal is whole: beside a half-made one there is none."""
    (journal.parent.parent / "checkpoint-history" / f"{journal.stem}.json").unlink()


def test_f50_a_half_made_fork_is_never_there(bench: Bench) -> None:
    bench.fork(from_step=2)
    path = bench.journal("s.fork-1")
    whole = path.read_bytes()
    _without_history(path)
    for cut in range(len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert [session.session_id for session in bench.sessions()] == ["s"], cut
        assert bench.load("s.fork-1") is None, cut


@pytest.mark.parametrize("part", [0.05, 0.2, 0.5, 0.9, 0.99])
def test_f50_the_name_of_a_half_made_fork_is_free(bench: Bench, part: float) -> None:
    bench.fork(from_step=2)
    path = bench.journal("s.fork-1")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    _without_history(path)
    assert bench.fork(from_step=1).session_id == "s.fork-1"
    assert bench.state("s.fork-1").step == 1
    bench.delete("s.fork-1")
    path.write_bytes(whole[: int(len(whole) * part)])
    bench.run("s.fork-1", "hello", ["hi"])
    assert texts(bench.loaded("s.fork-1"))[1:] == ["user: hello", "assistant: hi"]
    assert bench.seqs("s.fork-1")
    assert bench.state("s.fork-1").parent is None


def test_a_source_that_vanishes_meanwhile_is_an_error_of_ours_or_no_matter(bench: Bench) -> None:
    def steal(messages: Any) -> Any:
        bench.journal().unlink()
        return messages

    try:
        bench.fork(from_step=1, patch={"messages": steal})
    except SDKError:
        assert bench.sessions() == []
    else:
        assert bench.run("s.fork-1", "").text == "done"


def test_a_source_that_is_replaced_meanwhile_is_not_mixed_into_the_fork(bench: Bench) -> None:
    expected = texts(bench.loaded())[:4]

    def replace() -> None:
        bench.delete()
        bench.run("s", "quite another talk", ["a", "b"])

    def swap(messages: Any) -> Any:
        thread = threading.Thread(target=replace)
        thread.start()
        thread.join()
        return messages

    try:
        bench.fork(from_step=1, patch={"messages": swap})
    except SDKError:
        assert [session.session_id for session in bench.sessions()] == ["s"]
    else:
        assert texts(bench.loaded("s.fork-1")) == expected


def test_a_fork_while_the_source_is_being_run_takes_what_is_saved(bench: Bench) -> None:
    async def scene() -> None:
        session = await bench.store.checkpoints.open_session("s")
        await session.save(Record("save", "in-progress", 1, add=[{"role": "user", "content": "running"}]))
        await asyncio.to_thread(bench.fork, at=7)
        await session.save(Record("save", "in-progress", 1, add=[{"role": "user", "content": "on"}]))
        await session.close()

    asyncio.run(scene())
    assert texts(bench.loaded("s.fork-1"))[-1] == "user: running"
    assert texts(bench.loaded())[-1] == "user: on"


def test_f50_two_forks_at_the_same_moment_both_succeed(bench: Bench) -> None:
    lease = Lease(bench.folder, "s.fork-1")
    timer = threading.Timer(0.3, lease.release)
    timer.start()
    try:
        name = bench.fork(from_step=1).session_id
    finally:
        timer.join()
    assert name in ("s.fork-1", "s.fork-2")
    assert bench.loaded(name).step_index == 1


def test_f50_many_forks_at_once_each_get_a_name(bench: Bench) -> None:
    names: list[str] = []
    problems: list[BaseException] = []

    def fork() -> None:
        try:
            for _ in range(5):
                names.append(bench.fork(from_step=1).session_id)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=fork) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert sorted(names) == sorted(f"s.fork-{n}" for n in range(1, 21))


def test_a_paused_source_forks_into_an_unfinished_session_without_its_approval(bench: Bench) -> None:
    turns: Turns = [calls("echo", "pay", step=1), "done"]
    first = bench.run("p", turns=turns)
    bench.fork("p", from_step=1)
    fork = bench.loaded("p.fork-1")
    assert (fork.status, fork.approval_id) == ("in-progress", None)
    second = bench.run("p.fork-1", "", turns)
    assert second.finish_reason == "awaiting-approval"
    assert second.approval_id != first.approval_id
    assert bench.did.count("echo-1") == 2


def test_forking_damaged_data_is_refused_and_makes_nothing(bench: Bench) -> None:
    data = bytearray(bench.journal().read_bytes())
    data[len(data) // 2] ^= 1
    bench.journal().write_bytes(data)
    before = bench.files()
    with pytest.raises(StorageError) as caught:
        bench.fork(from_step=1)
    assert caught.value.code == "LOUSHO_SESSION_FILE_CORRUPT"
    assert bench.files() == before
