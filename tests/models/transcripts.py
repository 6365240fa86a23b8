"""Random transcripts as sessions store them, and what makes a request valid to each kind of provider."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from lousho_cli.execution.messages import CallData
from lousho_cli.providers.models.parts import PROVIDER_PARTS, digest_of

ODD = [
    "",
    " ",
    "\n\n",
    "\u0000",
    "\u2028",
    "\ufeff",
    "e\u0301 \u202e",
    "👩‍👩‍👧",
    "plain",
    "",
    " ",
    "\n\n",
    "\u0000",
    "\u2028",
    "\ufeff",
    "e\u0301 \u202e",
    "👩‍👩‍👧",
    "plain",
    "<think>x</think>",
    "a" * 300,
]
texts = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
arguments = st.sampled_from(["{}", '{"q": 1}', '{"q": "é"}', "", "null", "[1]", '{"q": 1,}', "not json"])
call_ids = st.sampled_from(["call_1", "abcdefghi", "toolu.01/x", "ü" * 5, "x" * 90, "", "call|fc_1", "a b"])
results = st.sampled_from(
    ['""', '" "', "0", "false", "[]", "null", '"123"', '{"error": "no", "kind": "timeout"}']
)
blobs = st.binary(min_size=1, max_size=12).map(lambda data: base64.b64encode(data).decode())
images = st.sampled_from(
    [
        {"type": "text", "text": " "},
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "sticker", "name": "cat"},
    ]
)
contents = texts | st.lists(images, max_size=3)


@st.composite
def assistant(draw: st.DrawFn, provider: str | None, ids: Iterator[int]) -> dict[str, Any]:
    """A turn: text, calls with ids that are unique in the session, and perhaps a provider's own parts."""
    calls: list[CallData] = [
        {
            "id": f"{draw(call_ids)}-{next(ids)}"[-100:],
            "type": "function",
            "function": {"name": "look", "arguments": draw(arguments)},
        }
        for _ in range(draw(st.integers(0, 3)))
    ]
    message: dict[str, Any] = {"role": "assistant", "content": draw(texts)}
    if calls:
        message["toolCalls"] = calls
    if provider is not None and draw(st.booleans()):
        reasoning, signature = draw(texts), draw(blobs)
        first = {"kind": "thinking", "length": len(reasoning), "signature": signature}
        said = {"kind": "text", "length": len(message["content"])}
        hidden = {"kind": "thinking", "length": 0, "id": "redacted_thinking", "signature": f"R{signature}"}
        last = [hidden] if provider == "anthropic" else []
        message["reasoning"] = reasoning
        message[PROVIDER_PARTS] = {
            "provider": provider,
            "issuer": provider.removesuffix("-responses"),
            "system": provider.removesuffix("-responses"),
            "digest": digest_of(message["content"], reasoning, calls),
            "parts": [first, said, *[{"kind": "call"} for _ in calls], *last],
        }
    return message


@st.composite
def conversations(draw: st.DrawFn, *providers: str) -> list[dict[str, Any]]:
    """A valid transcript that ends with the user or with results, of turns by some of these providers."""
    ids = iter(range(1000))
    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(contents)}]
    for _ in range(draw(st.integers(0, 4))):
        turn = draw(assistant(draw(st.sampled_from([None, *providers])), ids))
        messages.append(turn)
        for call in turn.get("toolCalls", []):
            failed = {"isError": True} if draw(st.booleans()) else {}
            messages.append(
                {
                    "role": "tool",
                    "content": draw(results),
                    "toolCallId": call["id"],
                    "toolName": "look",
                    **failed,
                }
            )
        if not turn.get("toolCalls") or draw(st.booleans()):
            messages.append({"role": "user", "content": draw(contents)})
    return messages


def check_chat(body: Mapping[str, Any], id_pattern: str) -> None:
    """OpenAI's chat completions, and what is like them."""
    messages = [each for each in body["messages"] if each["role"] not in ("system", "developer")]
    assert messages[0]["role"] == "user"
    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_ids.pop(0)
            assert message["content"]
            continue
        assert open_ids == []
        for text in _texts(message.get("content")):
            assert text.strip()
        if message["role"] == "assistant":
            calls = message.get("tool_calls") or []
            assert calls or message["content"]
            open_ids = [call["id"] for call in calls]
            assert len(set(open_ids)) == len(open_ids)
            for call in calls:
                assert re.fullmatch(id_pattern, call["id"])
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert open_ids == []


def check_messages(body: Mapping[str, Any]) -> None:
    """Anthropic's messages."""
    assert body["messages"][0]["role"] == "user"
    open_ids: list[str] = []
    for message in body["messages"]:
        blocks = message["content"]
        assert blocks
        found = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert found == open_ids
        # Results come before anything else the user says.
        assert [block["type"] for block in blocks[: len(found)]] == ["tool_result"] * len(found)
        for block in blocks:
            if block["type"] == "text":
                assert block["text"].strip()
            if block["type"] == "tool_result":
                assert block["content"]
        open_ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for call_id in open_ids:
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call_id)
        if message["role"] == "assistant":
            assert any(block["type"] in ("text", "tool_use") for block in blocks)
    assert open_ids == []


def check_items(body: Mapping[str, Any]) -> None:
    """OpenAI's responses."""
    open_ids: list[str] = []
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "function_call":
            open_ids.append(item["call_id"])
            assert 0 < len(item["call_id"]) <= 64
            assert isinstance(json.loads(item["arguments"]), dict)
        elif kind == "function_call_output":
            assert item["call_id"] == open_ids.pop(0)
            assert item["output"]
        elif kind == "message" and item["role"] != "system":
            for text in _texts(item["content"]):
                assert text.strip()
    assert open_ids == []


def check_contents(body: Mapping[str, Any]) -> None:
    """Google's contents."""
    assert body["contents"][0]["role"] == "user"
    calls = 0
    for content in body["contents"]:
        assert content["parts"]
        answers = [part for part in content["parts"] if "functionResponse" in part]
        assert len(answers) == calls
        for part in content["parts"]:
            assert part.get("thought") or part.get("text", "x").strip()
        calls = sum("functionCall" in part for part in content["parts"])
    assert calls == 0


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Sequence):
        for part in content:
            if "text" in part:
                yield part["text"]
