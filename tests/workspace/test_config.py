from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from lousho_cli.agents.definition import read_definition
from lousho_cli.config import KEYS, Settings, Source, load_settings, user_config_file
from lousho_cli.errors import ConfigurationError, StorageError


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / ".lousho"
    folder.mkdir()
    return folder


def write_user_config(text: str) -> Path:
    file = user_config_file()
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_every_setting_can_be_set_in_a_file() -> None:
    assert set(KEYS) == {each.name for each in fields(Settings)} - {"sources", "providers"}


def test_without_files_the_defaults_hold(workspace: Path) -> None:
    assert load_settings(workspace, environ={}) == Settings()
    assert load_settings(None, environ={}).model is None
    assert Settings().source("model").layer == "default"


def test_a_later_layer_wins_and_every_value_says_where_it_is_from(workspace: Path) -> None:
    user = write_user_config('model = "user"\nhistory_limit = 1\nmax_steps = 1\nstore = "sqlite:x.db"\n')
    ours = '# ours\nhistory_limit = 2\nmax_steps = 2\non_agent_drift = "error"\n'
    (workspace / "config.toml").write_text(ours)
    settings = load_settings(
        workspace,
        environ={"LOUSHO_MAX_STEPS": "3", "LOUSHO_TOOL_CONCURRENCY": "3", "LOUSHO_UNKNOWN": "x"},
        flags={"tool_concurrency": 4, "model": None},
    )
    assert (settings.model, settings.history_limit, settings.max_steps) == ("user", 2, 3)
    assert (settings.tool_concurrency, settings.store, settings.on_agent_drift) == (4, "sqlite:x.db", "error")
    assert settings.source("model") == Source("user", f"{user}, line 1")
    assert settings.source("history_limit") == Source("workspace", f"{workspace / 'config.toml'}, line 2")
    assert settings.source("max_steps") == Source("environment", "LOUSHO_MAX_STEPS")
    assert settings.source("tool_concurrency") == Source("flag", "--tool-concurrency")


@pytest.mark.parametrize(
    ("environ", "flags", "agent", "in_workspace", "expected"),
    [
        ({"LOUSHO_MODEL": "env"}, {"model": "flag"}, 'model = "agent"', 'model = "ws"', "flag"),
        ({"LOUSHO_MODEL": "env"}, {}, 'model = "agent"', 'model = "ws"', "env"),
        ({"LOUSHO_MODEL": ""}, {}, 'model = "agent"', 'model = "ws"', "agent"),
        ({}, {}, 'description = "d"', 'model = "ws"', "ws"),
        ({}, {}, "", "", "user"),
    ],
)
def test_the_model_comes_from_the_nearest_place(
    workspace: Path,
    environ: dict[str, str],
    flags: dict[str, str | int | None],
    agent: str,
    in_workspace: str,
    expected: str,
) -> None:
    write_user_config('model = "user"')
    (workspace / "config.toml").write_text(in_workspace)
    (workspace / "agent.toml").write_text(agent)
    settings = load_settings(workspace, environ=environ, flags=flags)
    assert settings.for_agent(read_definition(workspace).values).model == expected


@pytest.mark.parametrize(
    ("text", "line", "parts"),
    [
        ('# x\n\nmodle = "a"', 3, ["modle", "did you mean 'model'?"]),
        ("zzz = 1", 1, ["zzz", "known keys: default_agent, model"]),
        ("[agents]\nx = 1", 1, ["agents"]),
        ("agents.x = 1", 1, ["agents"]),
        ('model = """\nhistory_limt = 1\n"""\nhistory_limt = 2', 4, ["did you mean 'history_limit'?"]),
        ("model = 1", 1, ["model cannot be 1", "text"]),
        ('model = " "', 1, ["model cannot be ' '", "not blank"]),
        ("model = []", 1, ["model cannot be []"]),
        ('"max_steps" = 0', 1, ["max_steps cannot be 0", "a whole number, 1 or more"]),
        ('max_steps = "3"', 1, ["max_steps cannot be '3'"]),
        ("max_steps = true", 1, ["max_steps cannot be True"]),
        ("history_limit = 1.5", 1, ["a whole number, 0 or more"]),
        ('on_agent_drift = "warning"', 1, ['"warn" or "error" or "ignore"']),
    ],
)
def test_a_wrong_key_or_value_names_file_line_and_key(
    workspace: Path, text: str, line: int, parts: list[str]
) -> None:
    file = workspace / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_settings(workspace, environ={})
    error = caught.value
    assert error.message.startswith(f"{file}, line {line}: ")
    assert error.code == "LOUSHO_CONFIG_INVALID"
    for part in parts:
        assert part in f"{error.message} {error.hint}"


def test_broken_toml_names_file_line_and_column(workspace: Path) -> None:
    (workspace / "config.toml").write_text('model = "a"\nmax_steps = = 3\n')
    with pytest.raises(ConfigurationError, match=r"config\.toml is not valid TOML.*line 2, column 13"):
        load_settings(workspace, environ={})


def test_a_file_that_is_not_utf_8_says_so(workspace: Path) -> None:
    (workspace / "config.toml").write_bytes(b'model = "\xe9"')
    with pytest.raises(ConfigurationError, match=r"config\.toml is not UTF-8 text \(byte 9\)"):
        load_settings(workspace, environ={})


def test_a_byte_order_mark_is_no_part_of_the_file(workspace: Path) -> None:
    (workspace / "config.toml").write_bytes(b'\xef\xbb\xbfmodel = "m"')
    assert load_settings(workspace, environ={}).model == "m"


def test_a_file_that_cannot_be_read_is_a_storage_error(workspace: Path) -> None:
    (workspace / "config.toml").mkdir()
    with pytest.raises(StorageError, match=r"config\.toml cannot be read"):
        load_settings(workspace, environ={})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOUSHO_MAX_STEPS", "many"),
        ("LOUSHO_MAX_STEPS", "1_0"),
        ("LOUSHO_MAX_STEPS", "0"),
        ("LOUSHO_STORE", "x"),
    ],
)
def test_a_wrong_value_in_the_environment_names_the_variable(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} cannot be '{value}'") as caught:
        load_settings(environ={name: value})
    assert "it takes" in caught.value.hint


def test_a_wrong_value_of_a_flag_names_the_flag() -> None:
    with pytest.raises(ConfigurationError, match="--on-agent-drift cannot be 'maybe'"):
        load_settings(environ={}, flags={"on_agent_drift": "maybe"})
