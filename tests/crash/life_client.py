"""Commands as processes of their own that cost little: see `life_zygote`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from life_calls import Fault

SETTINGS = {"NO_COLOR": "1", "LOUSHO_TRUST_WORKSPACE": "1", "LOUSHO_LEDGER": "ledger"}
PROGRAM = Path(__file__).with_name("life_zygote.py")


@dataclass(frozen=True)
class Death:
    """When a process is killed with SIGKILL.

    Attributes:
        points: at the first of these trigger points that is passed for the `nth` time.
        after: seconds.
        call: a file call.
    """

    points: tuple[str, ...] = ()
    nth: int = 1
    after: float | None = None
    call: Fault | None = None


@dataclass(frozen=True)
class Life:
    """A process that ended.

    Attributes:
        code: its exit code, or minus the signal that killed it.
        calls: the file calls it made, where they were counted.
        noted: what its tools and its models noted.
        asks_noted: whether its models did.
    """

    words: tuple[str, ...]
    code: int
    out: str
    err: str
    calls: tuple[str, ...]
    noted: tuple[str, ...]
    asks_noted: bool = True

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def died_at(self) -> str | None:
        """The trigger point it was killed at."""
        return next((line.split()[1] for line in self.noted if line.startswith("died ")), None)

    def __str__(self) -> str:
        return f"lousho {' '.join(self.words)}: {self.code} {self.out}{self.err} noted {self.noted}"


class RunsCommands(Protocol):
    """Runs `lousho` commands, each in a process of its own."""

    def run(self, home: Path, *words: str, death: Death | None = None) -> Life:
        """One command in the folder `home`, to its end or to its death."""
        ...


class FreshLives:
    """Starts a new Python for each command. Only `Death.after` can be had."""

    def run(self, home: Path, *words: str, death: Death | None = None) -> Life:
        before = len(ledger(home))
        process = subprocess.Popen(
            [sys.executable, "-m", "lousho_cli", *words],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **SETTINGS},
        )
        try:
            out, err = process.communicate(timeout=None if death is None else death.after)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        return Life(words, process.returncode, out, err, (), tuple(ledger(home)[before:]), asks_noted=False)


class Lives:
    """Runs `lousho` commands in the folder `home`, whose tools write to `home/ledger`.

    Args:
        warm: a workspace with the same agent to run commands in, so that later ones find all imported.
        more: variables of their environment.
    """

    def __init__(
        self, warm: Path, commands: Sequence[Sequence[str]], more: Mapping[str, str] | None = None
    ) -> None:
        environment = {
            **os.environ,
            "NO_COLOR": "1",
            "LOUSHO_TRUST_WORKSPACE": "1",
            "LOUSHO_LEDGER": "ledger",
        }
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(warm), json.dumps([list(words) for words in commands])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(
        self,
        home: Path,
        *words: str,
        death: Death | None = None,
        fault: Fault | None = None,
        count: bool = False,
    ) -> Life:
        """One command, to its end or to its death.

        Args:
            fault: a file call that fails.
            count: note the file calls.
        """
        death = death or Death()
        asked: dict[str, Any] = {"words": words, "cwd": str(home), "ledger": str(home / "ledger")}
        if death.points:
            asked["die_at"], asked["nth"] = death.points, death.nth
        if death.after is not None:
            asked["after"] = death.after
        fault = fault or death.call
        if fault or count:
            asked["calls"] = {"root": str(home / ".lousho"), "fault": asdict(fault) if fault else None}
        before = len(ledger(home))
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        noted = tuple(ledger(home)[before:])
        return Life(words, told["code"], told["out"], told["err"], tuple(told["calls"]), noted)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


def ledger(home: Path) -> list[str]:
    path = home / "ledger"
    return path.read_text().split("\n")[:-1] if path.exists() else []
