"""Checking a workspace: trust, settings and agents. An agent's code runs only if the workspace is trusted."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..agents.definition import AGENT_FILE, agent_folder_names, list_folder, read_definition
from ..agents.folder import INSTRUCTIONS_FILE, TOOLS_FOLDER, load_agent
from ..config import CONFIG_FILE, Settings, load_settings, user_config_file
from ..errors import ConfigurationError, SDKError
from ..execution.agent import Agent
from ..execution.tools import ToolRegistry
from ..providers.resolve import resolve_model
from ..stores.ids import decode_id
from ..toml_file import read_text
from ..trust import is_trusted
from ..workspace import AGENTS_FOLDER
from .findings import Check


def check_workspace(workspace: Path) -> tuple[Settings | None, list[Check]]:
    """The settings of a workspace, None if they are wrong, and what there is to say about it."""
    checks = [Check("workspace", "found", "ok", str(workspace)), _trusted(workspace)]
    try:
        _see_that_files(user_config_file(), workspace / CONFIG_FILE)
        settings = load_settings(workspace)
    except SDKError as error:
        return None, [*checks, Check.failed("workspace", "settings", error)]
    count = len(settings.sources)
    text = f"{count} set, the others are defaults" if count else "all are defaults"
    return settings, [*checks, Check("workspace", "settings", "ok", text)]


def _trusted(workspace: Path) -> Check:
    if is_trusted(workspace):
        return Check("workspace", "trusted", "ok", "its agents may run")
    fix = f"look at its {AGENTS_FOLDER}/*/tools/*.py and */agent.toml, then run an agent of it with --trust"
    return Check("workspace", "trusted", "notice", "not by you on this machine: its agents do not run", fix)


def check_agents(workspace: Path, settings: Settings | None, only: str | None = None) -> Iterator[Check]:
    """What there is to say about the agents: their files, and whether they load.

    Args:
        settings: None where they are wrong: models are not looked at then.
        only: the one agent to look at, or None for all.
    """
    agents = workspace / AGENTS_FOLDER
    try:
        names = agent_folder_names(agents)
    except SDKError as error:
        yield Check.failed("agents", AGENTS_FOLDER, error)
        return
    ids = {name: decode_id(name) or name for name in names}
    if not names:
        fix = f"a folder in {agents} with an {AGENT_FILE} is one; lousho init makes an example elsewhere"
        yield Check("agents", AGENTS_FOLDER, "notice", "there are no agents", fix)
    wanted = settings.default_agent if settings is not None else None
    if settings is not None and wanted is not None and wanted not in ids.values():
        where = settings.source("default_agent").where
        message = f"default_agent is {wanted!r} ({where}), and there is no such agent"
        there = ", ".join(sorted(ids.values())) or "none"
        unknown = ConfigurationError(message, hint=f"agents here: {there}")
        yield Check.failed("workspace", "default_agent", unknown)
    trusted = is_trusted(workspace)
    for name, agent in ids.items():
        if only in (None, agent):
            yield _agent(agents / name, agent, settings, trusted)


def _agent(folder: Path, agent: str, settings: Settings | None, trusted: bool) -> Check:
    try:
        _see_that_files(folder / AGENT_FILE)
        definition = read_definition(folder)
        _read_files(folder)
        if not trusted:
            return Check("agents", agent, "skipped", "its files can be read; not loaded: not trusted")
        loaded = load_agent(folder, name=agent)
        tools = _tool_count(loaded.agent)
        model = ""
        if settings is not None:
            model = settings.for_agent(definition.values).model or _found_model()
            resolve_model(model, folder, settings.providers)
    except SDKError as error:
        return Check.failed("agents", agent, error)
    except Exception as error:
        problem = ConfigurationError(f"it does not load: {type(error).__name__}: {error}")
        return Check.failed("agents", agent, problem)
    words = f"loads: {tools} {'tool' if tools == 1 else 'tools'}"
    return Check("agents", agent, "ok", f"{words}, model {model}" if model else words)


def _found_model() -> str:
    from ..providers.models.discovery import discover_model

    return discover_model().model


def _tool_count(agent: Agent) -> int:
    return len(list(agent.tools)) if isinstance(agent.tools, ToolRegistry) else 0


def _read_files(folder: Path) -> None:
    """See that the files of an agent can be read, without running any.

    Raises:
        ConfigurationError: one is no UTF-8 text.
        StorageError: one cannot be read.
    """
    tools = folder / TOOLS_FOLDER
    names = [name for name in list_folder(tools) if name.endswith(".py") and name[0] != "."]
    for path in (folder / INSTRUCTIONS_FILE, *(tools / name for name in names)):
        _see_that_files(path)
        with suppress(FileNotFoundError):
            read_text(path)


def _see_that_files(*paths: Path) -> None:
    """Refuse what is there and no file: reading a pipe would wait for ever.

    Raises:
        ConfigurationError: one is none.
    """
    for path in paths:
        try:
            mode = path.stat().st_mode
        except OSError:
            continue
        if not stat.S_ISREG(mode):
            raise ConfigurationError(f"{path} is not a file", hint="put a file in its place, or take it away")
