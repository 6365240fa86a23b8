"""For the tests of agents and stores.

`ScriptedModel` is a deterministic model: the test of an agent says what the model says.

    from lousho_cli import create_agent
    from lousho_cli.testing import ScriptedModel

    def test_the_bot_looks_before_it_answers():
        model = ScriptedModel([{"tool_calls": [{"name": "look", "args": {"q": "tea"}}]}, "Here it is."])
        agent = create_agent(provider=model, tools=[look])
        assert agent.send_sync("Tea?").text == "Here it is."
        model.assert_exhausted()

`checkpoint_store_contract` and `approval_store_contract` are suites of pytest tests for any store: what it
has to keep so that runs resume, pause, fork and never repeat themselves. A class in a test file puts a store
in.

    import pytest
    from lousho_cli.testing import checkpoint_store_contract

    class TestMyCheckpoints(checkpoint_store_contract):
        @pytest.fixture
        def store(self, tmp_path):
            return MyStore(tmp_path).checkpoints

`record_replay` keeps a real model's answers in a file and plays them from then on.

    from lousho_cli.testing import record_replay

    def test_tea():
        with record_replay("cassettes/tea.json", provider="openai:gpt-5-mini") as model:
            assert "tea" in create_agent(provider=model).send_sync("Tea?").text

The suites need pytest, and no plugin of it; nothing else here does.

`record_files` records what file stores do on the disk, and `disk_states` makes of that every state in which a
power cut may leave it:

    from lousho_cli import FileStore
    from lousho_cli.testing import disk_states, record_files

    def test_a_power_cut_leaves_it_whole(tmp_path):
        root = tmp_path / "before"
        root.mkdir()
        with record_files(root) as recording:
            agent = create_agent(provider=ScriptedModel(["Tea."]), store=FileStore(root))
            agent.send_sync("Tea?", session_id="s")
        for number, state in enumerate(disk_states(recording)):
            state.write_to(tmp_path / str(number))
"""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from ..providers.scripted import ScriptedModel

if TYPE_CHECKING:
    from .approval_contract import approval_store_contract
    from .cassettes import record_replay
    from .checkpoint_contract import checkpoint_store_contract
    from .disk import DiskState
    from .disk_states import disk_states
    from .file_operations import FileRecording
    from .file_recorder import record_files

_SUITES = {
    "approval_store_contract": "approval_contract",
    "checkpoint_store_contract": "checkpoint_contract",
}
_CRASH_KIT = {
    "DiskState": "disk",
    "FileRecording": "file_operations",
    "disk_states": "disk_states",
    "record_files": "file_recorder",
}
_CASSETTES = {"record_replay": "cassettes"}

__all__ = [
    "DiskState",
    "FileRecording",
    "ScriptedModel",
    "approval_store_contract",
    "checkpoint_store_contract",
    "disk_states",
    "record_files",
    "record_replay",
]


def __getattr__(name: str) -> Any:
    module = _SUITES.get(name) or _CRASH_KIT.get(name) or _CASSETTES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _SUITES:
        _explain_asserts()
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _explain_asserts() -> None:
    """Have pytest show the values in the asserts of the suites, as it does for those of test files.

    Raises:
        ConfigurationError: there is no pytest.
    """
    try:
        pytest = import_module("pytest")
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "the store suites need pytest, which is not installed",
            code="LOUSHO_PEER_MISSING",
            hint="pip install pytest",
        ) from error
    modules = [f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)]
    # One that is imported already is as it is, and pytest would warn of it.
    pytest.register_assert_rewrite(*(module for module in modules if module not in sys.modules))
