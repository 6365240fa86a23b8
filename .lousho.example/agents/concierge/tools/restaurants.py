"""Tables at a handful of made-up restaurants."""

import hashlib
from typing import Any, NamedTuple

from lousho_cli import ToolContext, tool


class Restaurant(NamedTuple):
    name: str
    cuisine: str
    price: str
    largest_table: int
    opens: str
    last_table: str


RESTAURANTS = [
    Restaurant("Osteria Luna", "Italian", "€€", 8, "12:00", "22:00"),
    Restaurant("The Copper Pot", "British", "€€", 6, "12:00", "21:30"),
    Restaurant("Sakura Table", "Japanese", "€€€", 4, "18:00", "21:00"),
    Restaurant("Casa Verde", "vegetarian", "€", 12, "09:00", "22:30"),
]


@tool
def find_tables(party_size: int, day: str = "tonight", time: str = "19:30") -> dict[str, Any]:
    """Find restaurants that have a table free.

    Args:
        party_size: How many people will come.
        day: The day in words, such as "tonight" or "friday".
        time: The time of day, as HH:MM.
    """
    free = [place for place in RESTAURANTS if why_not(place, party_size, time) is None]
    return {
        "party_size": party_size,
        "day": day,
        "time": time,
        "tables": [
            {"restaurant": place.name, "cuisine": place.cuisine, "price": place.price} for place in free
        ],
    }


# A person approves each booking before it is made: lousho approve ID.
@tool(needs_approval=True)
def book_table(
    ctx: ToolContext,
    party_size: int,
    day: str = "tonight",
    time: str = "19:30",
    restaurant: str = "Osteria Luna",
) -> dict[str, Any]:
    """Book a table at a restaurant.

    Args:
        party_size: How many people will come.
        day: The day in words, such as "tonight" or "friday".
        time: The time of day, as HH:MM.
        restaurant: The restaurant's name, as find_tables gives it.
    """
    place = next((place for place in RESTAURANTS if place.name.lower() == restaurant.lower()), None)
    if place is None:
        names = ", ".join(place.name for place in RESTAURANTS)
        raise ValueError(f"there is no restaurant {restaurant!r}; there are {names}")
    if problem := why_not(place, party_size, time):
        raise ValueError(problem)
    # A call that is made again after a crash has the same id, so it gives the same code: one table, not two.
    request = f"{ctx.tool_call_id}|{place.name}|{party_size}|{day}|{time}"
    code = hashlib.sha256(request.encode()).hexdigest()[:6].upper()
    return {
        "confirmation": f"TBL-{code}",
        "restaurant": place.name,
        "party_size": party_size,
        "day": day,
        "time": time,
    }


def why_not(place: Restaurant, party_size: int, time: str) -> str | None:
    """Why a restaurant has no such table, or None if it has one."""
    hours, _, minutes = time.partition(":")
    if not (hours.isdecimal() and minutes.isdecimal() and int(hours) < 24 and int(minutes) < 60):
        raise ValueError(f"{time!r} is no time of day; write it as 19:30")
    if party_size < 1:
        raise ValueError("a table is for one person or more")
    if party_size > place.largest_table:
        return f"the largest table at {place.name} is for {place.largest_table}"
    if not place.opens <= f"{int(hours):02}:{int(minutes):02}" <= place.last_table:
        return f"{place.name} takes guests from {place.opens} to {place.last_table}"
    return None
