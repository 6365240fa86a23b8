"""A model that is busy, slow or cut, from the outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_workspace import ScriptedWorkspace

AT_ONCE = "[retries]\nbase_seconds = 0\n"
BUSY = {"error": {"message": "busy", "status": 429}}


@pytest.fixture
def place(tmp_path: Path) -> ScriptedWorkspace:
    return ScriptedWorkspace(tmp_path)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_cut_stream_is_told_as_void_and_the_reply_is_printed_once(place: ScriptedWorkspace) -> None:
    cut = {"text": "one two", "chunks": 2, "cut": 1}
    place.make([{"text": "one two", "chunks": 2, "fails": [cut, BUSY]}], settings=AT_ONCE)
    events = lines(place.run("run", "s1", "go", "--events").stdout)
    retries = [event for event in events if event["type"] == "model.retry"]
    assert [(each["attempt"], each.get("discard")) for each in retries] == [(1, True), (2, None)]
    assert [event["text"] for event in events if event["type"] == "text.delta"] == ["one", "one", " two"]
    done = place.run("run", "s2", "go")
    assert done.stdout == "one two\n"
    assert done.stderr.count("warning: script:script.json failed") == 2
    assert "one" not in done.stderr


def test_a_model_that_stays_busy_fails_with_exit_1_and_the_session_goes_on(place: ScriptedWorkspace) -> None:
    place.make(
        [{"text": "done", "fails": [BUSY] * 3}], settings="[retries]\nattempts = 2\nbase_seconds = 0\n"
    )
    failed = place.run("run", "s1", "go", "--json")
    assert failed.returncode == 1
    error = json.loads(failed.stdout)["error"]
    assert (error["code"], error["message"]) == ("LOUSHO_PROVIDER_RATE_LIMITED", "busy (asked 2 times)")
    place.script(["done"])
    done = place.run("run", "s1", "go")
    assert (done.returncode, done.stdout) == (0, "done\n")
    shown = json.loads(place.run("show", "s1", "--json").stdout)
    assert [each["role"] for each in shown["messages"] if each["role"] != "system"] == ["user", "assistant"]


def test_a_fallback_named_in_the_agents_file_is_asked(place: ScriptedWorkspace) -> None:
    settings = 'fallback_models = ["script:spare.json"]\n' + AT_ONCE
    place.make([{"error": "gone"}], settings=settings)
    (place.agent / "spare.json").write_text('["from the spare one"]')
    done = place.run("run", "s1", "go")
    assert done.stdout == "from the spare one\n"
    assert "failed: gone; asking script:spare.json" in done.stderr


def test_a_wrong_setting_is_named_with_its_place(place: ScriptedWorkspace) -> None:
    place.make(["never"], settings="[model_settings]\ntemprature = 1\n")
    refused = place.run("run", "s1", "go")
    assert refused.returncode == 2
    assert "agent.toml, line 2" in refused.stderr
    assert "did you mean 'temperature'" in refused.stderr


def test_a_time_limit_in_the_agents_file_ends_a_request(place: ScriptedWorkspace) -> None:
    settings = "[model_settings]\ntimeout = 0.05\n[retries]\nattempts = 1\n"
    place.make([{"text": "late", "delay": 60}], settings=settings)
    failed = place.run("run", "s1", "go")
    assert failed.returncode == 1
    assert "did not answer within 0.05 s" in failed.stderr
