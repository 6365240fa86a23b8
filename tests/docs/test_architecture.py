"""docs/architecture.md speaks of the modules there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "lousho_cli"
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NO_ROOM = {"__init__.py", "__main__.py", "_version.py", "errors.py"}


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_room_is_in_the_table() -> None:
    cells = re.findall(r"^\| (`.+?) \|", section("Rooms"), re.MULTILINE)
    named = {name.removeprefix("lousho_cli/") for cell in cells for name in re.findall(r"`([\w./]+)`", cell)}
    folders = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    assert named == folders | {path.name for path in PACKAGE.glob("*.py")} - NO_ROOM


@pytest.mark.parametrize(
    ("title", "room"), [("Inside the engine", "execution"), ("Inside the stores", "stores")]
)
def test_the_modules_named_exist(title: str, room: str) -> None:
    rows = re.findall(r"^\| (?!---)[^|]+ \| (.+) \|$", section(title), re.MULTILINE)[1:]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row) if name not in ("ask", "fail")]
    assert len(named) > 10
    assert [name for name in named if not (PACKAGE / room / f"{name}.py").is_file()] == []
