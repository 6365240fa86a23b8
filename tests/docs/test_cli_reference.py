"""docs/cli.md says what the command line says of itself."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from cli_reference import DOCUMENT, all_commands, documented_commands, help_text, with_help_texts

from lousho_cli.cli import errors as cli_errors
from lousho_cli.config import ENVIRONMENT_PREFIX, KEYS, Settings
from lousho_cli.execution.entry import DEFAULT_CONCURRENCY, DEFAULT_MAX_STEPS
from lousho_cli.execution.events import EventType

TEXT = DOCUMENT.read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text under a heading, up to the next one of its level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no section {title}"
    return found[1]


def first_cells(table: str) -> list[str]:
    return re.findall(r"^\| (.+?) \|", table, re.MULTILINE)[2:]


def test_the_help_texts_are_those_of_the_program() -> None:
    assert with_help_texts(TEXT) == TEXT, "run: python tests/docs/cli_reference.py --write"


def test_every_command_is_documented_and_no_other() -> None:
    assert sorted(documented_commands(TEXT)) == sorted(all_commands())


@pytest.mark.parametrize("name", all_commands()[1:])
def test_every_command_has_a_section_with_its_help_and_an_example(name: str) -> None:
    text = section(f"lousho {name}")
    assert f"<!-- help: {name} -->" in text
    assert re.search(rf"^\$ lousho {name}\b", text, re.MULTILINE)


@pytest.mark.parametrize("name", all_commands())
def test_help_texts_fit_a_terminal_and_name_every_option_once(name: str) -> None:
    text = help_text(name)
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)
    assert max(map(len, text.splitlines())) <= 80
    assert len(options) == len(set(options)) > 0


def test_the_exit_codes_are_listed() -> None:
    codes = {value for name, value in vars(cli_errors).items() if name.isupper() and isinstance(value, int)}
    listed = [int(code) for cell in first_cells(section("Exit codes")) for code in cell.split(", ")]
    assert sorted(listed) == sorted({0, 129, 143, *codes})


def test_the_settings_and_their_defaults_are_listed() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", section("Settings"), re.MULTILINE)
    engine = {"max_steps": DEFAULT_MAX_STEPS, "tool_concurrency": DEFAULT_CONCURRENCY}
    assert [key for key, _ in rows] == ["default_agent", *(key for key in KEYS if key != "default_agent")]
    for key, shown in rows:
        default = getattr(Settings(), key)
        expected = engine.get(key) if default is None else default
        assert expected is None or shown.strip("`") == str(expected)


def test_the_environment_variables_are_listed() -> None:
    listed = re.findall(r"`(LOUSHO_\w+)`", section("Environment variables"))
    settings = [ENVIRONMENT_PREFIX + key.upper() for key in KEYS]
    others = ["LOUSHO_WORKSPACE", "LOUSHO_TRUST_WORKSPACE", "LOUSHO_CASSETTE_MODE"]
    assert sorted(listed) == sorted([*others, *settings])


def test_the_events_are_listed() -> None:
    listed = [name for cell in first_cells(section("Events")) for name in re.findall(r"`([\w.]+)`", cell)]
    assert sorted(listed) == sorted(get_args(EventType))
