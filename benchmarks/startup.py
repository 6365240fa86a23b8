"""What starting costs: whole processes against a program that does next to nothing.

python -m benchmarks.startup
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from .stored_sessions import write_session
from .timing import report, seconds

ONE_COMMAND = """
import typer
app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
@app.command()
def main(name: str = "x") -> None:
    print(name)
app(prog_name="one")
"""
_COMPLETION = {"COMP_WORDS": "x se", "COMP_CWORD": "1"}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_session(home / ".lousho", "s", 3)
        one = home / "one.py"
        one.write_text(ONE_COMMAND)
        lousho = ("-m", "lousho_cli")
        completing = dict.fromkeys(("_ONE_COMPLETE", "_LOUSHO_COMPLETE"), "complete_bash") | _COMPLETION

        def against(name: str, line: str, base: float, limit: float, **environ: str) -> None:
            took = seconds([*lousho, *line.split()], home, environ)
            report(name, took / base, limit)

        against(
            "lousho --version / import argparse", "--version", seconds(["-c", "import argparse"], home), 1.5
        )
        typer_help = seconds([str(one), "--help"], home)
        against("lousho --help / typer's of one command", "--help", typer_help, 1.2)
        typer_completion = seconds([str(one)], home, completing)
        against("completion / typer's of one command", "", typer_completion, 1.2, **completing)
        typer_run = seconds([str(one)], home)
        for line in ("sessions", "approvals", "history s", "show s"):
            against(f"lousho {line} / a command of typer's", line, typer_run, 1.5)


if __name__ == "__main__":
    main()
