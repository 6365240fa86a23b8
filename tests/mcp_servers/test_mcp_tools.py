"""Tools of MCP servers in a run: called, approved, interrupted, cancelled, and the servers' deaths."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from mcp_world import Servers, Talk, call, servers

from lousho_cli import AgentExecutor, ConfigurationError, SDKError
from lousho_cli.evals.answers import StubAnswers, answered
from lousho_cli.evals.cases import Stub
from lousho_cli.execution.cancel import Cancel
from lousho_cli.execution.events import Event

__all__ = ["servers"]

pytestmark = pytest.mark.timeout(300)


def results(talk: Talk) -> list[Any]:
    """The results the model was last shown, as values."""
    return [json.loads(each.content) for each in talk.model.calls[-1].messages if each.role == "tool"]


def test_a_tool_that_only_reads_runs_and_its_structured_result_is_a_value(servers: Servers) -> None:
    talk = Talk({"time": servers.time()})
    rome = {"source_timezone": "Europe/Rome", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    turn = {
        "tool_calls": [
            {"name": "time_convert_time", "args": rome},
            {"name": "time_get_current_time", "args": {"timezone": "Nowhere"}},
            {"name": "time_get_current_time", "args": {"zone": 7}},
        ]
    }
    result = talk.send([turn, "done"])
    assert (result.finish_reason, result.text) == ("stop", "done")
    converted, unknown, refused = results(talk)
    assert converted["source"]["timezone"] == "Europe/Rome"
    assert unknown["kind"] == "tool-error"
    assert "Nowhere" in unknown["error"]
    assert refused == {"error": "'timezone' is a required property", "kind": "invalid-arguments"}
    assert set(talk.tools()) == {"time_convert_time", "time_get_current_time"}
    assert servers.pids() == []


def test_content_becomes_json_by_its_kind(servers: Servers) -> None:
    turn = {
        "tool_calls": [
            {"name": "all_echo", "args": {"message": '{"a": 1}'}},
            {"name": "all_get-structured-content", "args": {"location": "Chicago"}},
            {"name": "all_get-tiny-image", "args": {}},
            {"name": "all_get-resource-links", "args": {"count": 1}},
            {"name": "all_get-resource-reference", "args": {"resourceType": "Text", "resourceId": 1}},
        ]
    }
    talk = Talk({"all": servers.everything()})
    talk.send([turn, "done"])
    echo, structured, image, links, resource = results(talk)
    assert echo == 'Echo: {"a": 1}'
    assert set(structured) == {"temperature", "conditions", "humidity"}
    assert image[1]["type"] == "image"
    assert image[1]["mimeType"] == "image/png"
    assert image[1]["data"].startswith("iVBOR")
    assert links[1]["type"] == "resource_link"
    assert links[1]["uri"].startswith("demo://")
    assert resource[1]["resource"]["mimeType"] == "text/plain"


def test_a_tool_that_changes_something_waits_for_a_human_unless_the_settings_say_otherwise(
    servers: Servers, tmp_path: Path
) -> None:
    log = tmp_path / "sent"
    talk = Talk({"all": servers.everything(log=log, tools=["toggle-simulated-logging", "echo"])})
    toggle = call("all_toggle-simulated-logging", "toggle-1")
    paused = talk.send([toggle])
    assert paused.finish_reason == "awaiting-approval"
    assert set(talk.tools()) == {"all_toggle-simulated-logging", "all_echo"}
    assert "tools/call" not in log.read_text()
    approved = talk.approve(paused.approval_id, ["done"])
    assert approved is not None
    assert approved.text == "done"
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    (called,) = [each["params"] for each in sent if each["method"] == "tools/call"]
    assert called["_meta"]["idempotencyKey"] == "toggle-1"
    assert called["_meta"]["sessionId"] == "s1"

    free = {"toggle-simulated-logging": {"needs_approval": False}, "echo": {"needs_approval": True}}
    talk = Talk({"all": servers.everything(tool=free)})
    assert talk.send([toggle, call("all_echo", message="hi")]).finish_reason == "awaiting-approval"
    assert "Started simulated" in results(talk)[0]


def test_an_approval_whose_tool_is_gone_stays_undecided(servers: Servers) -> None:
    talk = Talk({"all": servers.everything()})
    paused = talk.send([call("all_toggle-simulated-logging")])
    talk.mcp = {"all": servers.everything(exclude=["toggle-simulated-logging"])}
    with pytest.raises(SDKError) as refused:
        talk.approve(paused.approval_id, [])
    assert refused.value.code == "LOUSHO_RESUME_TOOL_MISSING"
    (waiting,) = asyncio.run(talk.agent([]).approvals.list())
    assert waiting.status == "pending"
    talk.mcp = {}
    rejected = asyncio.run(talk.agent([]).approvals.resolve(str(paused.approval_id), False, run=False))
    assert rejected is None
    assert servers.pids() == []


def test_a_changed_schema_is_drift(servers: Servers) -> None:
    gated = {"get_current_time": {"needs_approval": True}}
    talk = Talk({"time": servers.time("UTC", tool=gated)}, on_agent_drift="error")
    paused = talk.send([call("time_get_current_time", timezone="UTC")])
    talk.mcp = {"time": servers.time("Europe/Rome", tool=gated)}
    with pytest.raises(SDKError, match="tool time_get_current_time takes other arguments") as refused:
        talk.approve(paused.approval_id, [])
    assert refused.value.code == "LOUSHO_AGENT_DRIFT"
    talk.mcp = {"time": servers.time("UTC", tool=gated)}
    approved = talk.approve(paused.approval_id, ["done"])
    assert approved is not None
    assert approved.finish_reason == "stop"


def test_an_abort_cancels_the_request_and_ends_the_server(servers: Servers, tmp_path: Path) -> None:
    log = tmp_path / "sent"
    cancel = Cancel()

    def stop_when_called(event: Event) -> None:
        if event.type == "tool.start":
            threading.Thread(target=stop).start()

    def stop() -> None:
        while "tools/call" not in log.read_text():
            time.sleep(0.01)
        cancel.cancel("enough")

    talk = Talk({"all": servers.everything(log=log)})
    slow = call("all_trigger-long-running-operation", duration=600, steps=2)
    result = talk.send([slow], cancel=cancel, on_event=stop_when_called)
    assert result.finish_reason == "aborted"
    assert json.loads(str(result.messages[-1].content))["kind"] == "cancelled"
    assert "notifications/cancelled" in log.read_text()
    servers.wait_for_the_end()


def test_a_call_that_takes_too_long_is_a_timeout_and_the_server_is_used_again(
    servers: Servers, tmp_path: Path
) -> None:
    log = tmp_path / "sent"
    quick = {"trigger-long-running-operation": {"timeout": 0.2}}
    talk = Talk({"all": servers.everything(log=log, tool=quick)})
    slow = call("all_trigger-long-running-operation", duration=600, steps=2)
    talk.send([slow, call("all_echo", message="still there"), "done"])
    timeout, echo = results(talk)
    assert timeout["kind"] == "timeout"
    assert echo == "Echo: still there"
    assert log.read_text().count('"initialize"') == 1


def test_a_server_that_dies_is_an_error_of_its_call_and_is_started_again_a_few_times(
    servers: Servers,
) -> None:
    def kill(event: Event) -> None:
        if event.type == "tool.start" and "die" in str(event.data["args"]):
            servers.kill()

    talk = Talk({"all": servers.everything()}, max_steps=20)
    talk.send([call("all_echo", message="die"), call("all_echo", message="hi")] * 4 + ["done"], on_event=kill)
    died, *again, refused = results(talk)[::2], *results(talk)[1::2]
    assert {each["kind"] for each in died} == {"tool-error"}
    assert all(each["error"].startswith("the MCP server all is gone: the call may have") for each in died)
    assert again == ["Echo: hi"] * 3
    assert refused["error"].endswith("has ended 4 times and is not started again: the call did not run")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"command": "no-such-command-here"}, "there is no such command"),
        (
            {"command": "/bin/sh", "args": ["-c", "echo broken pipe dream >&2; exit 3"]},
            "it ended before it had answered; the last line of its standard error: broken pipe dream",
        ),
        (
            {
                "command": "/bin/sh",
                "args": ["-c", "echo loading >&2; while read x; do :; done"],
                "start_timeout": 0.2,
            },
            "it did not list its tools within 0.2 s",
        ),
        ({"url": "http://127.0.0.1:1/mcp?key=hidden"}, "(url http://127.0.0.1:1/mcp)"),
        ({"command": "cat", "env": {"KEY": "${NOT_SET_ANYWHERE}"}}, "NOT_SET_ANYWHERE, which is not set"),
        ({"command": "cat", "cwd": "no/such/folder"}, "there is no folder"),
    ],
)
def test_a_server_that_cannot_start_is_told_before_the_message_is_taken_in(
    settings: dict[str, Any], problem: str
) -> None:
    talk = Talk({"all": settings})
    with pytest.raises(ConfigurationError) as failed:
        talk.send(["never"])
    assert failed.value.code == "LOUSHO_MCP_SERVER_FAILED"
    assert problem in failed.value.message
    assert "hidden" not in failed.value.message
    assert asyncio.run(talk.store.checkpoints.load("s1")) is None


def test_a_sub_agents_servers_start_when_it_is_asked(servers: Servers) -> None:
    helper = Talk({"time": servers.time()}).agent([call("time_get_current_time", timezone="UTC"), "noon"])
    alive: dict[str, int] = {}

    def look(event: Event) -> None:
        if event.type == "step.start":
            alive.setdefault("/".join(event.path), len(servers.pids()))

    delegate = call("delegate_bot", input="what time is it?")
    talk = Talk({}, subagents=[helper])
    result = talk.send([delegate, "it is noon"], on_event=look)
    assert result.text == "it is noon"
    assert results(talk) == ["noon"]
    assert alive == {"": 0, "bot": 1}
    assert servers.pids() == []


def test_an_eval_with_stubs_asks_a_server_for_its_list_only(servers: Servers, tmp_path: Path) -> None:
    log = tmp_path / "sent"
    talk = Talk({"all": servers.everything(log=log)})
    lead = talk.agent([call("all_echo", message="hi"), "done"])
    stubs = StubAnswers([Stub(tool="all_echo", args={"message": "hi"}, result="stubbed")])
    double = answered(lead.agent, stubs)
    asyncio.run(AgentExecutor.execute(agent=double, input="go", provider=talk.model))
    assert results(talk) == ["stubbed"]
    assert "tools/list" in log.read_text()
    assert "tools/call" not in log.read_text()
