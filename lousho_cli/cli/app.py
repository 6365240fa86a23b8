"""The command line: which commands there are, and how one is run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

import typer

from . import globals
from .errors import guarded

COMMANDS: Mapping[str, str] = {
    "init": "init:init",
    "run": "run:run",
    "resume": "resume:resume",
    "approve": "approve:approve",
    "approvals": "approvals:approvals",
    "history": "history:history",
    "show": "show:show",
    "sessions": "sessions:sessions",
    "fork": "fork:fork",
    "diff": "diff:diff",
    "eval": "eval:eval",
    "delete": "delete:delete",
    "prune": "prune:prune",
    "agents": "agents:agents",
    "doctor": "doctor:doctor",
}
"""Module and function of each command, in the order of the help. Each function is a `globals.command`."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line without the program's name and return its exit code. An empty one shows the help."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A character the terminal's encoding lacks is shown escaped; it never ends a command.
            reconfigure(errors="backslashreplace")
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments

    def parse_and_run() -> int | None:
        app = build_app()
        code: int | None = app(list(arguments) or ["--help"], prog_name="lousho", standalone_mode=False)
        return code

    # Before the line is parsed, and where it cannot be, a plain look has to do.
    return guarded(
        parse_and_run, as_json="--json" in options, verbose="--verbose" in options or "-v" in options
    )


def build_app() -> typer.Typer:
    """The typer application with every command. It imports the commands, which import little."""
    app = typer.Typer(
        help="A durable engine for AI agents: every step is on disk before the next one starts.",
        context_settings={"help_option_names": ["--help", "-h"]},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(globals.remember)
    for name, target in COMMANDS.items():
        module, _, function = target.partition(":")
        app.command(name)(getattr(import_module(f".{module}", __package__), function))
    return app
