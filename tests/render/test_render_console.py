from __future__ import annotations

import subprocess
import sys
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest

from lousho_cli.render.console import surface_for

PLAIN_VIEWS = """
import sys
from lousho_cli.render.console import surface_for
from lousho_cli.render import approvals, diff, graph, history, live, sessions, transcript
surface = surface_for(sys.stdout, environ={"COLUMNS": "20", "TERM": "xterm"})
message = {"role": "user", "content": "x" * 300}
transcript.show_transcript(surface, [message])
history.show_history(surface, "s", [{"seq": 1, "step": 0, "event": "input"}])
sessions.show_sessions(surface, [{"sessionId": "s" * 200}])
approval = {"id": "ap", "toolName": "t", "args": {"a": "y" * 300}}
approvals.show_approvals(surface, [approval])
approvals.show_approval_panel(surface, approval)
graph.show_graph(surface, [{"sessionId": "s", "parent": None}])
step = {"text": "z" * 300, "tools": [{"name": "t", "args": {}, "result": 1}]}
diff.show_diff(surface, "a", "b", {"a": [step], "b": [], "divergedAt": 1, "drift": []})
with live.LiveRun(surface) as run:
    run.handle({"type": "tool.start", "data": {"toolName": "t", "args": "{}"}})
    done = {"toolName": "t", "result": '"' + "w" * 300 + '"', "seconds": 1}
    run.handle({"type": "tool.done", "data": done})
assert "rich" not in sys.modules, "rich was imported"
"""


class Tty(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("empty", [{}, {"NO_COLOR": ""}])
def test_a_terminal_gets_layout_colour_and_a_live_line(empty: dict[str, str]) -> None:
    surface = surface_for(Tty(), environ={"TERM": "xterm-256color", **empty})
    assert (surface.terminal, surface.color, surface.live) == (True, True, True)


@pytest.mark.parametrize(
    ("environ", "no_color"),
    [({"NO_COLOR": "1"}, False), ({}, True), ({"NO_COLOR": "0", "FORCE_COLOR": "1"}, False)],
)
def test_no_colour_wins(environ: dict[str, str], no_color: bool) -> None:
    surface = surface_for(Tty(), no_color=no_color, environ={"TERM": "xterm", **environ})
    assert (surface.terminal, surface.color) == (True, False)
    surface.console.print("x", style="bold red")
    assert surface.stream.getvalue() == "x\n"  # type: ignore[attr-defined]


def test_a_dumb_terminal_gets_no_colour_and_no_redrawing() -> None:
    surface = surface_for(Tty(), environ={"TERM": "dumb"})
    assert (surface.terminal, surface.color, surface.live) == (True, False, False)


@pytest.mark.parametrize("environ", [{}, {"COLUMNS": "40", "TERM": "xterm"}, {"FORCE_COLOR": "0"}])
def test_a_pipe_is_plain(environ: dict[str, str]) -> None:
    surface = surface_for(StringIO(), environ=environ)
    assert (surface.terminal, surface.color, surface.live) == (False, False, False)


def test_forced_colour_in_a_pipe_draws_but_never_redraws() -> None:
    surface = surface_for(StringIO(), environ={"FORCE_COLOR": "1", "COLUMNS": "90"})
    assert (surface.terminal, surface.color, surface.live, surface.width) == (True, True, False, 90)
    surface.console.print("x", style="red")
    assert "\x1b[31m" in surface.stream.getvalue()  # type: ignore[attr-defined]
    forbidden = surface_for(StringIO(), environ={"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert (forbidden.terminal, forbidden.color) == (False, False)


@pytest.mark.parametrize("columns", ["", "0", "-5", "wide", "²"])
def test_a_senseless_width_is_ignored(columns: str) -> None:
    assert surface_for(Tty(), environ={"COLUMNS": columns}).width == 80


def test_an_encoding_that_lacks_characters_gets_ascii_and_escapes() -> None:
    raw = BytesIO()
    surface = surface_for(TextIOWrapper(raw, encoding="ascii"), environ={})
    assert surface.mark("ok") == "ok"
    surface.line("naïve ✓")
    surface.stream.flush()
    assert raw.getvalue() == b"na\\xefve \\u2713\n"


def test_plain_views_cut_nothing_and_never_import_rich() -> None:
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", PLAIN_VIEWS], cwd=root, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    for text in ("x" * 300, "s" * 200, "y" * 300, "z" * 300, "w" * 300):
        assert text in ran.stdout
    assert "\x1b" not in ran.stdout
