"""Runs the code blocks of a document, in order, as its reader would.

| language | what is done |
| --- | --- |
| `sh` | run in the document's terminal; each line must succeed (or the block end with `exit=N`) |
| `console` | each `$ ` command is run there and must print what the block shows |
| `python` | executed; `await` may stand at top level; names are shared by the document's blocks |
| `json`, `toml` | must parse |
| `text` | trees and drawings: nothing to run |

A block behind a comment `<!-- ci: NAME -->` is left to `.ci/run`. Any other language is an error.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import difflib
import inspect
import json
import os
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from doc_blocks import Block, read_blocks
from doc_match import ApprovalIds
from doc_terminal import Outcome, Terminal, TerminalError


@dataclass(frozen=True)
class Command:
    """One command of a console block and what the block shows for it."""

    text: str
    shown: str


def run_document(document: str, markdown: str, scratch: Path, *, seconds: float = 60) -> None:
    """Run every block of a document in `scratch`, an empty folder.

    Args:
        document: the document's name, for messages.
        markdown: its text.
        scratch: an empty folder. The blocks run in its folder `work`; the terminal's files lie beside it.
        seconds: how long one command may take.

    Raises:
        DocError: a block does not do what the document says.
    """
    with _Reader(document, scratch, seconds) as reader:
        for block in read_blocks(document, markdown):
            reader.follow(block)


def console_commands(block: Block) -> list[Command]:
    """The commands of a console block. A command goes on behind a line that ends with a backslash."""
    commands: list[tuple[list[str], list[str]]] = []
    for line in block.text.splitlines():
        if commands and not commands[-1][1] and commands[-1][0][-1].endswith("\\"):
            commands[-1][0].append(line)
        elif line.startswith("$ "):
            commands.append(([line.removeprefix("$ ")], []))
        elif commands:
            commands[-1][1].append(line)
        else:
            raise block.error("a console block begins with a command, `$ ...`")
    if not commands:
        raise block.error("a console block without a command; a picture is a `text` block")
    return [Command("\n".join(typed), "\n".join(shown)) for typed, shown in commands]


class _Reader:
    """Somebody who does all that a document says, with a terminal and a Python prompt in one folder."""

    def __init__(self, document: str, scratch: Path, seconds: float) -> None:
        self._work = scratch / "work"
        private = scratch / "terminal"
        self._work.mkdir(parents=True)
        private.mkdir()
        self._ids = ApprovalIds()
        self._terminal = Terminal(self._work, private, _environment(private), seconds=seconds)
        self._module = ModuleType(f"document_{document.replace('/', '_').replace('.', '_')}")
        self._loop = asyncio.Runner()
        self._languages: dict[str, Callable[[Block], None]] = {
            "sh": self._sh,
            "console": self._console,
            "python": self._python,
            "json": self._json,
            "toml": self._toml,
            "text": lambda block: None,
        }

    def __enter__(self) -> _Reader:
        sys.modules[self._module.__name__] = self._module
        return self

    def __exit__(self, *_: object) -> None:
        del sys.modules[self._module.__name__]
        self._loop.close()
        self._terminal.close()

    def follow(self, block: Block) -> None:
        run = self._languages.get(block.language)
        if run is None:
            raise block.error(f"unknown language {block.language!r}; known: {', '.join(self._languages)}")
        if block.exit_code is not None and block.language not in ("sh", "console"):
            raise block.error(f"a {block.language} block has no exit code")
        if block.ci is None:
            run(block)

    def _sh(self, block: Block) -> None:
        outcome = self._type(block, self._ids.in_command(block.text), stop_at_failure=True)
        _check_code(block, block.text, outcome, block.exit_code or 0)

    def _console(self, block: Block) -> None:
        commands = console_commands(block)
        before = ""
        for command, following in zip(commands, [*commands[1:], None], strict=True):
            typed = self._ids.in_command(command.text)
            outcome = self._type(block, typed)
            if not self._ids.matches(command.shown, outcome.output):
                raise block.error(before + _difference(typed, command.shown, outcome))
            if following is None:
                _check_code(block, typed, outcome, block.exit_code or 0)
            elif following.text != "echo $?":
                _check_code(block, typed, outcome, 0)
            before = f"$ {typed}\n{outcome.output}"

    def _python(self, block: Block) -> None:
        with _located(block, Exception), contextlib.chdir(self._work):
            source = "\n" * block.line + self._ids.in_command(block.text)
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            code = compile(source, block.document, "exec", flags=flags, dont_inherit=True)
            result = eval(code, self._module.__dict__)
            if inspect.iscoroutine(result):
                self._loop.run(result)

    def _json(self, block: Block) -> None:
        with _located(block, ValueError):
            json.loads(block.text)

    def _toml(self, block: Block) -> None:
        with _located(block, ValueError):
            tomllib.loads(block.text)

    def _type(self, block: Block, command: str, *, stop_at_failure: bool = False) -> Outcome:
        with _located(block, TerminalError):
            return self._terminal.run(command, stop_at_failure=stop_at_failure)


@contextlib.contextmanager
def _located(block: Block, kind: type[Exception]) -> Iterator[None]:
    """Say in which block an error happened."""
    try:
        yield
    except kind as error:
        raise block.error(f"{type(error).__name__}: {error}\n{block.text}") from error


def _check_code(block: Block, command: str, outcome: Outcome, expected: int) -> None:
    if outcome.code != expected:
        raise block.error(
            f"exit code {outcome.code}, the document says {expected}\n$ {command}\n{outcome.output}"
        )


def _difference(command: str, shown: str, outcome: Outcome) -> str:
    lines = difflib.unified_diff(
        shown.splitlines(), outcome.output.splitlines(), "the document", "the command", lineterm=""
    )
    return "\n".join([f"$ {command}", *lines])


def _environment(private: Path) -> dict[str, str]:
    """This process's environment with this tree's `lousho` on the path, no colour, and a user named ana."""
    programs = private / "bin"
    programs.mkdir()
    lousho = programs / "lousho"
    lousho.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lousho_cli "$@"\n', encoding="utf-8")
    lousho.chmod(0o755)
    path = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
        "LOGNAME": "ana",
    }
