"""The names that programs may rely on, pinned: a name is added or removed here on purpose."""

from __future__ import annotations

import subprocess
import sys
import types
from importlib import import_module
from pathlib import Path

import pytest

import lousho_cli
import lousho_cli.testing

ROOT = Path(__file__).resolve().parent.parent

PROMISED = """
    AgentExecutor Agent create_agent tool Tool ToolContext ToolRegistry
    resume_after_approval ApprovalDecision ForkPatch compare_trajectories get_checkpoint_history
    MemoryStore FileStore SqliteStore KVStore
    Checkpoint HistoryEntry Message ToolCall ExecutionResult ForkResult PendingApproval Usage
    Provider ModelRequest ModelResponse CheckpointStore ApprovalStore
    SDKError ConfigurationError SessionAwaitingApprovalError PropagatingToolError
""".split()
"""What `lousho_cli` is to have."""

FURTHER = """
    UNSET AgentSession Cancel DurableAgent Event Hooks ProviderError RunContext SessionBusyError StorageError
    StoredApproval ToolSchema ToolUse resume_after_approval_sync __version__
    Budget ModelSettings RetryPolicy TextDelta ReasoningDelta CallDelta
""".split()
"""What it has beyond that: what the signatures of the promised names are made of, and the version."""

PROMISED_FOR_TESTS = """
    ScriptedModel checkpoint_store_contract approval_store_contract
    record_files FileRecording disk_states DiskState record_replay
""".split()
"""What `lousho_cli.testing` is to have."""

NAMES = [(lousho_cli, name) for name in lousho_cli.__all__] + [
    (lousho_cli.testing, name) for name in lousho_cli.testing.__all__
]
PLAIN_VALUES = {"UNSET", "__version__"}
"""Names of values, which have no docstring of their own."""


def test_the_package_exports_exactly_the_pinned_names() -> None:
    assert sorted(lousho_cli.__all__) == sorted(PROMISED + FURTHER)


def test_the_testing_package_exports_exactly_the_pinned_names() -> None:
    assert sorted(lousho_cli.testing.__all__) == sorted(PROMISED_FOR_TESTS)


@pytest.mark.parametrize(("package", "name"), NAMES, ids=[name for _, name in NAMES])
def test_every_name_can_be_imported_and_says_what_it_is(package: types.ModuleType, name: str) -> None:
    value = getattr(import_module(package.__name__), name)
    if name not in PLAIN_VALUES:
        assert (value.__doc__ or "").strip()
        assert value.__doc__ is not object.__doc__


@pytest.mark.parametrize("name", lousho_cli.__all__)
def test_every_name_is_documented(name: str) -> None:
    text = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")
    assert f"`{name}`" in text.split("\n## All names\n")[1]


def test_completion_offers_the_public_names() -> None:
    assert dir(lousho_cli) == sorted(lousho_cli.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'create_agents'"):
        _ = lousho_cli.create_agents


@pytest.mark.parametrize("module", ["pydantic", "asyncio", "rich", "typer"])
def test_importing_the_package_loads_nothing_heavy(module: str) -> None:
    script = f"import sys; import lousho_cli; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-S", "-c", script], cwd=ROOT, check=False).returncode == 0


def test_importing_a_name_works_from_a_plain_statement() -> None:
    namespace: dict[str, object] = {}
    exec("from lousho_cli import *", namespace)
    assert set(lousho_cli.__all__) <= namespace.keys()
