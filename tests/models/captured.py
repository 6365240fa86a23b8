"""A server that keeps the bytes it was sent, and answers each provider's interface with a short text."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lousho_cli.providers.models.servers import Server

ANSWER = "ok"
KEY_VARIABLE = "THESE_TESTS_API_KEY"


def _chat() -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    named = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return {**named, "choices": [choice], "usage": usage}


def _messages() -> dict[str, Any]:
    return {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": ANSWER}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def _responses() -> dict[str, Any]:
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    output = {"id": "o", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "m",
        "output": [output], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


def _gemini() -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": ANSWER}]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": "m"}


def _told(message: dict[str, Any]) -> bytes:
    """A whole message of Anthropic's as the events of a stream, which its client may ask for by itself."""
    text = {"type": "text_delta", "text": ANSWER}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": text},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()


ANSWERS = {
    "chat/completions": _chat,
    "messages": _messages,
    "responses": _responses,
    "generateContent": _gemini,
}


AT_THE_ROOT = ("anthropic", "google", "mistral", "groq")
"""The providers whose address has no `/v1`."""
PROVIDERS = (*AT_THE_ROOT, "openai", "openai-responses", "ollama", "local")


class Captured:
    """The server's address, and the bodies it was sent, in order."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.bodies: list[dict[str, Any]] = []

    def servers(self) -> dict[str, Server]:
        return {name: Server(self.url + ("" if name in AT_THE_ROOT else "/v1")) for name in PROVIDERS}


class Replay(Captured):
    """A server that answers each request with the same bytes of a stream, and then hangs up."""

    body = b""

    def servers(self) -> dict[str, Server]:
        return {name: replace(server, api_key_env=KEY_VARIABLE) for name, server in super().servers().items()}


@contextmanager
def capturing() -> Iterator[Captured]:
    """A running server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            captured.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            make = next(make for end, make in ANSWERS.items() if self.path.split("?")[0].endswith(end))
            streams = captured.bodies[-1].get("stream")
            answer = _told(make()) if streams else json.dumps(make()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _serving(Handler) as port:
        captured = Captured(port)
        yield captured


@contextmanager
def replaying() -> Iterator[Replay]:
    """A running server that says what it is told to say."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(replay.body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _serving(Handler) as port:
        replay = Replay(port)
        yield replay


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
