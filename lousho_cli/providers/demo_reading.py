"""What one message wishes for: its kind and its details."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .demo_details import read_day, read_party, read_party_change, read_time
from .demo_places import read_place
from .demo_rules import TABLE_TASKS, Kind, kind_of, starts_anew

READ_AT_MOST = 500
"""Characters of a message that are read: a pasted book is not a wish."""

_CAPITAL = r"[^\W\d_a-z][\w'&-]*"
_RESTAURANT = re.compile(rf"(?:\bat|@)\s+((?:the\s+)?{_CAPITAL}(?:\s+(?:and|&|of|{_CAPITAL}))*)")


@dataclass(frozen=True, slots=True)
class Wish:
    """One message, read.

    Attributes:
        text: the message, for names that only a tool's result makes known.
        party: people, or None.
        more: people more (or fewer, below 0) than before.
        day: in words, as `tonight`.
        time: HH:MM.
        place: a town for weather and trips.
        restaurant: a name after "at".
        fresh: a new booking, not the one talked about.
    """

    kind: Kind
    text: str = ""
    party: int | None = None
    more: int = 0
    day: str | None = None
    time: str | None = None
    place: str | None = None
    restaurant: str | None = None
    fresh: bool = False

    @property
    def has_table_details(self) -> bool:
        return bool(self.party is not None or self.more or self.day or self.time or self.restaurant)


def read_wish(text: str) -> Wish:
    """`text` as a wish. What no rule fits is `Kind.UNCLEAR`."""
    text = text[:READ_AT_MOST].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    plain = " ".join(text.lower().split())
    party, more, day, time = read_party(plain), read_party_change(plain), read_day(plain), read_time(plain)
    place, restaurant = read_place(text), _read_restaurant(text)
    has_details = party is not None or bool(more or day or time or restaurant)
    kind = kind_of(plain, has_details, place is not None)
    fresh = kind in TABLE_TASKS and kind is not Kind.CHANGE and starts_anew(plain)
    return Wish(kind, text, party, more, day, time, place, restaurant, fresh)


def _read_restaurant(text: str) -> str | None:
    found = _RESTAURANT.search(text)
    if not found or read_day(found[1].lower()) or read_time(found[1].lower()):
        return None
    return found[1].rstrip("'-")
