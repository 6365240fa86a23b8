"""Settings, layer over layer: defaults, user file, workspace file, an agent's file, environment, flags.

A later layer wins over an earlier one, key by key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import platformdirs

from .agents.definition import RUN_KEYS, OnAgentDrift
from .errors import ConfigurationError
from .providers.models.servers import Server
from .stores.backend_location import hide_credentials, parse_location
from .toml_file import (
    Found,
    Key,
    Value,
    read_tables,
    read_toml,
    table,
    text,
    texts,
    texts_by_name,
    whole_number,
    yes_or_no,
)

CONFIG_FILE = "config.toml"
ENVIRONMENT_PREFIX = "LOUSHO_"

KEYS: Mapping[str, Key] = {
    "default_agent": text(),
    **RUN_KEYS,
    "history_limit": whole_number(0),
    "cassette_volatile": texts(),
    "judge": table({"model": text()}),
    "redaction": table({"patterns": texts(), "keys": texts()}),
    "otel_content": yes_or_no(),
    "store": text(),
}
"""What a `config.toml` may set. Each key is an environment variable too: `LOUSHO_MAX_STEPS`."""

PROVIDERS = "providers"
PROVIDER_KEYS: Mapping[str, Key] = {"base_url": text(), "api_key_env": text(), "headers": texts_by_name()}
"""What `[providers.NAME]` may set, in a `config.toml` only."""

Layer = Literal["default", "user", "workspace", "agent", "environment", "flag"]
_ABOVE_AGENT: tuple[Layer, ...] = ("environment", "flag")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a setting comes from.

    Attributes:
        layer: which of the layers.
        where: the file and line, the variable or the flag, as a user would look it up.
    """

    layer: Layer
    where: str


DEFAULT = Source("default", "the default")


@dataclass(frozen=True)
class Settings:
    """What holds for a command.

    Attributes:
        default_agent: the agent used when none is named, or None.
        model: the model's name; None if it is not set, and what the machine has is used.
        history_limit: saves kept for each session; 0 keeps none.
        on_agent_drift: what a resume does when the agent has changed.
        tool_concurrency: calls of one turn that run at the same time, or None for the engine's default.
        max_steps: model turns a run may take, or None for the run's own limit or the engine's default.
        approval_ttl: seconds a human has to decide an approval, or None for no limit.
        fallback_models: names of models to ask, in this order, where `model` cannot be asked, or None.
        model_settings: how the model is asked; None leaves it to the model's provider.
        retries: when the model is asked again, or None for the engine's default.
        judge: the model that judges evals, as `model`, or None.
        cassette_volatile: regular expressions of texts that make no difference to a cassette, or None.
        budget: what a run may use up, or None for no limit.
        redaction: what is taken out of all that is stored, besides the usual keys and tokens; None takes
            nothing out but the model's own key.
        otel_content: whether OpenTelemetry spans hold what was said; None for no.
        store: where sessions are kept: `file`, `sqlite:PATH`, or the URL of a Redis or Valkey server.
        providers: what is set up about the providers of models, by name; the workspace's over the user's.
        sources: where each setting comes from, by its name.
    """

    default_agent: str | None = None
    model: str | None = None
    history_limit: int = 50
    on_agent_drift: OnAgentDrift = "warn"
    tool_concurrency: int | None = None
    max_steps: int | None = None
    approval_ttl: int | None = None
    fallback_models: Sequence[str] | None = None
    model_settings: Mapping[str, Any] | None = None
    retries: Mapping[str, Any] | None = None
    judge: Mapping[str, Any] | None = None
    cassette_volatile: Sequence[str] | None = None
    budget: Mapping[str, Any] | None = None
    redaction: Mapping[str, Any] | None = None
    otel_content: bool | None = None
    store: str = field(default="file", repr=False)
    providers: Mapping[str, Server] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)

    def source(self, key: str) -> Source:
        """Where the setting named `key` comes from."""
        return self.sources.get(key, DEFAULT)

    def for_agent(self, agent: Mapping[str, Found]) -> Settings:
        """These settings with what an `agent.toml` sets: over `config.toml`, under environment and flags."""
        own = {
            key: (found.value, Source("agent", found.where))
            for key, found in agent.items()
            if key in KEYS and self.source(key).layer not in _ABOVE_AGENT
        }
        return self._with(own)

    def _with(self, layer: Mapping[str, tuple[Value, Source]]) -> Settings:
        values: dict[str, Any] = {key: value for key, (value, _) in layer.items()}
        sources = {**self.sources, **{key: source for key, (_, source) in layer.items()}}
        return replace(self, **values, sources=sources)


def load_settings(
    workspace: Path | None = None,
    *,
    flags: Mapping[str, Value | None] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The settings that hold in `workspace`.

    Args:
        workspace: the `.lousho` folder, or None outside of one.
        flags: values given on the command line, by key; None for one not given.
        environ: environment variables instead of the process's own.

    Raises:
        ConfigurationError: a file or a value is wrong; it names the place and what to write.
        StorageError: a file cannot be read.
    """
    user = user_config_file()
    settings = Settings(providers=_servers(user))._with(_from_file(user, "user"))
    if workspace is not None:
        own = workspace / CONFIG_FILE
        settings = replace(settings, providers={**settings.providers, **_servers(own)})
        settings = settings._with(_from_file(own, "workspace"))
    settings = settings._with(_from_environment(os.environ if environ is None else environ))
    return settings._with(_from_flags(flags or {}))


def user_config_file() -> Path:
    """The user's own `config.toml`, which need not exist."""
    return Path(platformdirs.user_config_dir("lousho", appauthor=False)) / CONFIG_FILE


def _from_file(file: Path, layer: Layer) -> dict[str, tuple[Value, Source]]:
    try:
        found = read_toml(file, KEYS, tables=(PROVIDERS,))
    except FileNotFoundError:
        return {}
    if "store" in found:
        _check_store(found["store"].where + ": store", found["store"].value)
    return {key: (each.value, Source(layer, each.where)) for key, each in found.items()}


def _servers(file: Path) -> dict[str, Server]:
    try:
        tables = read_tables(file, PROVIDERS, PROVIDER_KEYS)
    except FileNotFoundError:
        return {}
    servers = {name: Server(**values, where=f"{file}: [providers.{name}]") for name, values in tables.items()}
    for server in servers.values():
        server.check()
    return servers


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[Value, Source]]:
    names = {ENVIRONMENT_PREFIX + key.upper(): key for key in KEYS}
    given = {name: environ[name] for name in names if environ.get(name)}
    return {
        names[name]: (_parsed(names[name], name, value), Source("environment", name))
        for name, value in given.items()
    }


def _from_flags(flags: Mapping[str, Value | None]) -> dict[str, tuple[Value, Source]]:
    return {
        key: (_parsed(key, flag, str(value)), Source("flag", flag))
        for key, value in flags.items()
        if value is not None and (flag := "--" + key.replace("_", "-"))
    }


def _parsed(key: str, where: str, value: str) -> Value:
    if key == "store":
        _check_store(where, value)
    try:
        return KEYS[key].parse(value)
    except ValueError as error:
        raise ConfigurationError(f"{where} cannot be {value!r}", hint=f"it takes {error}") from error


def _check_store(what: str, value: Value) -> None:
    try:
        parse_location(str(value))
    except ValueError as error:
        shown = hide_credentials(str(value))
        raise ConfigurationError(f"{what} cannot be {shown!r}", hint=f"it takes {error}") from error
