"""The example workspace: its files hold together, and its tools play the dialogues of the README."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from demo_play import Dialogue, real

from lousho_cli.agents.tool_files import import_tools
from lousho_cli.execution.messages import calls_of
from lousho_cli.execution.tools import Tool

EXAMPLE = Path(__file__).parents[2] / ".lousho.example"
CONCIERGE = EXAMPLE / "agents" / "concierge"


@pytest.fixture
def tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in import_tools(CONCIERGE / "tools")}


@pytest.fixture
def concierge(tools: dict[str, Tool]) -> Dialogue:
    return real(tools.values())


def last_result(talk: Dialogue, tool: str) -> Any:
    results = [message for message in talk.log if message.get("toolName") == tool]
    return json.loads(results[-1]["content"])


def test_the_tools_are_described_and_only_booking_needs_approval(tools: dict[str, Tool]) -> None:
    assert sorted(tools) == ["book_table", "find_tables", "get_weather", "plan_indoors", "plan_outdoors"]
    assert [name for name, tool in tools.items() if tool.needs_approval] == ["book_table"]
    for tool in tools.values():
        assert tool.description
        assert all(field.get("description") for field in tool.parameters["properties"].values()), tool.name
    assert tools["book_table"].parameters["properties"]["party_size"]["type"] == "integer"
    assert tools["book_table"].context_parameter not in tools["book_table"].parameters["properties"]


def test_the_configuration_names_the_agent_and_the_demo_model() -> None:
    assert tomllib.loads((EXAMPLE / "config.toml").read_text("utf-8")) == {"default_agent": CONCIERGE.name}
    assert tomllib.loads((CONCIERGE / "agent.toml").read_text("utf-8"))["model"] == "demo"


def test_the_examples_that_are_commented_out_are_valid_settings() -> None:
    text = (EXAMPLE / "config.toml").read_text("utf-8")
    uncommented = "\n".join(line.removeprefix("# ") if " = " in line else "" for line in text.splitlines())
    settings = tomllib.loads(uncommented)
    assert settings == {
        "default_agent": "concierge",
        "model": "demo",
        "history_limit": 50,
        "on_agent_drift": "warn",
        "tool_concurrency": 8,
        "store": "file",
    }


def test_booking_and_changing_a_table(concierge: Dialogue) -> None:
    said = concierge.say("Book a table for 2 tonight")
    assert concierge.called == ["find_tables", "book_table"]
    booked = last_result(concierge, "book_table")
    assert (booked["party_size"], booked["day"], booked["time"]) == (2, "tonight", "19:30")
    assert booked["confirmation"] in said
    assert booked["restaurant"] in said
    concierge.say("Make it 3 people")
    assert concierge.called == ["book_table"]
    assert last_result(concierge, "book_table") == booked | {
        "party_size": 3,
        "confirmation": last_result(concierge, "book_table")["confirmation"],
    }


def test_a_party_too_large_is_told_and_another_size_works(concierge: Dialogue) -> None:
    concierge.say("Book a table for 2 tonight")
    assert "largest table" in concierge.say("make it 30")
    concierge.say("make it 4")
    assert last_result(concierge, "book_table")["party_size"] == 4


def test_a_restaurant_that_does_not_exist_is_told_with_those_that_do(concierge: Dialogue) -> None:
    assert "Casa Verde" in concierge.say("get me a table at Luigi's for two")
    concierge.say("then at Casa Verde")
    assert last_result(concierge, "book_table")["restaurant"] == "Casa Verde"


def test_a_trip_in_the_sun_and_one_in_the_rain(concierge: Dialogue) -> None:
    said = concierge.say("Plan my trip")
    assert concierge.called == ["get_weather", "plan_outdoors"]
    first = next(message for message in concierge.log if message["role"] == "assistant")
    assert [call["function"]["name"] for call in calls_of(first)] == ["get_weather"]
    assert "sunny" in said
    assert "picnic" in said
    assert "museum" in concierge.say("plan a trip to London")
    assert concierge.called == ["get_weather", "plan_indoors"]


def test_a_booking_made_again_by_the_same_call_has_the_same_code(concierge: Dialogue) -> None:
    concierge.say("Book a table")
    turns = [message for message in concierge.log if message["role"] == "assistant"]
    call = calls_of(turns[1])[0]
    again, other = concierge.run(call), concierge.run({**call, "id": "another"})
    assert again == last_result(concierge, "book_table")
    assert other["confirmation"] != again["confirmation"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"party_size": 0}, "one person or more"),
        ({"party_size": 2, "time": "soon"}, "write it as 19:30"),
        ({"party_size": 2, "time": "23:30"}, "takes guests from 12:00 to 22:00"),
    ],
)
def test_a_booking_that_cannot_be_made_says_why(concierge: Dialogue, args: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        concierge.run(
            {"id": "c", "type": "function", "function": {"name": "book_table", "arguments": json.dumps(args)}}
        )
