"""`lousho run` sends spans where OpenTelemetry's environment variables say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lousho_cli", *words],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_exporter_of_the_environment_gets_the_spans_and_the_data_stays_apart(tmp_path: Path) -> None:
    said = "What is the weather like in Oslo?"
    done = run(
        tmp_path, "run", "oslo", said, "--json", OTEL_TRACES_EXPORTER="console", LOUSHO_OTEL_CONTENT="1"
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["finishReason"] == "stop"
    assert '"name": "invoke_agent concierge"' in done.stderr
    assert '"service.name": "lousho"' in done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_TRACES_EXPORTER": "no_such_exporter"}, True),
        ({"OTEL_TRACES_EXPORTER": "no_such_exporter", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_an_exporter_that_is_missing_is_told_and_the_run_goes_on(
    tmp_path: Path, environment: dict[str, str], told: bool
) -> None:
    done = run(tmp_path, "run", "oslo", "What is the weather like in Oslo?", **environment)
    assert done.returncode == 0
    assert ("OpenTelemetry: there is no exporter" in done.stderr) is told
