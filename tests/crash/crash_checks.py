"""From every disk state of a conversation: open it, go on to the end, hold it against what was known."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import pytest
from crash_facts import (
    Data,
    Decided,
    Known,
    Ran,
    Returned,
    Saved,
    Story,
    results_in,
    started_in,
    transcript,
    turns_in,
)
from crash_talk import LEAD, Step, Talk, json_of

from lousho_cli import FileStore, StorageError, StoredApproval
from lousho_cli.stores import history_file
from lousho_cli.stores.file import FileCheckpoints
from lousho_cli.stores.folder import AgentFolder
from lousho_cli.stores.reader import load_journal, session_summary
from lousho_cli.stores.saves_reader import read_history, read_index
from lousho_cli.testing import DiskState, FileRecording, disk_states, record_files
from lousho_cli.testing.disk import Torn

Run = Callable[[Coroutine[Any, Any, Any]], Any]
AT_MOST_ONCE = ("gated", "risky", "once")


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for the disk states, in memory where that is possible: thousands are made and removed."""
    memory = Path("/dev/shm")
    home = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=home, prefix="disk-states-") as folder:
        yield Path(folder)


class Lost(AssertionError):
    """A power cut lost or repeated something.

    Attributes:
        check: which check saw it.
    """

    def __init__(self, check: str, text: str) -> None:
        super().__init__(f"[{check}] {text}")
        self.check = check


@dataclass(frozen=True)
class Scenario:
    """A conversation: what the user does, and the turns of each agent by their index in the transcript."""

    name: str
    steps: Sequence[Step]
    scripts: dict[str, Sequence[Any]]
    limit: int = 50


@dataclass
class Played:
    """A conversation as it was recorded.

    Attributes:
        end: the transcript of each session at its end.
        base: what was known before the recording.
    """

    scenario: Scenario
    story: Story
    recording: FileRecording
    end: dict[str, list[Any] | None] = field(default_factory=dict)
    base: tuple[object, ...] = ()


@contextmanager
def each_save_replaces_the_history_file() -> Iterator[None]:
    """Nothing is left to the clock."""
    with mock.patch.object(history_file, "SHARED_SECONDS", 0.0):
        yield


def play(scenario: Scenario, folder: Path) -> Played:
    """Record a conversation from its beginning to its end, in an empty folder.

    Raises:
        Lost: it does not come to its end, without any power cut.
    """
    folder.mkdir(parents=True)
    story = Story(scenario.limit)
    with record_files(folder) as recording, each_save_replaces_the_history_file():
        talk = Talk(folder, dict(scenario.scripts), story, recording.mark)
        try:
            asyncio.run(_take(scenario.steps, 0, talk, recording.mark))
        except Exception as error:
            fail("plays", f"{type(error).__name__}: {error}", error)
    end = {name: transcript(saves[-1].checkpoint) for name, saves in story.saves.items()}
    return Played(scenario, story, recording, end)


async def _take(steps: Sequence[Step], first: int, talk: Talk, note: Callable[[object], None]) -> None:
    for number, step in enumerate(steps[first:], first):
        await step.take(talk)
        note(Returned(number))


@dataclass
class Count:
    """How many disk states were opened, and how many of them a store could tell apart."""

    states: int = 0
    different: int = 0

    def __str__(self) -> str:
        return f"{self.states} disk states, {self.different} of them different to a reader"


def explore(played: Played, scratch: Path, torn: Torn = "bytes", *, every: int = 1, again: int = 0) -> Count:
    """Check the disk states of a recording.

    Each is opened. Those that read the same (which differ in the bytes of a torn end, or in temporary files)
    are looked at closely, and gone on from, once, with the most that was known of them.

    Args:
        scratch: a folder for them.
        every: look at each n-th of them only.
        again: how many power cuts may hit the recovery itself; of its states one in 20 is looked at.

    Raises:
        Lost: a state does not hold what it must.
    """
    count = Count()
    seen: set[bytes] = set()
    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        for number, state in enumerate(disk_states(played.recording, torn)):
            if number % every:
                continue
            count.states += 1
            folder = scratch / f"state-{again}"
            folder.mkdir(parents=True)
            try:
                state.write_to(folder)
                reading = _reading(state, folder, played.story.limit)
                if reading is None or reading not in seen:
                    seen.update(filter(None, [reading]))
                    count.different += 1
                    known = (*played.base, *state.known)
                    loaded = run(_Look(played, known, folder).all())
                    recovered = _Recovery(played, known, folder, loaded).go(run)
                    if again and count.different % 5 == 0:
                        after = explore(recovered, scratch, "sectors", every=20, again=again - 1)
                        count.states += after.states
                        count.different += after.different
            except Exception as error:
                shown = {path: len(content) for path, content in state.files.items()}
                error.add_note(f"{played.scenario.name}: cut {state.cut}, state {number}: {shown}")
                raise
            finally:
                shutil.rmtree(folder)
    return count


def _reading(state: DiskState, folder: Path, limit: int) -> bytes | None:
    """The same for states that read the same; None if something cannot be read."""
    files = AgentFolder(folder / "agents" / LEAD, LEAD)
    found = hashlib.blake2b(repr(state.folders).encode())
    for path, content in sorted(state.files.items()):
        if path.endswith(".jsonl"):
            session = Path(path).stem
            try:
                end = load_journal(files, session, 1).end
                ends = session_summary(files, session)
                index = read_index(files, session, limit)
            except StorageError:
                return None
            found.update(f"{path} {end} {end < len(content)} {ends} {index}".encode())
            found.update(content[:end])
        elif path.endswith(".json") and "/locks/" not in path:
            found.update(path.encode())
            found.update(content if content.endswith(b"}\n") else b"damaged")
    return found.digest()


class _Look:
    """What an opened state must hold."""

    def __init__(self, played: Played, known: Known, folder: Path) -> None:
        self.story = played.story
        self.known = known
        self.folder = folder
        self.store = FileStore(folder, LEAD, played.story.limit)
        self.files = AgentFolder(folder / "agents" / LEAD, LEAD)

    async def all(self) -> dict[str, int]:
        """Look at everything; returns which save of each session is the newest there."""
        loaded = await self.saves()
        await self.histories(loaded)
        await self.decisions(loaded)
        self.acts(loaded)
        return loaded

    async def saves(self) -> dict[str, int]:
        """Each session is as its last returned save left it, or as the next one; returns which that is."""
        loaded = {}
        for session, promised in self.story.promised(self.known).items():
            found = await _opened(self.store.checkpoints, session)
            saves = self.story.saves[session]
            for number in (promised + 1, promised):
                wanted = saves[number - 1].checkpoint if 0 < number <= len(saves) else None
                if number <= len(saves) and wanted == found:
                    loaded[session] = number
                    break
            else:
                seq = found["engine"]["seq"] if found else None
                fail("saves", f"{session}: {promised} saves had returned, found is {seq}")
        return loaded

    async def histories(self, loaded: dict[str, int]) -> None:
        for session, number in loaded.items():
            wanted = self.story.saves[session][number - 1].history if number else ()
            found = await self.store.checkpoints.history(session)
            if [(each.seq, each.step, each.status, each.saved_at) for each in found] != list(wanted):
                fail("history", f"{session}: {[each.seq for each in found]}, not {wanted}")
            shown = read_history(self.files, session, self.story.limit)
            if [(each.seq, each.step, each.status, each.at) for each in shown] != list(wanted):
                fail("history shown", f"{session}: {[each.seq for each in shown]}, not {wanted}")
            self._index(session, number)

    def _index(self, session: str, number: int) -> None:
        """The history file lists nothing that the journal does not hold."""
        path = self.files.history(session)
        try:
            listed = [entry["seq"] for entry in json.loads(path.read_bytes())["entries"]]
        except (OSError, ValueError, LookupError, TypeError):
            return
        held = (save.checkpoint for save in self.story.saves[session][:number])
        known = {checkpoint["engine"]["seq"] for checkpoint in held if checkpoint is not None}
        if not known.issuperset(listed):
            fail("index", f"{session}: the history file lists {listed}, the journal holds {sorted(known)}")

    async def decisions(self, loaded: dict[str, int]) -> None:
        """A decision that was recorded is there, or was taken up; what waits can be found."""
        waiting = {}
        for session, number in loaded.items():
            checkpoint = self.story.saves[session][number - 1].checkpoint if number else None
            if checkpoint is not None and "approval" in checkpoint["engine"]:
                waiting[checkpoint["engine"]["approval"]["id"]] = session
        for fact in self.known:
            if isinstance(fact, Decided):
                held = await self._approval(fact.approval)
                if fact.approval not in waiting:
                    continue
                if held is None or held.decision is None or held.decision.approved != fact.approved:
                    fail("decisions", f"the decision on {fact.approval} is lost")
        listed = await self.store.approvals.list(status=None)
        missing = waiting.keys() - {each.pending.id for each in listed}
        if missing:
            fail("requests", f"nobody can see that {missing} wait")

    async def _approval(self, approval_id: str) -> StoredApproval | None:
        try:
            found: StoredApproval | None = await self.store.approvals.get(approval_id)
        except Exception as error:
            fail("approvals", f"{approval_id} cannot be read: {error}", error)
        return found

    def acts(self, loaded: dict[str, int]) -> None:
        """Nothing was done of which the disk does not know the reason."""
        for fact in self.known:
            if not isinstance(fact, Ran) or fact.session not in loaded:
                continue
            saves = self.story.saves[fact.session][: loaded[fact.session]]
            texts = any(f'"{fact.call}"' in each.text for each in saves)
            if not texts:
                fail("acts", f"{fact.tool} ran, and the turn that asked for it is lost")
            marked = any(fact.call in each.started or fact.call in each.results for each in saves)
            if fact.tool.startswith(AT_MOST_ONCE) and not marked:
                fail("acts", f"{fact.tool} ran, and nothing says so")


async def _opened(store: FileCheckpoints, session: str) -> Data | None:
    try:
        found = await store.load(session)
        return None if found is None else json_of(found)
    except Exception as error:
        fail("opens", f"{session} cannot be read: {error}")


class _Recovery:
    """The next life: the user goes on with the step that they were not told the end of."""

    def __init__(self, played: Played, known: Known, folder: Path, loaded: dict[str, int]) -> None:
        self.played = played
        self.known = known
        self.folder = folder
        self.loaded = loaded
        self.checkpoints = {
            name: played.story.saves[name][number - 1].checkpoint if number else None
            for name, number in loaded.items()
        }

    def go(self, run: Run) -> Played:
        scenario = self.played.scenario
        first = sum(isinstance(fact, Returned) for fact in self.known)
        told = any(getattr(step, "text", None) == "told" for step in scenario.steps[:first])
        story = self.played.story.up_to(self.loaded)
        with record_files(self.folder) as recording, each_save_replaces_the_history_file():
            talk = Talk(self.folder, dict(scenario.scripts), story, recording.mark, told=told)
            run(self._count_granted(talk))
            try:
                run(_take(scenario.steps, first, talk, recording.mark))
            except Lost:
                raise
            except Exception as error:
                fail("goes on", f"{type(error).__name__}: {error}", error)
        self._turns(talk)
        self._calls(talk)
        self._end(story)
        base = [fact for fact in self.known if not isinstance(fact, Saved)]
        base += [Saved(name, number) for name, number in self.loaded.items()]
        return Played(scenario, story, recording, self.played.end, tuple(base))

    async def _count_granted(self, talk: Talk) -> None:
        """A human may have let an interrupted call run again just before the power went."""
        for session, checkpoint in self.checkpoints.items():
            asked = checkpoint["engine"].get("approval") if checkpoint is not None else None
            if asked is not None and asked["kind"] == "interrupted":
                held = await talk.approvals.get(asked["id"])
                granted = held is not None and held.decision is not None and held.decision.approved
                talk.repeats[session, asked["toolCallId"]] += granted

    def _turns(self, talk: Talk) -> None:
        """No turn that is on the disk is asked for again, none twice, and each request is valid."""
        if len(set(talk.asked)) != len(talk.asked) and not self._deletes():
            fail("turns", f"asked for twice: {talk.asked}")
        for asked in talk.asked:
            held = turns_in(self.checkpoints.get(asked.session), asked.agent, LEAD)
            if asked.index < held and not self._deletes():
                fail("turns", f"{asked} was asked for again")
        for model in talk.models:
            for request in model.calls:
                check_pairs([m.model_dump(by_alias=True) for m in request.messages])

    def _deletes(self) -> bool:
        return any(save.checkpoint is None for saves in self.played.story.saves.values() for save in saves)

    def _calls(self, talk: Talk) -> None:
        """No recorded result is run again; what must not be repeated is not, without a human's word."""
        before: Counter[tuple[str, str]] = Counter()
        tools: dict[tuple[str, str], str] = {}
        for fact in self.known:
            if isinstance(fact, Ran):
                before[fact.session, fact.call] += 1
                tools[fact.session, fact.call] = fact.tool
        for (session, call), runs in talk.ran.items():
            checkpoint = self.checkpoints.get(session)
            name = tools.get((session, call), call)
            if call in results_in(checkpoint) and not self._deletes():
                fail("calls", f"{name} ran again, its result was recorded")
            allowed = 1 + talk.repeats[session, call] if call not in started_in(checkpoint) else (
                talk.repeats[session, call]
            )  # fmt: skip
            if name.startswith(AT_MOST_ONCE) and runs > allowed:
                fail("calls", f"{name} ran {runs} times, {allowed} were allowed")

    def _end(self, story: Story) -> None:
        """Every session ends as if nothing had been."""
        for session, wanted in self.played.end.items():
            saves = story.saves.get(session)
            found = transcript(saves[-1].checkpoint) if saves else None
            if _normal(found) != _normal(wanted):
                pairs = zip_longest(_normal(found) or [], _normal(wanted) or [])
                fail("end", f"{session}: {[pair for pair in pairs if pair[0] != pair[1]]}")
            if found is not None:
                check_pairs(found)


def _normal(messages: list[Any] | None) -> list[Any] | None:
    """A transcript in which an interrupted call that is not repeated counts as done."""
    if messages is None:
        return None
    return [
        {**message, "content": "", "isError": None} if message.get("toolCallId") == "call_once" else message
        for message in messages
    ]


def check_pairs(messages: list[Any]) -> None:
    """Results follow their turn directly, one for each call, in call order."""
    expected: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if not expected or message["toolCallId"] != expected.pop(0):
                fail("pairs", f"a stray result of {message['toolCallId']}")
            continue
        if expected:
            fail("pairs", f"no results of {expected}")
        expected = [one["id"] for one in message.get("toolCalls") or ()]


def fail(check: str, text: str, cause: Exception | None = None) -> NoReturn:
    raise Lost(check, text) from cause
