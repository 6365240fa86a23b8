"""R3.15, F34: what a journal looks like, judged without the code that writes it."""

from __future__ import annotations

import asyncio
import json
import zlib
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_bench import TWO_STEPS, Bench, Turns, calls, resealed, sealed

from lousho_cli import ApprovalDecision
from lousho_cli.errors import SDKError, StorageError
from lousho_cli.execution.state import Record, RecordKind
from lousho_cli.execution.values import to_json_value
from lousho_cli.stores.journal import VERSION, parse_record, record_line

CORRUPT = "LOUSHO_SESSION_FILE_CORRUPT"
NEWER = "LOUSHO_CHECKPOINT_VERSION"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def lines_of(bench: Bench, session: str = "s") -> list[dict[str, Any]]:
    data = bench.journal(session).read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def everything(bench: Bench) -> None:
    """A run with every kind of save: queued input, a pause, a decision, results, a finish, a second run."""
    turns: Turns = [calls("echo", "pay", "echo", step=1), "done", "again"]
    approval_id = str(bench.run(turns=turns, business_state={"guests": 2}).approval_id)
    decision = ApprovalDecision(id=approval_id, approved=True, by="me")
    asyncio.run(bench.store.approvals.decide(approval_id, decision))
    bench.run("s", "and tea", turns)
    bench.run("s", "once more", turns)


def test_every_line_is_one_json_object_that_ends_with_a_true_checksum(bench: Bench) -> None:
    everything(bench)
    for line in bench.journal().read_bytes().splitlines():
        parsed = json.loads(line)
        assert isinstance(parsed, dict)
        assert list(parsed)[-1] == "crc"
        body = line[: -len(',"crc":"00000000"}')] + b"}"
        assert parsed["crc"] == f"{zlib.crc32(body):08x}"


def test_the_first_line_says_what_the_file_is(bench: Bench) -> None:
    bench.run()
    bench.fork(from_step=1)
    header, fork = lines_of(bench)[0], lines_of(bench, "s.fork-1")[0]
    assert header["version"] == VERSION
    assert type(header["version"]) is int
    assert (header["sessionId"], header["agent"]) == ("s", "default")
    assert "parent" not in header
    assert fork["sessionId"] == "s.fork-1"
    assert (fork["parent"]["sessionId"], fork["parent"]["seq"]) == ("s", 3)


def test_every_save_has_a_number_a_status_and_a_step(bench: Bench) -> None:
    everything(bench)
    saves = lines_of(bench)[1:]
    assert [save["seq"] for save in saves] == list(range(1, len(saves) + 1))
    assert {save["status"] for save in saves} == {"in-progress", "awaiting-approval", "finished"}
    assert all(isinstance(save["step"], int) and isinstance(save["fence"], int) for save in saves)
    assert [save["at"] for save in saves] == sorted(save["at"] for save in saves)


def test_a_file_is_only_ever_appended_to(bench: Bench) -> None:
    everything(bench)
    before = bench.journal().read_bytes()
    bench.run("s", "more", ["x"] * 3 + ["more"])
    assert bench.journal().read_bytes().startswith(before)


def test_each_message_is_written_once(bench: Bench) -> None:
    bench.run(turns=[calls("echo", step=n) for n in range(1, 9)] + ["done"])
    data = bench.journal().read_text()
    for n in range(1, 9):
        assert data.count(f"result {n}") == 1


@pytest.mark.parametrize("checksum", ["true", "false", "none"])
@pytest.mark.parametrize("version", [2, 99, 10**40])
def test_the_version_is_judged_before_any_checksum(bench: Bench, checksum: str, version: int) -> None:
    bench.run()
    first, *rest = bench.journal().read_bytes().splitlines(keepends=True)
    header = resealed(first, version=version)
    if checksum == "false":
        header = header.replace(b'"crc":"', b'"crc":"0')
    if checksum == "none":
        header = b'{"version": %d, "anything": ["else"]}\n' % version
    bench.journal().write_bytes(header + b"".join(rest))
    with pytest.raises(StorageError) as caught:
        bench.load()
    assert caught.value.code == NEWER
    assert f"version {version}" in caught.value.message
    assert f"version {VERSION}" in caught.value.message


@pytest.mark.parametrize("version", ["1", 1.5, None, True, [1], ..., 0, -1])
def test_a_first_line_without_a_version_of_ours_is_damage(bench: Bench, version: Any) -> None:
    bench.run()
    first, *rest = bench.journal().read_bytes().splitlines(keepends=True)
    bench.journal().write_bytes(resealed(first, version=version) + b"".join(rest))
    with pytest.raises(StorageError) as caught:
        bench.load()
    assert caught.value.code == CORRUPT


ODD_TEXTS = [
    "\ud83d", "\udcb2 alone", "a\u0000b", "\u2028\u2029\x85", "\ufeffmark", "e\u0301", "\u05d0\u202eabc",
    "line\nbreak\r\n", "👩\u200d💻", "\\\"", '{"seq":1,"crc":"00000000"}\n', "x" * 1_000_000,
]  # fmt: skip


@pytest.mark.parametrize("text", ODD_TEXTS, ids=lambda text: ascii(text[:9]))
def test_f34_odd_text_breaks_neither_a_save_nor_a_later_reading(bench: Bench, text: str) -> None:
    live = bench.run("s", text, [text + "!"], business_state={text: text})
    loaded = bench.loaded()
    assert [m.content for m in loaded.messages] == [m.content for m in live.messages]
    assert all(map(sealed, bench.journal().read_bytes().split(b"\n")[:-1]))
    json.loads(bench.history_file().read_bytes())
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert loaded.messages[1].content == text
        assert loaded.business_state == {text: text}
    bench.run("s", "more", [text, "more"])
    assert bench.loaded().status == "finished"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(get_args(RecordKind)), st.text(st.characters()), json_values, st.integers(1, 10**20))
def test_a_save_comes_back_as_it_was_written(kind: RecordKind, text: str, value: Any, seq: int) -> None:
    record = Record(kind, "in-progress", 3, seq=seq, at="2030-01-01T00:00:00Z", fence=2)
    record.add = [{"role": "user", "content": text}]
    record.business_state = value
    record.finish_reason = "stop"
    line = record_line(record)
    assert line.count(b"\n") == 1
    assert parse_record(line[:-1]) == record


def test_a_result_that_is_as_deep_as_values_may_be_comes_back_too() -> None:
    record = Record("result", "in-progress", 3, seq=1)
    record.business_state = to_json_value(nested(1000))
    assert parse_record(record_line(record)[:-1]) == record


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", [float("nan"), {"a": float("inf")}, {1, 2}, object()])
def test_a_whole_checkpoint_that_is_no_json_is_refused_and_leaves_nothing(bench: Bench, value: Any) -> None:
    bench.run("s", "go", ["done"])
    checkpoint = bench.loaded().model_copy(update={"business_state": value})
    with pytest.raises((ValueError, TypeError, SDKError)):
        asyncio.run(bench.store.checkpoints.save("t", checkpoint))
    assert bench.load("t") is None
    assert bench.run("t", "go", ["done"]).text == "done"


def test_a_whole_checkpoint_is_a_save_like_any_other(bench: Bench) -> None:
    bench.run(turns=TWO_STEPS)
    saved = bench.loaded()
    asyncio.run(bench.store.checkpoints.save("copy", saved))
    copy = bench.loaded("copy")
    assert list(copy.messages) == list(saved.messages)
    assert (copy.status, copy.step_index, copy.session_id) == ("finished", 3, "copy")
