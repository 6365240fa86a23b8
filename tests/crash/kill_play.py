"""Conversations whose processes are killed one after the other, until what they do is done."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kill_checks import Watch
from kill_world import AGENT, INPUTS, backend, load, next_words
from life_client import Death, Life, RunsCommands

WARM_UP = [
    ["run", "w", "go"], ["fork", "w", "--from-step", "0"], ["resume", "w"], ["delete", "w", "--yes"],
    ["prune"], ["doctor"], ["doctor", "--repair", "--yes"],
]  # fmt: skip
"""What is run before, so that the modules are there."""

NextDeath = Callable[[tuple[str, ...]], Death | None]


@dataclass
class Tally:
    """How many kills there were, by what was killed and where."""

    kills: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    lives: int = 0

    def add(self, life: Life, death: Death | None) -> None:
        self.lives += 1
        if not life.killed or death is None:
            return
        self.kills[life.words[0]] += 1
        if life.died_at:
            self.places[life.died_at] += 1
        elif death.call:
            self.places["in half a write" if death.call.torn else "before a file call"] += 1
        else:
            self.places["at a random moment"] += 1

    def __str__(self) -> str:
        lines = [f"{self.kills.total()} kills in {self.lives} lives of a process"]
        for counts in (self.kills, self.places):
            lines.append(", ".join(f"{name}: {count}" for name, count in counts.most_common()))
        return "\n".join(lines)


class Play:
    """A user who wants everything done, in a workspace whose processes die."""

    def __init__(
        self, lives: RunsCommands, home: Path, next_death: NextDeath, tally: Tally, chance: random.Random
    ) -> None:
        self._lives = lives
        self._home = home
        self._next_death = next_death
        self._tally = tally
        self._random = chance

    def life(self, *words: str) -> Life:
        death = self._next_death(words)
        life = self._lives.run(self._home, *words, death=death)
        self._tally.add(life, death)
        return life

    def talk(self, session: str, given: int = len(INPUTS)) -> None:
        """Have everything answered, deciding what waits as chance will have it."""
        watch = Watch(self._home, session, load(self._home, session))
        while (words := next_words(self._home, session, given)) is not None:
            watch.after(self.life(*words, *self._decision(watch, words)))
        watch.check_end()

    def _decision(self, watch: Watch, words: tuple[str, ...]) -> list[str]:
        if words[0] != "approve" or watch.now is None:
            return []
        choices = [[], [], ["--reject", "--note", "no"], ["--no-run"]]
        if watch.now["engine"]["approval"]["kind"] == "interrupted":
            choices.append(["--result", '"looked up"'])
        return self._random.choice(choices)

    def until_done(self, is_done: Callable[[], bool], *words: str, check: Callable[[], None]) -> None:
        while not is_done():
            life = self.life(*words)
            assert life.killed or life.code == 0, life
            check()

    def fork(self, session: str, name: str) -> None:
        """It is there, whole, or not at all, and nothing of its parent changes."""
        before = self._bytes(session)

        def check() -> None:
            assert self._bytes(session) == before
            listed = [each.session_id for each in backend(self._home).summaries()]
            found = load(self._home, name)
            assert (name in listed) == (found is not None)
            if found is not None:
                parent = load(self._home, session)
                assert parent is not None
                assert found["messages"] == parent["messages"][: len(found["messages"])]
                assert found["engine"]["parent"]["sessionId"] == session

        def is_there() -> bool:
            return load(self._home, name) is not None

        self.until_done(is_there, "fork", session, "--from-step", "1", "--as", name, check=check)

    def remove(self, session: str, *words: str) -> None:
        """It is there, whole, or gone."""
        whole = load(self._home, session)

        def check() -> None:
            assert load(self._home, session) in (whole, None)

        def is_gone() -> bool:
            return load(self._home, session) is None

        self.until_done(is_gone, *words, "--yes", check=check)

    def repair(self, session: str) -> None:
        """A damaged journal is mended or as it was, and what was damaged is kept."""
        folder = self._home / ".lousho" / "agents" / AGENT / "checkpoints"
        path = folder / f"{session}.jsonl"
        lines = path.read_bytes().split(b"\n")
        place = len(lines) // 2
        lines[place] = b"\0" * len(lines[place])
        damaged = b"\n".join(lines)
        path.write_bytes(damaged)
        done = False

        def check() -> None:
            nonlocal done
            now = path.read_bytes()
            if now != damaged:
                asides = [each.read_bytes() for each in folder.glob(f"{session}.jsonl.damaged-*")]
                assert damaged in asides
                assert load(self._home, session) is not None
                done = True

        self.until_done(lambda: done, "doctor", "--repair", "--yes", check=check)

    def check_workspace(self) -> None:
        """Nothing is damaged, and nothing of a dead process is in the way."""
        life = self._lives.run(self._home, "doctor", "--json")
        assert life.code == 0, life

    def _bytes(self, session: str) -> list[bytes]:
        folder = self._home / ".lousho" / "agents" / AGENT
        return [(folder / "checkpoints" / f"{session}.jsonl").read_bytes(),
                (folder / "checkpoint-history" / f"{session}.json").read_bytes()]  # fmt: skip

    def everything(self) -> None:
        """A conversation, a fork of it that is run, a repair, and the removal of all."""
        self.talk("s")
        self.fork("s", "f")
        self.talk("f", given=1)
        ways = [["delete", "f"], ["delete", "f", "--keep-history"], ["prune", "f"]]
        self.remove("f", *self._random.choice(ways))
        self.check_workspace()
        self.repair("s")
        self.talk("s")
        self.remove("s", *self._random.choice([["delete", "s"], ["prune", "--keep", "0"]]))
        self.check_workspace()
        shutil.rmtree(self._home)
