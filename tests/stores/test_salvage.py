"""What can be kept of a damaged journal, whatever happened to it; and that a repair survives a power cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_bench import Bench

from lousho_cli.stores.folder import agent_folder
from lousho_cli.stores.journal_fold import read_journal
from lousho_cli.stores.repair import RepairJournal
from lousho_cli.stores.salvage import salvage
from lousho_cli.testing import disk_states, record_files


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The lines of a finished session's journal."""
    bench = Bench(tmp_path_factory.mktemp("whole"))
    bench.run()
    return bench.journal().read_bytes().splitlines(keepends=True)


@given(data=st.data())
def test_what_is_kept_opens_and_is_what_was_saved_first(whole: list[bytes], data: st.DataObject) -> None:
    lines = list(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        where = data.draw(st.integers(0, len(lines) - 1))
        kind = data.draw(st.sampled_from(("bits", "cut", "zeros", "remove", "swap", "repeat", "garbage")))
        line = lines[where]
        at = data.draw(st.integers(0, max(0, len(line) - 1)))
        if kind == "bits" and line:
            lines[where] = line[:at] + bytes([line[at] ^ data.draw(st.integers(1, 255))]) + line[at + 1 :]
        elif kind == "cut":
            lines[where] = line[:at]
        elif kind == "zeros":
            lines[where] = line[:at] + bytes(len(line) - at)
        elif kind == "remove" and len(lines) > 1:
            del lines[where]
        elif kind == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[where], lines[other] = lines[other], lines[where]
        elif kind == "repeat":
            lines.insert(where, lines[data.draw(st.integers(0, len(lines) - 1))])
        elif kind == "garbage":
            lines.insert(where, data.draw(st.binary(max_size=20)))
    kept = salvage(b"".join(lines), "s", "bot")
    if kept.header is None:
        assert kept.data == b""
        return
    journal = read_journal(Path("j"), kept.data, "s", 50)
    assert journal.end == len(kept.data)
    assert (journal.state.seq, journal.state.log) == (kept.state.seq, kept.state.log)
    assert kept.data.splitlines(keepends=True)[1:] == [
        each.rstrip(b"\n") + b"\n" for each in whole[1 : kept.state.seq + 1]
    ]
    assert salvage(kept.data, "s", "bot").data == kept.data


def test_no_less_is_kept_than_the_reader_would_accept(whole: list[bytes]) -> None:
    for number in range(1, len(whole) - 1):
        lines = [*whole[:number], b"x" + whole[number][1:], *whole[number + 1 :]]
        kept = salvage(b"".join(lines), "s", "bot")
        assert kept.state.seq == number - 1
        assert kept.missing == (number,)
        assert kept.dropped == tuple(range(number + 1, len(whole)))


@pytest.mark.parametrize("sort", ["gap", "garbage"])
def test_a_power_cut_at_any_instant_of_a_repair_leaves_the_damaged_or_the_repaired(
    tmp_path: Path, whole: list[bytes], sort: str
) -> None:
    lines = [*whole[:3], *whole[4:]] if sort == "gap" else [*whole[:3], b"garbage\n", *whole[3:]]
    damaged = b"".join(lines)
    repaired = salvage(damaged, "s", "bot").data
    root = tmp_path / "root"
    bench = Bench(root)
    bench.journal().parent.mkdir(parents=True, mode=0o700)
    bench.journal().write_bytes(damaged)
    agent = bench.journal().parent.parent
    remedy = RepairJournal(agent_folder(agent.parent.parent, agent.name), "s", 50)
    name = bench.journal().relative_to(root).as_posix()
    with record_files(root) as recording:
        assert remedy.apply(dry_run=False).outcome == "repaired"
        recording.mark("repaired")
    seen = set()
    for state in disk_states(recording, torn="sectors"):
        found = state.files[name]
        seen.add(found)
        assert found in (damaged, repaired)
        aside = state.files.get(f"{name}.damaged-1")
        assert aside in (None, damaged)
        if found == repaired:
            assert aside == damaged
        if "repaired" in state.known:
            assert found == repaired
    assert seen == {damaged, repaired}


def test_a_repair_that_was_cut_short_is_finished_and_keeps_one_original(
    tmp_path: Path, whole: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    bench.journal().parent.mkdir(parents=True, mode=0o700)
    bench.journal().write_bytes(b"".join([*whole[:3], *whole[4:]]))
    agent = bench.journal().parent.parent
    remedy = RepairJournal(agent_folder(agent.parent.parent, agent.name), "s", 50)

    class Cut(BaseException):
        pass

    def cut(*_: object) -> None:
        raise Cut

    with monkeypatch.context() as patch:
        patch.setattr("lousho_cli.stores.repair.move_over", cut)
        with pytest.raises(Cut):
            remedy.apply(dry_run=False)
    assert remedy.apply(dry_run=False).outcome == "repaired"
    names = sorted(path.name for path in bench.journal().parent.iterdir())
    assert names == ["s.jsonl", "s.jsonl.damaged-1"]
    bench.journal().write_bytes(b"".join([*whole[:2], *whole[3:]]))
    assert str(remedy.apply(dry_run=False).aside).endswith("s.jsonl.damaged-2")
