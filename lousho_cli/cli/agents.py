"""`lousho agents`: list the agents of the workspace, without running any of their code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .globals import Globals, command
from .output import print_json

if TYPE_CHECKING:
    from ..workspace import AgentInfo


@command
def agents(options: Globals) -> None:
    """List the agents of the workspace."""
    from ..workspace import current_folder, list_agents, require_workspace

    found = list_agents(require_workspace(options.workspace, current_folder()))
    if options.json:
        print_json(
            {
                "agents": [
                    {"name": each.name, "description": each.description, "model": each.model}
                    for each in found
                ]
            }
        )
    else:
        _show(found, options)


def _show(found: list[AgentInfo], options: Globals) -> None:
    from ..render.console import surface_for
    from ..render.table import Cell, Column, show_table
    from ..render.text import escape_line

    surface = surface_for(sys.stdout, no_color=options.no_color)
    texts = [(each.name, each.model or "-", each.description) for each in found]
    rows = [[escape_line(text) for text in each] for each in texts]
    if surface.terminal:
        columns = [Column("agent"), Column("model"), Column("description", wraps=True)]
        show_table(surface, columns, [[Cell(text) for text in row] for row in rows])
    else:
        for row in rows:
            surface.line(*row)
