"""What holds for every test: nothing of the machine reaches it, and nothing of it reaches the machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# The documents speak to a POSIX shell in a terminal.
collect_ignore = ["docs"] if sys.platform == "win32" else []

# A busy machine may take seconds over one example; the time limit of each test is the bound that counts.
# CI looks at the same examples each time; a developer's runs, and the soak, look at new ones.
settings.register_profile("patient", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("patient")

_HOME_VARIABLES = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
_XDG_VARIABLES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
_MODEL_VARIABLES = ("_API_KEY", "_BASE_URL", "_BEARER_TOKEN_BEDROCK", "OLLAMA_HOST")
_OUTPUT_VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "PAGER")


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, and no key, setting or output preference of the machine. Returns that folder."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if (
            name.startswith(("LOUSHO_", "OTEL_"))
            or name.endswith(_MODEL_VARIABLES)
            or name in _OUTPUT_VARIABLES
        ):
            monkeypatch.delenv(name)
    for name in _HOME_VARIABLES:
        monkeypatch.setenv(name, str(home))
    for name in _XDG_VARIABLES:
        monkeypatch.setenv(name, str(home / name.lower()))
    # The machine's own Ollama is none of the tests' business: nothing answers at this port.
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    # Processes that a test starts in a scratch folder run this tree too.
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    return home
