"""The help texts in docs/cli.md, made from the real command line.

    python tests/docs/cli_reference.py --write

rewrites what stands between `<!-- help: COMMAND -->` and `<!-- end of help -->`; the name `lousho` stands for
the program itself. A test fails while they differ.
"""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from lousho_cli.cli.app import COMMANDS, run  # noqa: E402

DOCUMENT = ROOT / "docs" / "cli.md"
PROGRAM = "lousho"
COLUMNS = 80

_SECTION = re.compile(r"(<!-- help: (\S+) -->\n).*?(<!-- end of help -->)", re.DOTALL)


def help_text(name: str) -> str:
    """What `--help` of a command, or of the program, prints on a terminal of 80 columns without colour."""
    arguments = ["--help"] if name == PROGRAM else [name, "--help"]
    printed = io.StringIO()
    with patch.dict(os.environ, {"COLUMNS": str(COLUMNS), "NO_COLOR": "1"}), redirect_stdout(printed):
        code = run(arguments)
    assert code == 0, printed.getvalue()
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def with_help_texts(markdown: str) -> str:
    """The document with today's help texts between its markers."""
    return _SECTION.sub(lambda match: f"{match[1]}```text\n{help_text(match[2])}\n```\n{match[3]}", markdown)


def documented_commands(markdown: str) -> list[str]:
    """The names in the document's markers, in order."""
    return [match[2] for match in _SECTION.finditer(markdown)]


def all_commands() -> list[str]:
    """The program and its commands, in the order of the help."""
    return [PROGRAM, *COMMANDS]


def main() -> None:
    before = DOCUMENT.read_text(encoding="utf-8")
    after = with_help_texts(before)
    if sys.argv[1:] == ["--write"]:
        DOCUMENT.write_text(after, encoding="utf-8")
    elif before != after:
        sys.exit(f"{DOCUMENT.name} is not up to date: run this with --write")


if __name__ == "__main__":
    main()
