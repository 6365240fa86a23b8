"""Every code block of the README and of docs/ does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_blocks import read_blocks
from doc_runner import run_document

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
]

LEFT_TO_CI = {"README.md": ["install-and-run", "test"]}
"""The blocks that install something: `.ci/run` runs them, each in an environment of its own."""


def text_of(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_code_block_does_what_the_document_says(document: str, tmp_path: Path) -> None:
    run_document(document, text_of(document), tmp_path)
    assert (tmp_path / "work").is_dir()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_blocks_left_to_ci_are_those_listed(document: str) -> None:
    names = [block.ci for block in read_blocks(document, text_of(document)) if block.ci]
    assert names == LEFT_TO_CI.get(document, [])


@pytest.mark.parametrize("name", [name for names in LEFT_TO_CI.values() for name in names])
def test_ci_runs_the_blocks_left_to_it(name: str) -> None:
    assert f"readme_block {name})" in text_of(".ci/run")
