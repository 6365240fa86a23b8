"""The command line: which commands there are, and how one is run."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module

import typer

from . import globals
from .errors import guarded

COMMANDS: Mapping[str, str] = {
    "init": "Set up a workspace with an example agent, and trust it.",
    "run": "Send a message to a session; resume first what is unfinished.",
    "resume": "Finish the unfinished run of a session. If there is none, say so and exit 0.",
    "approve": "Approve or reject a waiting tool call, and go on with its run.",
    "approvals": "List what waits for a decision, oldest first.",
    "history": "List the kept saves of a session, newest first.",
    "show": "Show the transcript of a session.",
    "sessions": "List the sessions of the workspace, the one last active first.",
    "fork": "Make a new session from a kept save of another, with a change. The other stays as it is.",
    "diff": "Compare two runs: where they part, and in what.",
    "eval": "Run evals: cases of agents, and what is expected of them.",
    "delete": "Delete a session. Its forks have all they need and stay.",
    "prune": "Remove old sessions, and compact the journals of the others.",
    "agents": "List the agents of the workspace.",
    "doctor": "Check the set-up and the stored files. Without --repair nothing is changed.",
}
"""The commands in the order of the help, each with the first line of its own help.

Each is the `globals.command` of its name, in the module of its name.
"""


_COMPLETING = "_LOUSHO_COMPLETE"
_COMPLETED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Set while a shell asks for completion: that it does, and the line to complete, from bash or from others."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line without the program's name and return its exit code. An empty one shows the help."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A character the terminal's encoding lacks is shown escaped; it never ends a command.
            reconfigure(errors="backslashreplace")
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments

    def parse_and_run() -> int | None:
        app = build_app(_words(arguments))
        code: int | None = app(list(arguments) or ["--help"], prog_name="lousho", standalone_mode=False)
        return code

    # Before the line is parsed, and where it cannot be, a plain look has to do.
    return guarded(
        parse_and_run, as_json="--json" in options, verbose="--verbose" in options or "-v" in options
    )


def _words(arguments: Sequence[str]) -> list[str]:
    """What may name the command: the command line, and the one that the shell wants completed."""
    completed = [os.environ.get(name, "") for name in _COMPLETED] if _COMPLETING in os.environ else []
    return [*arguments, *" ".join(completed).split()]


def build_app(words: Collection[str] = tuple(COMMANDS)) -> typer.Typer:
    """The typer application with every command. Of those that `words` names not, it knows what the help says.

    A command that is not named cannot be run, and its module need not be imported.
    """
    app = typer.Typer(
        help="A durable engine for AI agents: every step is on disk before the next one starts.",
        context_settings={"help_option_names": ["--help", "-h"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(globals.remember)
    for name, summary in COMMANDS.items():
        if name in words:
            app.command(name)(getattr(import_module(f".{name}", __package__), name))
        else:
            app.command(name, help=summary)(_unnamed)
    return app


def _unnamed() -> None:
    raise AssertionError("a command that the command line does not name was run")
