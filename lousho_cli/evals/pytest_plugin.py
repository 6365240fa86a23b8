"""Evals as code: the pytest fixture `agent_eval`, which costs nothing until it is used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import pytest

if TYPE_CHECKING:
    from .coded import AgentEval

MODES = ("live", "record", "replay")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--agent-evals`: where models' turns and tools' answers come from."""
    parser.getgroup("lousho").addoption(
        "--agent-evals",
        choices=MODES,
        default=None,
        help="agent_eval: ask models and run tools (live), and keep what they say (record), or play what was "
        "kept (replay). Default: under CI replay what is recorded, else live.",
    )


@pytest.fixture
def agent_eval(request: pytest.FixtureRequest) -> AgentEval:
    """Plays conversations with agents; see docs/evals.md."""
    from .coded import AgentEval

    mode = cast(Literal["live", "record", "replay"] | None, request.config.getoption("--agent-evals"))
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return AgentEval(Path(request.path), request.node.name, mode, prefer_recorded=in_ci)
