"""What the demo model says. Everything it states comes from results, or is its own limits."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from .demo_conversation import Booking
from .demo_outcomes import Outcome, as_mapping, place_of

LONGEST_QUOTE = 1500
"""Characters of a result that are repeated."""

_ABILITIES = (
    ({"book_table"}, "book a table (“Book a table for 2 tonight”)"),
    ({"find_tables"}, "see which tables are free (“Any tables for 4 tomorrow at 8?”)"),
    ({"get_weather"}, "tell you the weather (“What's the weather like in Lisbon?”)"),
    ({"plan_outdoors", "plan_indoors"}, "plan a trip to suit the weather (“Plan my trip”)"),
)


def abilities(tools: Collection[str]) -> str:
    """What the demo model can do with `tools`, and what it cannot."""
    able = [text for needed, text in _ABILITIES if needed.intersection(tools)]
    if not able:
        can = "I have no tools here that I know how to use, so talking is all I can do."
    else:
        can = f"I can {_listed(able, 'or')}."
    strange = [name for name in tools if not any(name in needed for needed, _ in _ABILITIES)]
    if strange:
        can += f" For {_listed(strange, 'and')} this agent needs a real model: set `model` in agent.toml."
    return can


def no_tool(wish: str, tools: Collection[str]) -> str:
    return f"I have no tool here to {wish}. {abilities(tools)}"


def greeting(tools: Collection[str]) -> str:
    return f"Hello! I am the demo model: I work offline and by simple rules. {abilities(tools)}"


def unclear(tools: Collection[str]) -> str:
    return f"Sorry, I did not understand that; I am a small demo model with simple rules. {abilities(tools)}"


def failed(outcome: Outcome, doing: str) -> str:
    """A call that did not work: what, why, and what can be done."""
    note = f" The note says: “{quoted(outcome.note)}”." if outcome.note else ""
    if outcome.error_kind == "rejected":
        return f"I did not {doing}: it was not approved.{note} Tell me what to change, and I will ask again."
    if outcome.error_kind == "interrupted":
        return (
            f"I was interrupted while trying to {doing}, and it may or may not have happened.{note} "
            "Please check before you ask me again."
        )
    reason = quoted(outcome.error or "").rstrip(".")
    if outcome.error_kind == "cancelled":
        return f"I was stopped while trying to {doing}: {reason}.{note} Say “try again” to go on."
    return f"I could not {doing}: {reason}.{note} Say “try again”, or tell me what to change."


def booked(outcome: Outcome, earlier: Booking | None) -> str:
    """The confirmation of a booking, from its result alone: what ran may not be what was asked."""
    if outcome.refused:
        return f"I could not book the table: {quoted(outcome.result)}. Tell me what to change."
    table = Booking().reported(as_mapping(outcome.result))
    told = _table(table)
    text = (
        f"Lovely, your table is booked: {told}."
        if told
        else f"Your table is booked: {quoted(outcome.result)}."
    )
    if table.code:
        text += f" Your confirmation code is {table.code}."
    if earlier is not None and (earlier.code is None or earlier.code != table.code):
        known = f" ({earlier.code})" if earlier.code else ""
        text += f" Your earlier table{known} still stands, as I cannot cancel it: the restaurant can."
    return text + " Enjoy!"


def already_booked(table: Booking | None) -> str:
    if table is None:
        return "Nothing has been booked in this conversation, as far as I can look back."
    code = f" The confirmation code is {table.code}." if table.code else ""
    return f"It is all set: {_table(table) or 'your table is booked'}.{code}"


def cannot_cancel(table: Booking | None) -> str:
    if table is None:
        return "There is nothing booked that I know of, and I have no tool to cancel anything."
    where = table.restaurant or "the restaurant"
    code = f" with the code {table.code}" if table.code else ""
    return f"I have no tool to cancel a booking. Your table still stands: please call {where}{code}."


def tables_found(outcome: Outcome, options: list[str], can_book: bool) -> str:
    if not options:
        return "There is no table free for that. Would another time, or a smaller party, do?"
    details = dict.fromkeys(options, "")
    for item in next((v for v in as_mapping(outcome.result).values() if isinstance(v, list)), []):
        row = as_mapping(item)
        name = row.get("restaurant", row.get("name"))
        if name in details:
            facts = [str(row[key]) for key in ("cuisine", "price") if key in row]
            details[str(name)] = f" ({', '.join(facts)})" if facts else ""
    listed = _listed([name + more for name, more in details.items()], "and")
    book = " Say which one, or “book it” for the first." if can_book else " I have no tool here to book one."
    return f"Free: {listed}.{book}"


def weather(outcome: Outcome) -> str:
    result = as_mapping(outcome.result)
    forecast = result.get("forecast")
    if not isinstance(forecast, str):
        return f"The weather service says: {quoted(outcome.result)}."
    place = place_of(outcome)
    degrees = f", with up to {result['high_c']} °C" if "high_c" in result else ""
    return f"The forecast{f' for {place}' if place else ''} is {forecast}{degrees}."


def trip(forecast: Outcome | None, plan: Outcome, outdoors: bool) -> str:
    where = place_of(plan) or (place_of(forecast) if forecast else None)
    opening = f"{weather(forecast)} " if forecast else ""
    kind = "a day outdoors" if outdoors else "a day indoors"
    result = as_mapping(plan.result)
    steps = result.get("plan", plan.result)
    extra = f" Bring {result['bring']}." if isinstance(result.get("bring"), str) else ""
    day = f"{kind} in {where}" if where else kind
    return f"{opening}So here is {day}: {quoted(steps).rstrip('.')}.{extra} Have a good trip!"


def quoted(value: Any) -> str:
    """A result in a sentence: texts as they are, lists and mappings item by item."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        text = "; ".join(value)
    elif isinstance(value, Mapping):
        text = ", ".join(f"{key}: {quoted(item)}" for key, item in value.items())
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}..."


def _table(table: Booking) -> str:
    parts = [
        table.restaurant or "",
        table.day or "",
        f"at {table.time}" if table.time else "",
        f"for {table.party}" if table.party is not None else "",
    ]
    return ", ".join(part for part in parts if part).replace(", at ", " at ").replace(", for ", " for ")


def _listed(items: list[str], word: str) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}"
