"""F13: a provider's own key is never stored or told; other secrets are taken out where it is asked for."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lousho_cli import (
    Agent,
    AgentExecutor,
    ConfigurationError,
    Event,
    FileStore,
    PropagatingToolError,
    SqliteStore,
    ToolContext,
    create_agent,
    tool,
)
from lousho_cli.execution.protocols import ModelRequest
from lousho_cli.testing import ScriptedModel

OWN = 'own-"key"-4711-zzzz'
SHAPED = "sk-test-0123456789abcdef0123"
FIELD = "hunter2hunter2"
ALL = (OWN, SHAPED, FIELD)


class KeyedModel(ScriptedModel):
    """A model that is asked with a key."""

    secrets = (OWN,)


def leaks(value: object, secrets: tuple[str, ...]) -> list[str]:
    """The secrets that stand in a text, as they are or as JSON writes them."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    found = text + text.replace("\\", "")
    return [secret for secret in secrets if secret in found]


def stored(folder: Path) -> Iterator[str]:
    """All that is stored in a folder, as text."""
    for path in folder.rglob("*"):
        if path.suffix == ".db":
            with sqlite3.connect(path) as database:
                yield "\n".join(database.iterdump())
        elif path.is_file():
            yield path.read_bytes().decode("utf-8", "replace")


@tool
def look(context: ToolContext, where: str) -> dict[str, Any]:
    """Look somewhere."""
    context.business_state = {"last": OWN, "note": SHAPED}
    return {"password": FIELD, "line": f"TOKEN={SHAPED}", "own": OWN, "count": 3, "where": where}


@tool
def fail() -> str:
    """Fail, telling too much."""
    raise RuntimeError(f"no access with {OWN} at db://user:{FIELD}@host")


TURNS: list[Any] = [
    {
        "text": f"I use {OWN}",
        "tool_calls": [{"name": "look", "args": {"where": "here"}}, {"name": "fail", "args": {}}],
    },
    {"text": f"Your key is {SHAPED} or {OWN}", "reasoning": f"hm, {OWN}"},
]


def store_in(folder: Path, kind: str) -> FileStore | SqliteStore:
    return FileStore(folder / ".lousho") if kind == "file" else SqliteStore(folder / "s.db")


@pytest.mark.parametrize("kind", ["file", "sqlite"])
@pytest.mark.parametrize("redaction", [None, {"keys": ["password"], "patterns": []}])
def test_f13_no_secret_is_in_any_file_event_or_result(
    tmp_path: Path, kind: str, redaction: Mapping[str, Any] | None
) -> None:
    store = store_in(tmp_path, kind)
    events: list[Event] = []
    result = AgentExecutor.execute_sync(
        agent=Agent("a", tools=[look, fail]), input=f"my key is {OWN}, or {SHAPED}",
        provider=KeyedModel(TURNS), session_id="s", checkpoint_store=store.checkpoints,
        redaction=redaction, on_event=events.append,
    )  # fmt: skip
    never = (OWN,) if redaction is None else ALL
    for text in stored(tmp_path):
        assert leaks(text, never) == []
    for event in events:
        assert leaks(event.to_json(), never) == []
    assert leaks(result.model_dump(mode="json", by_alias=True), never) == []
    answers = [message for message in result.messages if message.role == "tool"]
    assert json.loads(answers[0].content)["where"] == "here"
    assert json.loads(answers[0].content)["count"] == 3
    assert json.loads(answers[1].content)["kind"] == "tool-error"
    assert any(event.type == "content.redacted" and event.data["count"] for event in events)


def test_without_a_key_and_without_redaction_everything_stays_as_it_was_said(tmp_path: Path) -> None:
    store = FileStore(tmp_path / ".lousho")
    result = AgentExecutor.execute_sync(
        agent=Agent("a"), input=f"keep {SHAPED}", provider=ScriptedModel([f"kept {SHAPED}"]),
        session_id="s", checkpoint_store=store.checkpoints,
    )  # fmt: skip
    assert result.text == f"kept {SHAPED}"


def test_what_the_model_is_told_live_is_what_it_is_told_after_a_resume(tmp_path: Path) -> None:
    store = FileStore(tmp_path / ".lousho")
    crash = {"error": "gone"}
    options: dict[str, Any] = {
        "agent": Agent("a", tools=[look]), "session_id": "s", "redaction": {"keys": ["password"]},
        "checkpoint_store": store.checkpoints,
    }  # fmt: skip
    asked: list[str] = []

    def remember(request: ModelRequest) -> Any:
        asked.append(json.dumps([message.model_dump(mode="json") for message in request.messages]))
        return crash if len(asked) == 1 else "done"

    call = {"tool_calls": [{"name": "look", "args": {"where": "here"}}]}
    with pytest.raises(Exception, match="gone"):
        AgentExecutor.execute_sync(input=f"use {SHAPED}", provider=ScriptedModel([call, remember]), **options)
    AgentExecutor.execute_sync(input=f"use {SHAPED}", provider=ScriptedModel([remember]), **options)
    assert asked[0] == asked[1]
    assert leaks(asked[0], (SHAPED, FIELD)) == []


def test_the_arguments_of_a_call_stay_what_runs(tmp_path: Path) -> None:
    seen: list[str] = []

    @tool
    def send(token: str) -> str:
        """Send."""
        seen.append(token)
        return "sent"

    agent = create_agent(
        tools=[send], redaction=True, store=FileStore(tmp_path / ".lousho"),
        provider=ScriptedModel([{"tool_calls": [{"name": "send", "args": {"token": SHAPED}}]}, "ok"]),
    )  # fmt: skip
    result = agent.send_sync("go")
    assert seen == [SHAPED]
    assert json.loads(result.tool_calls[0].function.arguments) == {"token": SHAPED}


def test_what_is_signed_stays_byte_for_byte(tmp_path: Path) -> None:
    blocks = [{"type": "thinking", "thinking": f"step {SHAPED}", "signature": "SIG"}]
    agent = create_agent(
        redaction=True, store=FileStore(tmp_path / ".lousho"),
        provider=ScriptedModel([{"content": [*blocks, {"type": "text", "text": SHAPED}]}]),
    )  # fmt: skip
    content = agent.send_sync("go").messages[-1].content
    assert content[0] == blocks[0]
    assert content[1] == {"type": "text", "text": "<redacted>"}


def test_an_error_that_ends_the_run_says_no_secret(tmp_path: Path) -> None:
    @tool
    def stop() -> str:
        """Stop."""
        raise PropagatingToolError(f"refused {OWN}", hint=f"with {OWN}")

    with pytest.raises(PropagatingToolError) as caught:
        AgentExecutor.execute_sync(
            agent=Agent("a", tools=[stop]), input="go",
            provider=KeyedModel([{"tool_calls": [{"name": "stop", "args": {}}]}]),
        )  # fmt: skip
    assert leaks(caught.value.message + caught.value.hint, ALL) == []


def test_the_same_input_again_is_a_retry_though_its_key_was_taken_out(tmp_path: Path) -> None:
    store = FileStore(tmp_path / ".lousho")
    agent = create_agent(
        redaction=True, store=store, provider=ScriptedModel([{"error": "down"}, "hello"])
    )  # fmt: skip
    with pytest.raises(Exception, match="down"):
        agent.send_sync(f"use {SHAPED}", session_id="s")
    result = agent.send_sync(f"use {SHAPED}", session_id="s")
    assert [message.role for message in result.messages] == ["user", "assistant"]


def test_a_sub_agents_results_are_redacted_too(tmp_path: Path) -> None:
    sub = Agent("helper", tools=[look], provider=ScriptedModel([TURNS[0], "ok"]))
    agent = create_agent(
        redaction={"keys": ["PASSWORD"]}, store=FileStore(tmp_path / ".lousho"), subagents=[sub],
        provider=KeyedModel([{"tool_calls": [{"name": "delegate_helper", "args": {"input": "x"}}]}, "ok"]),
    )  # fmt: skip
    agent.send_sync("go", session_id="s")
    for text in stored(tmp_path):
        assert leaks(text, ALL) == []


@pytest.mark.parametrize(
    ("redaction", "says"),
    [({"patterns": ["("]}, "regular expression"), ({"patterns": ["x*"]}, "empty"), ({"key": ["a"]}, "key"),
     ({"keys": "password"}, "keys")],
)  # fmt: skip
def test_a_wrong_redaction_is_told_before_anything_runs(redaction: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        create_agent(redaction=redaction, provider=ScriptedModel(["never"]))
