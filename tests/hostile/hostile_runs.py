"""Mutating one file of a workspace again and again, and looking at what every reader makes of it."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from hostile_mutations import DAMAGE, Mutation, forge_history, forge_journal, forge_json, forge_toml
from hostile_readers import APPROVAL_WAYS, SESSION_WAYS, Answer, Reader
from hostile_sample import Sample, contents, play

from lousho_cli.errors import SDKError
from lousho_cli.stores.journal_fold import read_journal

JOURNALS = {"journal": "trip", "journal of a paused session": "pause", "journal of a fork": "trip.fork-1"}
FORGERS: dict[str, Mutation] = {
    **dict.fromkeys(JOURNALS, forge_journal),
    "history": forge_history,
    **dict.fromkeys(("request", "decision", "older checkpoint", "older history", "cassette"), forge_json),
    **dict.fromkeys(("agent.toml", "config.toml", "eval"), forge_toml),
}
WAYS: dict[str, Sequence[str]] = {
    **dict.fromkeys(JOURNALS, SESSION_WAYS),
    "journal of a paused session": (*SESSION_WAYS, *APPROVAL_WAYS),
    "history": SESSION_WAYS,
    "request": APPROVAL_WAYS,
    "decision": APPROVAL_WAYS,
    "older checkpoint": SESSION_WAYS,
    "older history": SESSION_WAYS,
    "agent.toml": ("agent",),
    "config.toml": ("settings",),
    "eval": ("evals",),
    "cassette": ("cassette",),
}
READS_ALL = ("load", "history")
"""Ways that read a journal from its beginning to its end, and so tell of any damage."""


class Hostile:
    """One workspace whose files are damaged, read, and put back.

    Attributes:
        counts: how many mutations there were, by file and kind.
        refused: how many answers were errors of ours, by code.
        faults: what went wrong, in words.
    """

    def __init__(self, sample: Sample, loop: asyncio.AbstractEventLoop, scratch: Path) -> None:
        self.sample = sample
        self._loop = loop
        self._scratch = scratch
        self._reader = Reader(sample, loop)
        self._saves = {target: list(_saves(sample.files[target], name)) for target, name in JOURNALS.items()}
        self._before = contents(sample.root)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[str] = Counter()
        self.faults: list[str] = []

    def mutate(self, target: str, seed: int, *, acting: bool = False) -> None:
        """One mutation of one file, chosen by a seed.

        Args:
            acting: also run, fork, decide and repair, on a copy.
        """
        rng = Random(f"{target} {seed}")
        path = self.sample.files[target]
        original = path.read_bytes()
        is_forged = rng.random() < 0.4
        mutation = FORGERS[target] if is_forged else rng.choice(DAMAGE)
        data = mutation(rng, original)
        self.counts[target, mutation.__name__] += 1
        path.write_bytes(data)
        try:
            what = f"{target}, seed {seed}, {mutation.__name__}"
            for way in WAYS[target]:
                with self._noting(f"{what}, {way}"):
                    self._read(target, way, data, is_forged)
            with self._noting(what):
                self._check_unchanged(path, original, data)
            if acting:
                with self._noting(f"{what}, acting"):
                    self._act(target, data)
        finally:
            path.write_bytes(original)

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)[-3:]
            where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
            self.faults.append(f"{what}: {type(error).__name__}: {str(error)[:300]} ({where})")

    def _read(self, target: str, way: str, data: bytes, is_forged: bool) -> None:
        answer = self._reader.ask(way, _session(target))
        if answer.error is not None:
            self.refused[answer.error.code] += 1
        if way in READS_ALL and target in JOURNALS and not is_forged:
            self._check_kept(target, data, answer)
        elif way in READS_ALL and target == "history":
            assert answer.error is None, f"{way}: the journal is whole: {answer.error}"

    def _check_unchanged(self, path: Path, original: bytes, data: bytes) -> None:
        after = contents(self.sample.root)
        assert after[str(path)] == data, "reading changed the damaged file"
        assert {**after, str(path): original} == self._before, "reading changed another file"

    def _check_kept(self, target: str, data: bytes, answer: Answer) -> None:
        """What is read is what was saved, up to a save behind which nothing valid stands."""
        if answer.error is not None:
            return
        saves = self._saves[target]
        if answer.way == "history":
            seq = max((entry.seq for entry in answer.value), default=0)
        else:
            found = _texts(answer.value)
            seqs = [seq for seq, (_, texts) in enumerate(saves) if texts == found]
            assert seqs, f"{answer.way} gives a state that never was"
            seq = seqs[-1]
        lost = [n for n in range(seq + 1, len(saves)) if saves[n][0] in data]
        assert not lost, f"{answer.way} ends at save {seq} and says nothing of the whole saves {lost}"

    def _act(self, target: str, data: bytes) -> None:
        """What writes: a run of a session that cannot be read is refused and writes nothing."""
        sample = self.sample.copy(self._scratch)
        reader = Reader(sample, self._loop)
        session = _session(target)
        is_readable = reader.ask("load", session).error is None
        before = contents(sample.root)
        try:
            play(sample.store(), session, "more", ["more"])
        except SDKError:
            if not is_readable:
                assert contents(sample.root) == before, "a refused run wrote"
        else:
            assert is_readable, "a run went on from what cannot be read"
        reader.fork(session, "forked")
        if target in ("request", "decision", "journal of a paused session"):
            reader.decide(sample.waiting)
            reader.decide(sample.decided)
        if not is_readable and target in JOURNALS:
            assert sample.files[target].read_bytes() == data, "damaged data was written to"
        for mended in reader.repair():
            assert mended.error is None or mended.error.message
        again = reader.ask("load", session)
        assert again.error is None or not is_readable, f"what was readable no longer is: {again.error}"


def _session(target: str) -> str:
    return JOURNALS.get(target, "older" if target.startswith("older") else "trip")


def _texts(checkpoint: Any) -> list[str]:
    if checkpoint is None:
        return []
    return [f"{each.role}: {each.content}" for each in checkpoint.messages] + [str(checkpoint.status)]


def _saves(path: Path, session: str) -> Iterator[tuple[bytes, list[str]]]:
    """Each save's line and what the session was after it; the first is the header, before any save."""
    from lousho_cli.execution.checkpoint import checkpoint_of

    lines = path.read_bytes().splitlines(keepends=True)
    for count, line in enumerate(lines, 1):
        state = read_journal(path, b"".join(lines[:count]), session, 50).state
        yield line.rstrip(b"\n"), _texts(checkpoint_of(state) if state.exists else None)
