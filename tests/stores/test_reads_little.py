"""What is shown or copied is read, and nothing else: counted in bytes and in records, at any length."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from store_bench import Bench, Turns, calls

from lousho_cli import resume_after_approval_sync
from lousho_cli.errors import NotFoundError, StorageError
from lousho_cli.execution import codec
from lousho_cli.execution.triggers import watching
from lousho_cli.stores import files, journal
from lousho_cli.stores.history_file import history_bytes
from lousho_cli.stores.saves_reader import read_history, read_kept, read_state

STEPS = 120
TURNS: Turns = [*(calls("echo", step=n) for n in range(STEPS)), "done"]
LIMIT = 500


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A session of 120 steps, all of whose saves are kept."""
    bench = Bench(tmp_path_factory.mktemp("long"), limit=LIMIT)
    bench.run("s", "go", TURNS, max_steps=STEPS + 1)
    return bench


@pytest.fixture
def bench(long: Bench, tmp_path: Path) -> Bench:
    """A copy of it."""
    bench = Bench(tmp_path, limit=LIMIT)
    for name, data in long.files().items():
        assert isinstance(data, bytes)
        path = bench.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return bench


class Counts:
    """What was read.

    Attributes:
        bytes: of all files.
        records: parsed, of all journals.
    """

    bytes = 0
    records = 0


@contextmanager
def counting() -> Iterator[Counts]:
    counts = Counts()
    read_at = files.read_at

    def reading(fd: int, offset: int, length: int) -> bytes:
        data = read_at(fd, offset, length)
        counts.bytes += len(data)
        return data

    def parsing(data: Any) -> Any:
        counts.records += 1
        return codec.record_from_json(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "read_at", reading)
        patch.setattr(journal, "record_from_json", parsing)
        yield counts


def ends(bench: Bench) -> dict[int, int]:
    """Where each kept save ends in the journal."""
    return {save.seq: save.end for save in bench.history()}


def test_the_kept_saves_are_read_from_the_history_file_and_the_ends_of_the_journal(bench: Bench) -> None:
    with counting() as counts:
        saves = read_history(bench.folder, "s", LIMIT)
        kept = read_kept(bench.folder, "s", LIMIT)
    assert [save.seq for save in saves] == [seq for seq, _ in kept.saves] if kept else False
    assert counts.records <= 2
    assert counts.bytes < 2 * (bench.history_file().stat().st_size + 2 * 16 * 1024 + 4096)


def test_a_session_at_a_save_is_read_up_to_that_save(bench: Bench) -> None:
    overhead = bench.history_file().stat().st_size + 16 * 1024 + 2 * 4096
    for seq, end in ends(bench).items():
        with counting() as counts:
            state = read_state(bench.folder, "s", LIMIT, seq)
        assert state.seq == seq
        assert end <= counts.bytes <= end + overhead, seq


@pytest.mark.parametrize("shift", [-1, 1, 200])
def test_a_history_file_that_points_to_the_wrong_place_is_not_believed(bench: Bench, shift: int) -> None:
    seq = sorted(ends(bench))[40]
    before = read_state(bench.folder, "s", LIMIT, seq)
    content = json.loads(bench.history_file().read_bytes())
    lines = [json.dumps({**entry, "end": entry["end"] + shift}) for entry in content["entries"]]
    moved = history_bytes("s", LIMIT, None, content["lastStep"], lines)
    bench.history_file().write_bytes(moved)
    assert bench.history()[-1].end == content["entries"][0]["end"] + shift
    after = read_state(bench.folder, "s", LIMIT, seq)
    assert (after.seq, after.log) == (before.seq, before.log)
    fork = bench.fork(at=seq, patch={"append_input": "more"})
    assert fork.checkpoint.messages.log.cut(len(before.log)) == before.log


def test_a_history_file_of_a_session_that_is_gone_is_not_believed(bench: Bench) -> None:
    stale = bench.history_file().read_bytes()
    bench.delete()
    bench.run("s", "another", TURNS, max_steps=STEPS + 1)
    bench.history_file().write_bytes(stale)
    assert {save.at for save in bench.history()}.isdisjoint(
        entry["savedAt"] for entry in json.loads(stale)["entries"]
    )


def test_a_fork_that_changes_no_message_parses_only_the_last_turn(bench: Bench) -> None:
    seq = max(ends(bench)) - 1
    with counting() as counts:
        fork = bench.fork(at=seq, patch={"append_input": "more", "business_state": {"n": 1}})
    assert counts.records < 10
    with counting() as counts:
        assert len(fork.checkpoint.messages) > 2 * STEPS
    assert counts.records > 2 * STEPS


def entries(bench: Bench, session: str) -> list[dict[str, Any]]:
    """A fork's entries of the history without what two forks cannot have in common."""
    content = json.loads(bench.history_file(session).read_bytes())
    return [{key: each[key] for key in each if key not in ("savedAt", "end")} for each in content["entries"]]


@pytest.mark.parametrize("patch", [{}, {"append_input": "more"}, {"business_state": 7}], ids=str)
def test_a_copied_fork_is_the_one_that_is_folded(tmp_path: Path, patch: dict[str, Any]) -> None:
    bench = Bench(tmp_path)
    names = ("echo", "pay", "echo")
    asks = {"tool_calls": [{"name": names[n], "id": f"again-{n}", "args": {"n": n}} for n in range(3)]}
    bench.run("s", "go", [calls("echo", step=1), "done"])
    bench.run("s", "again", ["", "", asks])
    assert bench.loaded().status == "awaiting-approval"
    for seq in sorted(ends(bench)):
        copied = bench.fork(at=seq, patch=patch, new_session_id=f"copied-{seq}")
        file = bench.history_file()
        index = file.read_bytes()
        file.unlink()
        folded = bench.fork(at=seq, patch=patch, new_session_id=f"folded-{seq}")
        file.write_bytes(index)
        one, other = (bench.state(fork.session_id) for fork in (copied, folded))
        assert (one.log, one.queue, one.step, one.fence, one.seq) == (
            other.log, other.queue, other.step, other.fence, other.seq,
        )  # fmt: skip
        listed, expected = (entries(bench, fork.session_id) for fork in (copied, folded))
        assert listed == expected
        assert one.message_count == listed[0]["messages"]
        assert copied.checkpoint.messages == folded.checkpoint.messages


def test_damage_in_what_would_be_copied_is_refused_and_leaves_nothing(bench: Bench) -> None:
    data = bytearray(bench.journal().read_bytes())
    data[len(data) // 2] ^= 1
    bench.journal().write_bytes(data)
    before = bench.files()
    with pytest.raises(StorageError) as caught:
        bench.fork(at=max(ends(bench)), patch={"append_input": "more"})
    assert caught.value.code == "LOUSHO_SESSION_FILE_CORRUPT"
    after = {name: content for name, content in bench.files().items() if not name.endswith(".lock")}
    assert after == {name: content for name, content in before.items() if not name.endswith(".lock")}


def test_the_checkpoint_of_a_fork_is_that_of_its_beginning_whatever_became_of_it(bench: Bench) -> None:
    gone, kept = (bench.fork(from_step=3, new_session_id=name) for name in ("gone", "kept"))
    bench.run("kept", None, TURNS, max_steps=STEPS + 1)
    assert (kept.checkpoint.step_index, kept.checkpoint.status) == (3, "in-progress")
    bench.delete("gone")
    with pytest.raises(NotFoundError, match="gone"):
        _ = gone.checkpoint


@pytest.fixture
def paused(tmp_path: Path) -> tuple[Bench, str]:
    """A session that waits for an approval, and the approval."""
    bench = Bench(tmp_path)
    return bench, str(bench.run("s", "go", [calls("echo", step=1), calls("pay", step=2)]).approval_id)


def approve(bench: Bench, approval_id: str) -> str:
    return resume_after_approval_sync(
        {"id": approval_id, "approved": True}, bench.store.approvals, bench.agent.tools,
        bench.model([calls("echo", step=1), calls("pay", step=2), "paid"]), {"agent": bench.agent},
        bench.store.checkpoints,
    ).text  # fmt: skip


def test_an_approval_reads_its_session_once(paused: tuple[Bench, str]) -> None:
    bench, approval_id = paused
    saves = bench.state().seq
    with counting() as counts:
        assert approve(bench, approval_id) == "paid"
    # All of them, and the last turn once more, to see that nobody went on meanwhile.
    assert counts.records <= saves + 3


def test_what_was_saved_between_the_look_and_the_lock_is_read(paused: tuple[Bench, str]) -> None:
    bench, approval_id = paused

    def meanwhile(point: str) -> None:
        if point == "decision.recorded" and bench.did.count("pay-2") == 0:
            bench.run("s", None, [calls("echo", step=1), calls("pay", step=2), "paid"])

    with watching(meanwhile), pytest.raises(NotFoundError, match="already approved"):
        approve(bench, approval_id)
    assert bench.did.count("pay-2") == 1
    assert bench.loaded().status == "finished"
