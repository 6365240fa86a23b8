"""F03, R5.5: a torn end is dropped, damage is reported, nothing valid is thrown away."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from store_bench import TWO_STEPS, Bench, calls, resealed, sealed, texts

from lousho_cli.errors import StorageError
from lousho_cli.execution.checkpoint import checkpoint_of
from lousho_cli.stores.journal_fold import read_journal

CORRUPT = "LOUSHO_SESSION_FILE_CORRUPT"
NEWER = "LOUSHO_CHECKPOINT_VERSION"


@dataclass(frozen=True)
class Whole:
    """A finished session: its journal, line by line, and what it holds after each save."""

    lines: list[bytes]
    messages: list[int]
    texts: list[str]

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)

    def saves_before(self, cut: int) -> int:
        """How many whole saves the first `cut` bytes hold; a missing last line break takes nothing away."""
        ends = [sum(map(len, self.lines[: n + 1])) - 1 for n in range(len(self.lines))]
        return max(0, sum(end <= cut for end in ends) - 1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    bench = Bench(tmp_path_factory.mktemp("whole"))
    bench.run()
    lines = bench.journal().read_bytes().splitlines(keepends=True)
    counts = [0]
    for n in range(2, len(lines) + 1):
        counts.append(read_journal(Path("j"), b"".join(lines[:n]), "s", 50).state.message_count)
    return Whole(lines, counts, texts(bench.loaded()))


@pytest.fixture
def bench(tmp_path: Path, whole: Whole) -> Bench:
    """A workspace with that session."""
    bench = Bench(tmp_path)
    bench.journal().parent.mkdir(parents=True)
    bench.history_file().parent.mkdir()
    bench.journal().write_bytes(whole.data)
    return bench


def refuses(bench: Bench, code: str, session: str = "s") -> list[str]:
    """Every way into the session is refused with `code`, asks no model and changes no file; the messages."""
    bench.run("other", turns=["x"])
    bench.did.clear()
    other = bench.loaded("other")
    before = bench.files()
    messages = []
    for enter in (
        lambda: bench.load(session),
        lambda: bench.run(session, "more"),
        lambda: bench.fork(session, from_step=1, new_session_id="f"),
        lambda: bench.delete(session, keep_history=True),
        lambda: asyncio.run(bench.store.checkpoints.save(session, other)),
    ):
        with pytest.raises(StorageError) as caught:
            enter()
        assert caught.value.code == code
        messages.append(caught.value.message)
    after = {name: data for name, data in bench.files().items() if not name.endswith(".lock")}
    assert after == {name: data for name, data in before.items() if not name.endswith(".lock")}
    assert bench.did == []
    return messages


def test_f03_a_cut_at_any_byte_leaves_the_last_whole_save(bench: Bench, whole: Whole) -> None:
    for cut in range(len(whole.data) + 1):
        bench.journal().write_bytes(whole.data[:cut])
        seq = whole.saves_before(cut)
        state = bench.state()
        assert (state.seq, state.message_count) == (seq, whole.messages[seq]), cut
        if cut % 5 == 0:
            assert [s.seq for s in bench.sessions()] == ([seq] if seq else []), cut
            assert bench.seqs()[:1] == ([seq] if seq else []), cut
        assert bench.journal().read_bytes() == whole.data[:cut]


def ends_and_middles(whole: Whole) -> Iterator[int]:
    position = 0
    for line in whole.lines:
        following = position + len(line)
        yield from (position + 1, (position + following) // 2, following - 2, following - 1)
        position = following


def test_f03_a_run_goes_on_from_any_cut_and_leaves_a_whole_journal(bench: Bench, whole: Whole) -> None:
    for cut in list(ends_and_middles(whole))[:-1]:
        bench.journal().write_bytes(whole.data[:cut])
        # A crash leaves none that lists saves which were never on the disk.
        bench.history_file().unlink(missing_ok=True)
        assert bench.run().finish_reason == "stop"
        assert texts(bench.loaded()) == whole.texts, cut
        lines = bench.journal().read_bytes().splitlines()
        assert all(map(sealed, lines)), cut
        assert bench.kept_in_file()[-1] == len(lines) - 1


def test_a_last_save_without_line_break_counts_and_is_appended_to(bench: Bench, whole: Whole) -> None:
    for n in range(1, len(whole.lines) + 1):
        bench.journal().write_bytes(b"".join(whole.lines[:n])[:-1])
        bench.run("s", "go" if n < len(whole.lines) else "more", [*TWO_STEPS, "again"])
        data = bench.journal().read_bytes()
        assert data.startswith(b"".join(whole.lines[:n]))
        assert all(map(sealed, data.splitlines()))


@pytest.mark.parametrize("length", [2, 16, 512, 10_000])
def test_f03_zeros_in_place_of_the_end_are_a_torn_end(bench: Bench, whole: Whole, length: int) -> None:
    data = whole.data[:-length] if length < len(whole.data) else b""
    bench.journal().write_bytes(data + bytes(len(whole.data) - len(data)))
    seq = whole.saves_before(len(data))
    assert bench.state().seq == seq
    bench.run("s", "go")
    assert texts(bench.loaded()) == whole.texts


def test_f03_zeros_behind_the_end_lose_nothing(bench: Bench, whole: Whole) -> None:
    bench.journal().write_bytes(whole.data + bytes(512))
    assert texts(bench.loaded()) == whole.texts
    bench.run("s", "more", [*TWO_STEPS, "again"])
    data = bench.journal().read_bytes()
    assert data.startswith(whole.data)
    assert b"\0" not in data


def test_f03_zeros_in_the_middle_are_reported_wherever_they_are(bench: Bench, whole: Whole) -> None:
    start_of_last = len(whole.data) - len(whole.lines[-1])
    for start in range(0, start_of_last - 32, 17):
        damaged = whole.data[:start] + bytes(32) + whole.data[start + 32 :]
        bench.journal().write_bytes(damaged)
        with pytest.raises(StorageError) as caught:
            bench.load()
        assert caught.value.code == CORRUPT
        assert f"up to {whole.saves_before(start)} " in caught.value.message or not whole.saves_before(start)
    refuses(bench, CORRUPT)


def test_damage_says_what_is_still_readable(bench: Bench, whole: Whole) -> None:
    bench.journal().write_bytes(b"".join([*whole.lines[:4], b"\0" * 40 + b"\n", *whole.lines[5:]]))
    for message in refuses(bench, CORRUPT):
        assert "saves up to 3 (step 1)" in message
        assert str(bench.journal()) in message


@pytest.mark.parametrize("glued", range(1, 7))
def test_f03_half_a_save_followed_by_a_whole_one_is_damage(bench: Bench, whole: Whole, glued: int) -> None:
    for half in (1, 9, len(whole.lines[glued]) // 2, len(whole.lines[glued]) - 2):
        torn = whole.lines[glued][:half]
        bench.journal().write_bytes(b"".join([*whole.lines[:glued], torn, whole.lines[glued]]))
        with pytest.raises(StorageError) as caught:
            bench.load()
        assert caught.value.code == CORRUPT


def test_a_whole_save_is_found_behind_half_a_one_whatever_it_holds(bench: Bench) -> None:
    bench.run("n", business_state=[{"seq": n} for n in range(40)])
    lines = bench.journal("n").read_bytes().splitlines(keepends=True)
    bench.journal("n").write_bytes(lines[0] + lines[1][:20] + lines[1])
    refuses(bench, CORRUPT, "n")


def test_removed_lines_are_reported_save_for_the_last(bench: Bench, whole: Whole) -> None:
    for gone in range(len(whole.lines) - 1):
        bench.journal().write_bytes(b"".join(whole.lines[:gone] + whole.lines[gone + 1 :]))
        with pytest.raises(StorageError) as caught:
            print(gone, bench.loaded().status)
        assert caught.value.code == CORRUPT


def test_doubled_and_swapped_lines_are_reported(bench: Bench, whole: Whole) -> None:
    count = len(whole.lines)
    orders = [[*range(n + 1), n, *range(n + 1, count)] for n in range(count)]
    orders += [[*range(n), n + 1, n, *range(n + 2, count)] for n in range(count - 1)]
    for order in orders:
        bench.journal().write_bytes(b"".join(whole.lines[n] for n in order))
        with pytest.raises(StorageError) as caught:
            print(order, bench.loaded().status)
        assert caught.value.code == CORRUPT


def test_f23_a_file_that_claims_another_id_is_refused_and_listed_as_a_problem(bench: Bench) -> None:
    shutil.copy(bench.journal(), bench.journal("b"))
    assert "'s'" in refuses(bench, CORRUPT, "b")[0]
    listed = [(session.session_id, session.problem and session.problem.code) for session in bench.sessions()]
    assert ("s", None) in listed
    assert ("b", CORRUPT) in listed
    assert listed.count(("s", None)) == 1


@pytest.mark.parametrize("id", ["../../escape", "a\nb", "\x1b[2J", "", ".", "a" * 201])
def test_f23_an_id_in_a_file_is_never_believed(bench: Bench, whole: Whole, id: str) -> None:
    bench.journal().write_bytes(resealed(whole.lines[0], sessionId=id) + b"".join(whole.lines[1:]))
    refuses(bench, CORRUPT)
    assert [session.session_id for session in bench.sessions() if session.problem is None] == ["other"]


@pytest.mark.parametrize("intact", [True, False])
def test_a_newer_file_is_refused_everywhere_and_not_touched(bench: Bench, whole: Whole, intact: bool) -> None:
    header = resealed(whole.lines[0], version=99)
    if not intact:
        header = header.replace(b'"crc":"', b'"crc":"x')
    bench.journal().write_bytes(header + b"".join(whole.lines[1:]) + b'{"half')
    for message in refuses(bench, NEWER):
        assert "version 99" in message
        assert "version 1" in message


@pytest.mark.parametrize("intact", [True, False])
def test_a_newer_file_is_listed_as_a_problem_and_has_no_history(
    bench: Bench, whole: Whole, intact: bool
) -> None:
    bench.run("s", "more", [*TWO_STEPS, "again"])
    header = resealed(whole.lines[0], version=99)
    if not intact:
        header = header.replace(b'"crc":"', b'"crc":"x')
    bench.journal().write_bytes(header + b"".join(bench.journal().read_bytes().splitlines(keepends=True)[1:]))
    assert [session.problem and session.problem.code for session in bench.sessions()] == [NEWER]
    with pytest.raises(StorageError) as caught:
        bench.history()
    assert caught.value.code == NEWER


changes = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 40), st.binary(max_size=40)), min_size=1, max_size=4
)


@given(changes=changes)
def test_whatever_happens_to_the_bytes_only_true_saves_are_ever_read(
    whole: Whole, changes: list[tuple[int, int, bytes]]
) -> None:
    data = whole.data
    for position, removed, added in changes:
        position %= len(data) + 1
        data = data[:position] + added + data[position + removed :]
    try:
        journal = read_journal(Path("j"), data, "s", 50)
    except StorageError as error:
        event(error.code)
        return
    event("readable")
    assert journal.state.message_count == whole.messages[journal.state.seq]
    assert texts(checkpoint_of(journal.state)) == whole.texts[: journal.state.message_count]


ODD: list[Any] = [None, -1, 1.5, "x", [None], {"a": None}]
ODD += [{"id": 7}, {"inputTokens": "x"}, {"index": 99, "opening": -1, "maxSteps": 0}]


def test_a_hostile_file_with_true_checksums_ends_in_an_error_of_ours(bench: Bench) -> None:
    bench.run("p", turns=[calls("echo", "pay", step=1)])
    lines = bench.journal("p").read_bytes().splitlines(keepends=True)
    names = "seq at fence kind status step add results usage run queue marks rewrite approval".split()
    names += "fingerprint runConfig parent system agent finishReason".split()
    escaped: dict[str, str] = {}
    fields = [(0, name) for name in ("version", "sessionId", "agent", "createdAt", "parent")]
    fields += [(place, name) for place in (1, len(lines) - 1) for name in names]
    for place, name in fields:
        for value in ODD:
            changed = resealed(lines[place], **{name: value})
            bench.journal("p").write_bytes(b"".join([*lines[:place], changed, *lines[place + 1 :]]))
            try:
                bench.sessions()
                bench.history("p")
                if bench.load("p") is not None:
                    bench.fork("p", from_step=1)
            except StorageError:
                continue
            except Exception as error:
                escaped[f"{name}={value!r}"] = repr(error)
    assert not escaped


@pytest.mark.parametrize("damage", [b"", b"\0" * 200, b"{", b"[]"])
def test_a_request_that_a_power_cut_emptied_is_rebuilt_from_its_session(bench: Bench, damage: bytes) -> None:
    approval_id = bench.run("p", turns=[calls("pay", step=1)]).approval_id
    assert approval_id is not None
    bench.folder.request(approval_id).write_bytes(damage)
    listed = asyncio.run(bench.store.approvals.list())
    assert [stored.pending.id for stored in listed] == [approval_id]
    stored = asyncio.run(bench.store.approvals.get(approval_id))
    assert stored is not None
    assert stored.pending.tool_name == "pay"


@pytest.mark.parametrize("behind", [b"x", b"\0x", b'","at":"x"},"crc":"00000000"}', b"\r"])
def test_a_whole_save_with_something_glued_behind_it_is_no_torn_end(
    bench: Bench, whole: Whole, behind: bytes
) -> None:
    for last in (2, len(whole.lines) - 1):
        bench.journal().write_bytes(b"".join(whole.lines[: last + 1])[:-1] + behind)
        with pytest.raises(StorageError) as caught:
            bench.load()
        assert caught.value.code == CORRUPT
        assert f"saves up to {last - 1} " in caught.value.message
