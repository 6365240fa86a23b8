"""A Redis server for the tests of the command line: the one that is given, or one of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# Read before the tests are shielded from the machine's settings.
GIVEN_URL = os.environ.get("LOUSHO_TEST_REDIS_URL")
IN_CI = os.environ.get("CI") == "true"
OWN_DATABASE = 14


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """The URL of a database of a running server. Of a server that was given, it is one of its last ones."""
    if find_spec("redis") is None:
        _absent('the redis package is not installed: pip install "lousho-cli[redis]"')
    if GIVEN_URL is not None:
        yield f"{GIVEN_URL.rpartition('/')[0]}/{OWN_DATABASE}"
        return
    binary = shutil.which("redis-server")
    if binary is None:
        _absent("neither LOUSHO_TEST_REDIS_URL nor a redis-server binary")
    port = free_port()
    options = {"--bind": "127.0.0.1", "--port": str(port), "--dir": str(folder), "--save": ""}
    process = subprocess.Popen(
        [str(binary), *(word for option in options.items() for word in option)], stdout=subprocess.DEVNULL
    )
    try:
        _wait_for(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def redis_client(url: str) -> Iterator[Any]:
    """A client of that database."""
    client = import_module("redis").Redis.from_url(url)
    try:
        yield client
    finally:
        client.close()


def forget_sessions(url: str) -> None:
    """Remove what the command line has put into the database, and nothing else."""
    with redis_client(url) as client:
        for key in client.scan_iter("lousho:*"):
            client.delete(key)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _absent(what: str) -> None:
    if IN_CI:
        pytest.fail(f"{what}, and CI has to run these tests")
    pytest.skip(what)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
