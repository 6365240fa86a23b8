"""The options that every command takes, before its name or after it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Concatenate, get_type_hints

import typer

from .._version import __version__
from .errors import guarded
from .output import print_text

_Workspace = Annotated[
    str | None,
    typer.Option("--workspace", metavar="PATH", help="The workspace: a folder with .lousho in it, or that."),
]
_Agent = Annotated[
    str | None, typer.Option("--agent", "-a", metavar="NAME", help="The agent to use, or to look in.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print data and errors as JSON.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result and errors only.")]
_Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print details, and tracebacks of errors.")]
_NoColor = Annotated[bool, typer.Option("--no-color", help="Print without colour, as NO_COLOR does.")]


@dataclass(frozen=True, slots=True)
class Globals:
    """The global options as they were given.

    Attributes:
        workspace: the folder named, or None to look for one.
        agent: the agent named, a valid id, or None.
        json: data and errors are JSON on stdout.
        quiet: no progress and no advice.
        verbose: more of both, and tracebacks.
        no_color: no colour, whatever the stream is.
    """

    workspace: str | None = None
    agent: str | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False

    def or_else(self, before: Globals) -> Globals:
        """These options, and those given before the command where these are not given."""
        names = [each.name for each in fields(self)]
        given = {name: getattr(self, name) for name in names if getattr(self, name) not in (None, False)}
        return replace(before, **given)


def command(function: Callable[Concatenate[Globals, ...], int | None]) -> Callable[..., int]:
    """Make a command of a function of the global options and its own parameters.

    The command's parameters are the function's own, then the global ones. It reports its errors and returns
    its exit code.
    """

    def run(ctx: typer.Context, **values: Any) -> int:
        after = Globals(**{name: values.pop(parameter) for parameter, name in _NAMES.items()})
        options = after.or_else(ctx.find_root().obj)

        def call() -> int | None:
            if options.agent is not None:
                from ..stores.ids import check_id

                check_id(options.agent, "agent")
            return function(options, **values)

        return guarded(call, as_json=options.json, verbose=options.verbose)

    hints = get_type_hints(function, include_extras=True)
    own = list(inspect.signature(function).parameters.values())[1:]
    parameters = [
        inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *(each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY) for each in own),
        *_PARAMETERS,
    ]
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def _show_version(asked: bool) -> None:
    if asked:
        print_text(f"lousho {__version__}")
        raise typer.Exit


def remember(
    ctx: typer.Context,
    workspace: _Workspace = None,
    agent: _Agent = None,
    json: _Json = False,
    quiet: _Quiet = False,
    verbose: _Verbose = False,
    no_color: _NoColor = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Keep the options given before the command for the command to merge with its own."""
    ctx.obj = Globals(workspace, agent, json, quiet, verbose, no_color)


# A command may have a parameter of its own with one of these names, so the global ones get a prefix.
_NAMES = {f"global_{each.name}": each.name for each in fields(Globals)}
_PARAMETERS = [
    each.replace(name=f"global_{each.name}", kind=inspect.Parameter.KEYWORD_ONLY)
    for each in inspect.signature(remember, eval_str=True).parameters.values()
    if each.name in _NAMES.values()
]
