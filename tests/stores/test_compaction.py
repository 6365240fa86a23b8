"""R3.21: compaction takes away what no history holds any more, and nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from lousho_cli import Agent, AgentExecutor, FileStore, SDKError, SessionBusyError
from lousho_cli.errors import StorageError
from lousho_cli.execution.codec import record_from_json, record_to_json
from lousho_cli.execution.log import Log
from lousho_cli.execution.messages import MessageData, UsageData
from lousho_cli.execution.state import CallMark, Record, RunStart, State, apply, base_of
from lousho_cli.stores import files
from lousho_cli.stores.check_session import check_session
from lousho_cli.stores.compaction import compact_journal, plan_compaction
from lousho_cli.stores.folder import AgentFolder, agent_folder
from lousho_cli.stores.pruning import Compaction
from lousho_cli.stores.salvage import salvage
from lousho_cli.testing import ScriptedModel

KEPT = 4


class Wasteful:
    """A session `s` whose journal is mostly garbage: its business state was replaced again and again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = FileStore(root, history_limit=KEPT)
        self.checkpoints = self.store.checkpoints

    @property
    def folder(self) -> AgentFolder:
        return agent_folder(self.root, "default")

    @property
    def journal(self) -> Path:
        return self.folder.journal("s")

    def say(self, text: str, session: str = "s") -> None:
        AgentExecutor.execute_sync(
            agent=Agent("bot"), input=text, provider=ScriptedModel(["yes"]), session_id=session,
            checkpoint_store=self.checkpoints, business_state={"map": text * 500},
        )  # fmt: skip

    def compact(self, session: str = "s") -> Compaction | None:
        return compact_journal(self.folder, session, KEPT)

    def seen(self, session: str = "s") -> Any:
        """All that can be seen of a session."""
        stored = asyncio.run(self.checkpoints.load(session))
        assert stored is not None
        entries = asyncio.run(self.checkpoints.history(session))
        return (
            stored.model_dump(mode="json", by_alias=True),
            [entry.model_dump(mode="json", by_alias=True) for entry in entries],
            asyncio.run(self.checkpoints.kept_saves(session)),
        )

    def fork(self, at: int, name: str, session: str = "s") -> Any:
        return AgentExecutor.fork_sync(
            session_id=session, at=at, checkpoint_store=self.checkpoints, new_session_id=name
        )


@pytest.fixture
def bench(tmp_path: Path) -> Wasteful:
    bench = Wasteful(tmp_path / ".lousho")
    for n in range(12):
        bench.say(f"say {n}")
    return bench


def problems(bench: Wasteful, session: str = "s") -> list[str]:
    return [each.code for each in check_session(bench.folder, session, KEPT).problems]


def test_what_is_kept_stays_and_takes_less(bench: Wasteful) -> None:
    before, size = bench.seen(), bench.journal.stat().st_size
    done = bench.compact()
    assert done is not None
    assert (done.before, done.after, done.through) == (size, bench.journal.stat().st_size, 20)
    assert done.after < size / 2
    assert bench.seen() == before
    assert problems(bench) == []
    bench.say("and on")
    assert [m["content"] for m in bench.seen()[0]["messages"]][-2:] == ["and on", "yes"]


def test_a_plan_changes_nothing(bench: Wasteful) -> None:
    before = bench.journal.read_bytes()
    plan = plan_compaction(bench.folder, "s", KEPT)
    assert bench.journal.read_bytes() == before
    assert plan == bench.compact()


def test_a_journal_that_is_mostly_kept_is_left_alone(bench: Wasteful) -> None:
    assert bench.compact() is not None
    before = bench.journal.stat()
    assert bench.compact() is None
    assert bench.journal.stat() == before


def test_more_is_kept_where_the_session_was_run_with_a_larger_history(tmp_path: Path) -> None:
    bench = Wasteful(tmp_path)
    bench.checkpoints = FileStore(tmp_path, history_limit=100).checkpoints
    for n in range(12):
        bench.say(f"say {n}")
    assert bench.compact() is None


def test_what_was_dropped_is_called_dropped(bench: Wasteful) -> None:
    bench.compact()
    with pytest.raises(SDKError, match=r"save 20 was dropped by the history limit \(steps kept: 0, 1\)"):
        bench.fork(20, "f")
    with pytest.raises(SDKError, match="there is no save 25"):
        bench.fork(25, "f")
    # A larger limit finds no more than there is.
    larger = FileStore(bench.root, history_limit=50).checkpoints
    assert [entry.seq for entry in asyncio.run(larger.history("s"))] == [24, 23, 22, 21]


def test_a_step_that_was_dropped_is_called_dropped_and_not_unknown(tmp_path: Path) -> None:
    bench = Wasteful(tmp_path)
    store = bench.checkpoints

    async def live() -> None:
        session = await store.open_session("s")
        for step in (*range(9), *(0,) * KEPT):
            await session.save(Record("save", "in-progress", step, business_state="x" * 500, rewrite=0))
        await session.close()

    asyncio.run(live())
    assert bench.compact() is not None
    for step, why in ((8, "was dropped by the history limit"), (9, "there is no step 9")):
        with pytest.raises(SDKError, match=why):
            AgentExecutor.fork_sync(session_id="s", from_step=step, checkpoint_store=store)


def test_every_kept_save_can_be_forked_and_the_fork_compacted(bench: Wasteful) -> None:
    whole = {at: bench.fork(at, f"whole-{at}").checkpoint.messages for at in range(21, 25)}
    bench.compact()
    for at, messages in whole.items():
        assert bench.fork(at, f"f-{at}").checkpoint.messages == messages
        assert problems(bench, f"f-{at}") == []
    for n in range(6):
        bench.say(f"more {n}", "f-22")
    before = bench.seen("f-22")
    assert bench.compact("f-22") is not None
    assert bench.seen("f-22") == before
    assert before[0]["engine"]["parent"] == {"sessionId": "s", "seq": 22, "step": 1}


def test_a_session_that_is_run_is_left_alone(bench: Wasteful) -> None:
    before = bench.journal.read_bytes()

    async def live() -> None:
        session = await bench.checkpoints.open_session("s")
        with pytest.raises(SessionBusyError, match="is being run by process"):
            bench.compact()
        await session.close()

    asyncio.run(live())
    assert bench.journal.read_bytes() == before


def test_a_runner_that_lost_the_session_is_refused_after_it(bench: Wasteful) -> None:
    async def live() -> None:
        asleep = await bench.checkpoints.open_session("s")
        bench.folder.lock("s").unlink()
        assert bench.compact() is not None
        before = bench.journal.read_bytes()
        with pytest.raises(SessionBusyError):
            await asleep.save(Record("input", "in-progress", 0))
        await asleep.close()
        assert bench.journal.read_bytes() == before

    asyncio.run(live())


def test_fencing_goes_on(bench: Wasteful) -> None:
    before = bench.seen()[0]["engine"]["fence"]
    bench.compact()
    bench.say("and on")
    assert bench.seen()[0]["engine"]["fence"] == before + 1


@pytest.mark.parametrize("name", ["replace", "open", "fsync"])
def test_a_disk_that_fails_leaves_the_journal_as_it_was(
    bench: Wasteful, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bench.journal.read_bytes()
    real = getattr(files, {"replace": "move_over", "open": "create_file", "fsync": "full_sync"}[name])

    def fails(*arguments: Any) -> Any:
        if isinstance(arguments[0], int) or bench.journal.parent in Path(arguments[0]).parents:
            raise OSError(28, "No space left on device")
        return real(*arguments)

    for module in ("files", "compaction"):
        monkeypatch.setattr(f"lousho_cli.stores.{module}.{real.__name__}", fails, raising=False)
    with pytest.raises(StorageError, match=r"s\.jsonl could not be compacted: No space left"):
        bench.compact()
    monkeypatch.undo()
    assert bench.journal.read_bytes() == before
    assert [path.name for path in bench.journal.parent.iterdir()] == ["s.jsonl"]


def test_a_damaged_one_keeps_what_can_be_kept(bench: Wasteful) -> None:
    bench.compact()
    lines = bench.journal.read_bytes().splitlines(keepends=True)
    damaged = b"".join([b"x" + lines[0], lines[1], lines[2], b"garbage\n", *lines[3:]])
    kept = salvage(damaged, "s", "default")
    assert kept.data.splitlines()[1:] == bench.journal.read_bytes().splitlines()[1:]
    without_base = salvage(b"".join([lines[0], *lines[2:]]), "s", "default")
    assert (without_base.header, without_base.dropped) == (None, (21, 22, 23, 24))


def test_records_without_those_before_them_are_damage(bench: Wasteful) -> None:
    bench.compact()
    lines = bench.journal.read_bytes().splitlines(keepends=True)
    for wrong in ([lines[0], *lines[2:]], [*lines[:3], lines[1], *lines[3:]]):
        bench.journal.write_bytes(b"".join(wrong))
        assert problems(bench)[0] == "journal-damaged"


def test_a_base_restores_every_field_of_a_state() -> None:
    """A field that is added to State and forgotten in the base would be lost by compaction."""
    asked: MessageData = {"role": "assistant", "content": "", "toolCalls": [_call("a"), _call("b")]}
    result: MessageData = {"role": "tool", "content": "1", "toolCallId": "b", "toolName": "t"}
    approval = {"id": "ap_1", "toolName": "t", "toolCallId": "a"}
    usage: UsageData = {"inputTokens": 1}
    known = {
        "session_id": "s", "agent": "bot", "seq": 9, "saved_at": "2026-01-01T00:00:00Z", "fence": 3,
        "status": "awaiting-approval", "step": 2, "log": Log([{"role": "user", "content": "hi"}, asked]),
        "system": "be brief", "turn": 1, "results": {"b": result}, "marks": {"a": CallMark(2)},
        "queue": ({"role": "user", "content": "later"},), "usage": usage, "seconds": 1.5,
        "finish_reason": "aborted", "approval": approval, "run": RunStart(1, 2, 3),
        "business_state": {"a": 1}, "fingerprint": {"hash": "x"}, "run_config": {"model": "m"},
        "parent": {"sessionId": "p", "seq": 1, "step": 0}, "subs": {"a": State("s", "sub", 1, "t", 1)},
        "deleted": False,
    }  # fmt: skip
    assert known.keys() == {each.name for each in fields(State)}
    state = State(**known)  # type: ignore[arg-type]
    found = vars(apply(State("s"), record_from_json(record_to_json(base_of(state))))).copy()
    sub, known_sub = found.pop("subs")["a"], known.pop("subs")
    assert found == known
    assert vars(sub) == vars(known_sub["a"])  # type: ignore[index]


def _call(id: str) -> Any:
    return {"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}}
