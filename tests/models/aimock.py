"""A server that speaks the interfaces of model providers, written by others: aimock.

It answers from fixtures and keeps a journal of what it was asked. Each test has a scope of its own there.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pytest
from captured import AT_THE_ROOT, KEY_VARIABLE, PROVIDERS

from lousho_cli.providers.models.servers import Server

# Read before the tests are shielded from the machine's settings.
GIVEN_URL = os.environ.get("LOUSHO_TEST_AIMOCK_URL")
IN_CI = os.environ.get("CI") == "true"
KEY = "key-of-the-tests-0123456789"
START_SECONDS = 40

Reply = Mapping[str, Any]


@dataclass
class Aimock:
    """One test's view of the server: what it is to answer, and what it was asked."""

    url: str
    test_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def prompt(self) -> str:
        """What the user has to say for this test's answers."""
        return f"please-{self.test_id}"

    def replies(self, *replies: Reply, **options: Any) -> None:
        """Answer the n-th turn of the conversation with the n-th reply."""
        self._post(
            "fixtures",
            {
                "fixtures": [
                    {"match": {"userMessage": self.prompt, "turnIndex": turn}, "response": reply, **options}
                    for turn, reply in enumerate(replies)
                ]
            },
        )

    def in_turn(self, *replies: Reply, first: Mapping[str, Any] | None = None, **options: Any) -> None:
        """Answer this test's n-th request with the n-th reply, whatever it asks.

        Args:
            first: further options of the first answer.
        """
        self._post(
            "fixtures",
            {
                "fixtures": [
                    {
                        "match": {"userMessage": self.prompt, "sequenceIndex": index},
                        "response": reply,
                        **options,
                        **((first or {}) if index == 0 else {}),
                    }
                    for index, reply in enumerate(replies)
                ]
            },
        )

    def fails(self, status: int, message: str = "no", **error: str) -> None:
        """Answer every request with an error."""
        body = {"message": message, **error}
        self.replies(*[{"error": body, "status": status}] * 3)

    def chaos(self, **rates: float) -> None:
        """Fail at these rates: dropRate, malformedRate, disconnectRate, rateLimitRate."""
        self._post("chaos", rates)

    def calm(self) -> None:
        self._request("DELETE", "chaos")

    def requests(self, *, scoped: bool = True) -> list[dict[str, Any]]:
        """The bodies of this test's requests so far, as OpenAI's chat completions would have them.

        Args:
            scoped: false for a client that cannot name the test: its requests hold the test's prompt.
        """
        entries = self._request("GET", f"journal?testId={self.test_id}" if scoped else "journal")
        return [entry["body"] for entry in entries if scoped or self.prompt in json.dumps(entry["body"])]

    def events(self, path: str) -> list[bytes]:
        """The events of one streamed answer, as the server sends them."""
        said = [{"role": "user", "content": self.prompt}]
        body = {"model": "m", "stream": True, "messages": said, "input": said, "max_tokens": 9}
        body["contents"] = [{"role": "user", "parts": [{"text": self.prompt}]}]
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode(), method="POST")
        for name, value in (("X-Test-Id", self.test_id), ("Content-Type", "application/json")):
            request.add_header(name, value)
        with urllib.request.urlopen(request, timeout=20) as answer:
            text: bytes = answer.read()
        return [event + b"\n\n" for event in text.replace(b"\r\n", b"\n").split(b"\n\n") if event.strip()]

    def servers(self) -> dict[str, Server]:
        """The providers, all of them at this server and in this test's scope."""
        return {name: self.server(name) for name in PROVIDERS}

    def server(self, name: str) -> Server:
        path = "" if name in AT_THE_ROOT else "/v1"
        return Server(f"{self.url}{path}", KEY_VARIABLE, {"X-Test-Id": self.test_id})

    def config(self) -> str:
        """The same as a `config.toml`."""
        tables = []
        for name in self.servers():
            server = self.server(name)
            tables += [f"[providers.{name}]", f'base_url = "{server.base_url}"']
            tables += [f'api_key_env = "{KEY_VARIABLE}"']
            tables += [f'headers = {{ X-Test-Id = "{self.test_id}" }}']
        return "\n".join(tables) + "\n"

    def _post(self, path: str, body: Mapping[str, Any]) -> None:
        self._request("POST", path, json.dumps(body).encode())

    def _request(self, method: str, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(f"{self.url}/__aimock/{path}", data=body, method=method)
        request.add_header("X-Test-Id", self.test_id)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read())


@contextmanager
def aimock_server() -> Iterator[str]:
    """The address of a running server: the one that is given, or one of our own."""
    if GIVEN_URL is not None:
        yield GIVEN_URL.rstrip("/")
        return
    binary = shutil.which("llmock")
    if binary is None:
        absent("neither LOUSHO_TEST_AIMOCK_URL nor llmock (npm install -g @copilotkit/aimock)")
    port = free_port()
    command = [str(binary), "-p", str(port), "-f", os.devnull, "--log-level", "silent", "--journal-max", "0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_ready(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def absent(what: str) -> None:
    """Skip, or in CI, where everything is to be there, fail."""
    if IN_CI:
        pytest.fail(f"there is {what}")
    pytest.skip(f"there is {what}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server listens, or fail with its end."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the server ended at once, with {process.returncode}")
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail("the server did not start")


def call(name: str, arguments: Mapping[str, Any], call_id: str | None = None) -> dict[str, Any]:
    """A tool call in a reply."""
    return {"name": name, "arguments": dict(arguments), **({"id": call_id} if call_id else {})}


def roles(request: Mapping[str, Any]) -> list[str]:
    """Who speaks in a request, in order; what one says in several pieces counts once."""
    messages: Sequence[Mapping[str, Any]] = request["messages"]
    return [role for role, _ in groupby(message["role"] for message in messages)]
