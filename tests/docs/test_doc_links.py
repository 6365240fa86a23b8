"""Links between the documents lead somewhere."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


@cache
def tokens(path: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))


@cache
def anchors(path: Path) -> set[str]:
    """What `#...` may name in a document: its headings as GitHub writes them, and its own `<a id>`."""
    parsed = tokens(path)
    headings = [after.content for before, after in pairwise(parsed) if before.type == "heading_open"]
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([\w-]+)">', path.read_text(encoding="utf-8")))


def links(path: Path) -> list[str]:
    inline = [child for token in tokens(path) for child in token.children or []]
    return [str(child.attrs["href"]) for child in inline if child.type == "link_open"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_of_the_project_leads_there(path: Path) -> None:
    broken = []
    for link in links(path):
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_links_are_found() -> None:
    assert "docs/cli.md" in links(ROOT / "README.md")
    assert "lousho-run" in anchors(ROOT / "docs" / "cli.md")
    assert "lousho_agent_drift" in anchors(ROOT / "docs" / "errors.md")


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_the_readme_leads_to_every_document(path: Path) -> None:
    assert f"docs/{path.name}" in {link.partition("#")[0] for link in links(ROOT / "README.md")}
