"""F45: text is UTF-8 in every file, whatever code page the terminal and the locale have."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scripted_workspace import ScriptedWorkspace, calls

CODE_PAGE = {
    "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "cp437:strict",
    "PYTHONWARNDEFAULTENCODING": "1", "PYTHONWARNINGS": "error::EncodingWarning",
}  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="the locale is set by its POSIX names")
def test_f45_a_code_page_without_emoji_changes_nothing_on_the_disk(tmp_path: Path) -> None:
    workspace = ScriptedWorkspace(tmp_path).make([calls("smile"), "It is \U0001f600."])
    (workspace.agent / "tools" / "smile.py").write_text(
        "from lousho_cli import tool\n\n"
        '@tool\ndef smile() -> str:\n    "Smile \U0001f600."\n    return "\U0001f600 e\u0301"\n',
        encoding="utf-8",
    )
    (workspace.agent / "instructions.md").write_text("Smile \U0001f600.\n", encoding="utf-8")
    ran = workspace.run("run", "s", "go", "--trust", env=CODE_PAGE)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "It is \\U0001f600.\n"
    journal = (workspace.agent / "checkpoints" / "s.jsonl").read_text(encoding="utf-8")
    assert "It is \U0001f600." in journal
    assert "\U0001f600 e\u0301" in journal
    for command in (("show", "s"), ("history", "s"), ("prune", "s", "--dry-run"), ("doctor",)):
        done = workspace.run(*command, env=CODE_PAGE)
        assert done.returncode == 0, done.stderr
