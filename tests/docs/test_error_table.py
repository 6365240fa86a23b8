"""docs/errors.md lists every error code there is, and no other, with its exit code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lousho_cli import errors
from lousho_cli.cli.errors import exit_code
from lousho_cli.errors import SDKError

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "lousho_cli"
CODE = re.compile(r"LOUSHO(?:_[A-Z]+)+")
ROW = re.compile(r'\| <a id="(\w+)"></a>`(LOUSHO_\w+)` \| (.+?) \| (\d+) \| (.+?) \|')
COMMAND_LINE_CODES = {"LOUSHO_USAGE_INVALID": 2, "LOUSHO_INTERNAL": 1}
"""Codes of errors that are no SDKError, with the exit codes the command line gives them."""


def table() -> dict[str, tuple[str, int]]:
    """The anchor and the exit code of each code in the table."""
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    return {code: (anchor, int(exit)) for anchor, code, _, exit, _ in ROW.findall(text)}


def trees() -> Iterator[ast.Module]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield ast.parse(path.read_text(encoding="utf-8"))


def codes_of(tree: ast.Module) -> set[str]:
    """The codes a module gives to errors: what looks like one, but for names of environment variables, and
    for keys, by which codes are looked up."""
    aside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            aside.update(key for key in node.keys if key is not None)
        elif isinstance(node, ast.Assign) and _names_a_variable(node):
            aside.add(node.value)
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in aside
        if CODE.fullmatch(node.value)
    }


def _names_a_variable(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id.endswith("_VARIABLE") for target in node.targets)


def subclasses(kind: type[SDKError]) -> list[type[SDKError]]:
    """The classes of `lousho_cli.errors` below `kind`, which nobody raises itself."""
    direct = [each for each in kind.__subclasses__() if each.__module__ == errors.__name__]
    return [each for child in direct for each in (child, *subclasses(child))]


def raised() -> set[tuple[type[SDKError], str]]:
    """The classes and codes of the errors made anywhere in the package, and the classes' own codes."""
    classes: dict[str, type[SDKError]] = {each.__name__: each for each in subclasses(SDKError)}
    found = {(each, each.default_code) for each in classes.values()}
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in classes:
                for keyword in node.keywords:
                    if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                        found.add((classes[node.func.id], str(keyword.value.value)))
    return found


def test_the_table_lists_every_code_in_the_code_and_no_other() -> None:
    assert sorted(table()) == sorted(set().union(*map(codes_of, trees())))


def test_codes_are_found_where_they_are_given() -> None:
    lines = ['X_VARIABLE = "LOUSHO_HOME"', 'EXITS = {"LOUSHO_A_KEY": 1}', 'raise E("x", code="LOUSHO_B_C")']
    tree = ast.parse("\n".join([*lines, 'f("LOUSHO_D_E")']))
    assert codes_of(tree) == {"LOUSHO_B_C", "LOUSHO_D_E"}


def test_the_table_is_sorted() -> None:
    assert list(table()) == sorted(table())


def test_every_error_links_to_its_row() -> None:
    for code, (anchor, _) in table().items():
        assert SDKError("x", code=code).docs == f"docs/errors.md#{anchor}"


@pytest.mark.parametrize(("kind", "code"), sorted(raised(), key=str))
def test_the_table_says_the_exit_code(kind: type[SDKError], code: str) -> None:
    error = kind.__new__(kind)
    error.code = code
    assert table()[code][1] == exit_code(error)


def test_the_table_says_the_exit_codes_of_the_command_line_itself() -> None:
    assert {code: table()[code][1] for code in COMMAND_LINE_CODES} == COMMAND_LINE_CODES


def test_the_classes_are_drawn_as_they_are_in_the_code() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^[│ ]*(?:[├└]── )?(\w*Error)\b {2,}", text, re.MULTILINE)
    every: list[type[SDKError]] = [SDKError, *subclasses(SDKError)]
    assert sorted(drawn) == sorted(kind.__name__ for kind in every)
