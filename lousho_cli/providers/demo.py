"""The model `demo`: offline, deterministic, and good enough to play the example agent.

It reads what was said by simple rules, looks at the tools it is offered and at what came of its calls, and
decides on the next call or on an answer. Each tool is called at most once for a wish, so every run ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..execution.conversation import ToolCall, ToolFunction
from ..execution.messages import calls_of, text_of
from ..execution.protocols import ModelRequest, ToolSchema
from ..execution.records import ModelResponse, Usage
from . import demo_replies as say
from .demo_conversation import DEFAULT_PARTY, LOOK_BACK, Booking, Conversation, read_conversation
from .demo_outcomes import PLACE_KEYS, Outcome, as_mapping, is_dry, options_in, pick, place_of
from .demo_rules import Kind

DEFAULT_DAY = "tonight"
DEFAULT_TIME = "19:30"
DEFAULT_PLACE = "Lisbon"

_SPELLINGS = {
    "party_size": ("party_size", "people", "guests"),
    "day": ("day", "date"),
    "time": ("time",),
    "restaurant": ("restaurant",),
    "place": PLACE_KEYS,
}


@dataclass(frozen=True, slots=True)
class Call:
    """A decision to call a tool."""

    tool: str
    args: Mapping[str, Any]


class DemoModel:
    """A provider without a network. The same transcript and tools always give the same turn.

    It can book and find tables, tell the weather, and plan a trip by the forecast, with tools named
    `book_table`, `find_tables`, `get_weather`, `plan_outdoors` and `plan_indoors`. What it cannot do, or does
    not understand, it says. Usage is an estimate: four characters are a token.
    """

    model = "demo"

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """The next call, or the answer."""
        log = request.messages.log
        tools = {tool.name: tool for tool in request.tools}
        decision = decide(read_conversation(log), tools)
        if isinstance(decision, str):
            return ModelResponse(content=decision, usage=_usage(request, decision), finish_reason="stop")
        arguments = json.dumps(decision.args, ensure_ascii=False)
        call = ToolCall(
            # The place in the transcript: unique in a session, and the same in another process.
            id=f"call_{len(log)}",
            function=ToolFunction(name=decision.tool, arguments=arguments),
        )
        usage = _usage(request, decision.tool + arguments)
        return ModelResponse(tool_calls=[call], usage=usage, finish_reason="tool_calls")


def decide(talk: Conversation, tools: Mapping[str, ToolSchema]) -> Call | str:
    """The next call for the newest wish, or what to answer."""
    kind = talk.wish.kind
    if kind in (Kind.BOOK, Kind.CHANGE):
        decision = _book(talk, tools)
    elif kind is Kind.FIND:
        decision = _find(talk, tools)
    elif kind is Kind.WEATHER:
        decision = _weather(talk, tools)
    elif kind is Kind.TRIP:
        decision = _trip(talk, tools)
    else:
        decision = _answer(talk, tools)
    if isinstance(decision, str) and talk.unspoken is not None and talk.unspoken.tool == "book_table":
        return f"{_told_booking(talk.unspoken, None)} {decision}"
    return decision


def _answer(talk: Conversation, tools: Mapping[str, ToolSchema]) -> str:
    match talk.wish.kind:
        case Kind.STATUS:
            return say.already_booked(talk.standing)
        case Kind.CANCEL:
            return say.cannot_cancel(talk.standing)
        case Kind.DECLINE:
            return "All right, I leave it at that."
        case Kind.THANKS:
            return "Gladly. Tell me if there is anything else."
        case Kind.GREETING | Kind.HELP:
            return say.greeting(tools)
        case _:
            return say.unclear(tools)


def _book(talk: Conversation, tools: Mapping[str, ToolSchema]) -> Call | str:
    if talk.wish.kind is Kind.CHANGE and not talk.wish.has_table_details:
        return "Gladly. What shall I change: how many you are, the day, the time, or the restaurant?"
    if outcome := talk.outcome("book_table"):
        return _told_booking(outcome, None if talk.wish.fresh else talk.standing)
    if "book_table" not in tools:
        return _find(talk, tools) if "find_tables" in tools else say.no_tool("book a table", tools)
    restaurant = talk.booking.restaurant
    if restaurant is None and "find_tables" in tools:
        found = talk.outcome("find_tables")
        if found is None:
            return _call(tools["find_tables"], _table_values(talk))
        if found.error is not None:
            return say.failed(found, "look for a table")
        options = options_in(found.result)
        if options is not None and not options:
            return say.tables_found(found, options, can_book=True)
        restaurant = pick(talk.wish.text, options or []) or (options[0] if options else None)
    return _call(tools["book_table"], _table_values(talk) | {"restaurant": restaurant})


def _told_booking(outcome: Outcome, earlier: Booking | None) -> str:
    return say.booked(outcome, earlier) if outcome.error is None else say.failed(outcome, "book the table")


def _find(talk: Conversation, tools: Mapping[str, ToolSchema]) -> Call | str:
    if "find_tables" not in tools:
        return say.no_tool("look for tables", tools)
    found = talk.outcome("find_tables")
    if found is None:
        return _call(tools["find_tables"], _table_values(talk))
    if found.error is not None:
        return say.failed(found, "look for a table")
    options = options_in(found.result)
    if options is None:
        return f"This is what I found: {say.quoted(found.result)}."
    return say.tables_found(found, options, can_book="book_table" in tools)


def _weather(talk: Conversation, tools: Mapping[str, ToolSchema]) -> Call | str:
    if "get_weather" not in tools:
        return say.no_tool("look up the weather", tools)
    outcome = talk.outcome("get_weather")
    if outcome is None:
        return _call(tools["get_weather"], {"place": talk.place, "day": talk.wish.day})
    return say.weather(outcome) if outcome.error is None else say.failed(outcome, "look up the weather")


def _trip(talk: Conversation, tools: Mapping[str, ToolSchema]) -> Call | str:
    if not {"plan_outdoors", "plan_indoors"}.intersection(tools):
        return say.no_tool("plan a trip", tools)
    for name in ("plan_outdoors", "plan_indoors"):
        if plan := talk.outcome(name):
            if plan.error is not None:
                return say.failed(plan, "make a plan")
            return say.trip(talk.outcome("get_weather"), plan, outdoors=name == "plan_outdoors")
    forecast = talk.outcome("get_weather")
    if forecast is None and "get_weather" in tools:
        return _call(tools["get_weather"], {"place": talk.place, "day": talk.wish.day})
    if forecast is not None and forecast.error is not None:
        return say.failed(forecast, "look up the weather")
    name = "plan_outdoors" if forecast is not None and is_dry(forecast.result) else "plan_indoors"
    if name not in tools:
        return (
            f"{say.weather(forecast) + ' ' if forecast else ''}{say.no_tool(name.replace('_', ' '), tools)}"
        )
    return _call(
        tools[name], {"place": (forecast and place_of(forecast)) or talk.place, "day": talk.wish.day}
    )


def _table_values(talk: Conversation) -> dict[str, Any]:
    booking = talk.booking
    return {
        "party_size": DEFAULT_PARTY if booking.party is None else booking.party,
        "day": booking.day or DEFAULT_DAY,
        "time": booking.time or DEFAULT_TIME,
        "restaurant": booking.restaurant,
    }


def _call(tool: ToolSchema, values: Mapping[str, Any]) -> Call:
    """A call of `tool` with those of `values` that it takes and that are known."""
    args: dict[str, Any] = {}
    for name, schema in as_mapping(tool.parameters.get("properties")).items():
        key = next((key for key, spellings in _SPELLINGS.items() if name in spellings), None)
        value = values.get(key) if key else None
        if value is None and key == "place":
            value = as_mapping(schema).get("default") or DEFAULT_PLACE
        if value is not None:
            args[name] = value
    return Call(tool.name, args)


def _usage(request: ModelRequest, answer: str) -> Usage:
    read = len(request.messages.system or "") + sum(len(t.name) + len(t.description) for t in request.tools)
    log = request.messages.log
    for message in log.slice(max(0, len(log) - LOOK_BACK)):
        read += len(text_of(message["content"]))
        read += sum(len(call["function"]["arguments"]) for call in calls_of(message))
    spent_in, spent_out = max(1, read // 4), max(1, len(answer) // 4)
    return Usage(input_tokens=spent_in, output_tokens=spent_out, total_tokens=spent_in + spent_out)
