"""`lousho init`: set up a workspace from the example, and trust it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from .globals import Globals, command
from .output import notice, print_json, print_text


@command
def init(
    options: Globals,
    directory: Annotated[
        str | None, typer.Argument(metavar="DIR", help="Where; the current folder by default.")
    ] = None,
) -> None:
    """Set up a workspace with an example agent, and trust it."""
    from ..trust import trust
    from ..workspace import WORKSPACE_FOLDER, create_workspace, list_agents

    folder = Path(directory or options.workspace or ".")
    workspace, created = create_workspace(folder.parent if folder.name == WORKSPACE_FOLDER else folder)
    trust(workspace)
    agents = list_agents(workspace)
    if options.json:
        names = [each.name for each in agents]
        print_json({"workspace": str(workspace), "created": created, "agents": names})
        return
    print_text(f"{'made' if created else 'already there:'} {workspace}")
    for each in agents:
        print_text(f"  agent {each.name}: {each.description}")
    if not options.quiet:
        notice("trusted: lousho runs the Python files of these agents")
        notice(f"next: {_next_command(workspace, created)}")


def _next_command(workspace: Path, created: bool) -> str:
    command = 'lousho run chat-42 "Book a table for 2 tonight"' if created else 'lousho run chat-42 "Hello"'
    folder = workspace.parent
    return command if folder == Path.cwd() else f"cd {shlex.quote(str(folder))} && {command}"
