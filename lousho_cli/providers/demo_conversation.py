"""What the demo model remembers: the newest wish, what was done for it, and what was said before.

Only the last messages of the transcript are looked at, so a turn costs the same however long it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..execution.log import Log
from ..execution.messages import MessageData, calls_of, text_of
from .demo_outcomes import Outcome, as_mapping, from_json, options_in, pick, place_of, read_outcome, text_at
from .demo_reading import Wish, read_wish
from .demo_rules import TABLE_TASKS, TASKS, Kind, wants_another

LOOK_BACK = 40
"""Messages that are looked at."""

DEFAULT_PARTY = 2


@dataclass(frozen=True, slots=True)
class Booking:
    """What is known of a table. `code` is there once it is booked."""

    party: int | None = None
    day: str | None = None
    time: str | None = None
    restaurant: str | None = None
    code: str | None = None

    def wished(self, wish: Wish) -> Booking:
        """This booking with the details of `wish`, yet to be booked."""
        known = Booking() if wish.fresh else self
        party = (known.party or DEFAULT_PARTY) + wish.more if wish.more else wish.party
        day, time = wish.day or known.day, wish.time or known.time
        if time and time < "17:00" and day in (None, "tonight"):
            day = "today"
        return Booking(
            party=known.party if party is None else party,
            day=day,
            time=time,
            restaurant=wish.restaurant or known.restaurant,
        )

    def reported(self, values: Mapping[str, Any]) -> Booking:
        """This booking as the arguments or the result of a call give it."""
        party = values.get("party_size", values.get("people", values.get("guests")))
        return Booking(
            party=party if isinstance(party, int) else self.party,
            day=text_at(values, "day", "date") or self.day,
            time=text_at(values, "time") or self.time,
            restaurant=text_at(values, "restaurant") or self.restaurant,
            code=text_at(values, "confirmation", "confirmation_code", "code", "reference") or self.code,
        )


@dataclass(slots=True)
class Conversation:
    """The end of a transcript, understood.

    Attributes:
        wish: the newest user message.
        done: what was called for it, in order.
        booking: the table talked about, the newest wish included.
        standing: the table booked last, before the wish, or None.
        options: the restaurants last found free, in the order of the result.
        place: the town last talked about.
        task: the kind of the last wish that asked for something to be done.
        unfinished: it was not done, or it failed.
        unspoken: a result that came before the wish and was not told yet.
    """

    wish: Wish = field(default_factory=lambda: Wish(Kind.UNCLEAR))
    done: list[Outcome] = field(default_factory=list)
    booking: Booking = field(default_factory=Booking)
    standing: Booking | None = None
    options: list[str] = field(default_factory=list)
    place: str | None = None
    task: Kind | None = None
    unfinished: bool = False
    unspoken: Outcome | None = None
    _booked: Booking | None = None
    _answered: bool = True
    _calls: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)

    def outcome(self, tool: str) -> Outcome | None:
        """What came of the newest call of `tool` since the wish."""
        return next((outcome for outcome in reversed(self.done) if outcome.tool == tool), None)

    def hear(self, message: MessageData) -> None:
        """Take in the next message."""
        role, calls = message["role"], calls_of(message)
        if role == "user":
            self._hear_wish(read_wish(text_of(message["content"])))
        elif role == "tool":
            name, args = self._calls.get(message.get("toolCallId", ""), (message.get("toolName", ""), {}))
            self._hear_outcome(read_outcome(message, name, args))
        elif calls:
            for call in calls:
                function = call["function"]
                self._calls[call["id"]] = (function["name"], as_mapping(from_json(function["arguments"])))
        elif role == "assistant":
            self._answered = True
            self.unfinished = bool(self.done) and self.done[-1].error is not None

    def _hear_wish(self, wish: Wish) -> None:
        if self._answered:
            self.unspoken = None
        elif self.done:
            self.unspoken = self.done[-1]
        wish = self._in_context(wish)
        self.wish, self.done, self.standing, self._answered = wish, [], self._booked, False
        if wish.kind in TABLE_TASKS:
            self.booking = self.booking.wished(wish)
            self.options = [] if wish.fresh else self.options
        elif wish.kind in TASKS:
            self.place = wish.place or self.place
        if wish.kind in TASKS:
            self.task, self.unfinished = wish.kind, True

    def _in_context(self, wish: Wish) -> Wish:
        """`wish`, with the kind that its words alone do not tell."""
        can_pick = wish.kind in (Kind.BOOK, Kind.UNCLEAR, Kind.AGAIN, Kind.DETAILS)
        if can_pick and (picked := pick(wish.text, self.options)):
            return replace(wish, kind=Kind.BOOK, restaurant=picked, fresh=wants_another(wish.text))
        if wish.kind is Kind.DETAILS:
            wish = replace(wish, kind=self._kind_of_details(wish))
        elif wish.kind is Kind.AGAIN:
            wish = replace(wish, kind=self._kind_of_again())
        elif wish.kind is Kind.CHANGE and self.task not in TABLE_TASKS and wish.has_table_details:
            wish = replace(wish, kind=Kind.BOOK)
        books_what_was_found = wish.kind is Kind.BOOK and not wish.fresh and self.booking.restaurant is None
        if books_what_was_found and wish.restaurant is None and self.options:
            wish = replace(wish, restaurant=self.options[0])
        return wish

    def _kind_of_details(self, wish: Wish) -> Kind:
        only_a_day = wish.day is not None and wish.party is None and wish.time is None
        if self.task in (Kind.WEATHER, Kind.TRIP) and (wish.place or only_a_day):
            return self.task
        if self.task in TABLE_TASKS and wish.has_table_details:
            return Kind.FIND if self.task is Kind.FIND else Kind.CHANGE
        return Kind.BOOK if wish.party is not None or wish.time is not None else Kind.UNCLEAR

    def _kind_of_again(self) -> Kind:
        if self.unfinished and self.task in (Kind.FIND, Kind.WEATHER, Kind.TRIP):
            return self.task
        return Kind.BOOK if self.unfinished or self.task is Kind.FIND else Kind.STATUS

    def _hear_outcome(self, outcome: Outcome) -> None:
        self.done.append(outcome)
        if outcome.tool == "book_table":
            self.booking = self.booking.reported(outcome.args)
            if outcome.error is None and not outcome.refused:
                self.booking = self._booked = self.booking.reported(as_mapping(outcome.result))
        elif outcome.tool == "find_tables" and outcome.error is None:
            self.options = options_in(outcome.result) or []
        elif outcome.tool == "get_weather":
            self.place = place_of(outcome) or self.place


def read_conversation(log: Log) -> Conversation:
    """The conversation at the end of `log`, from its last LOOK_BACK messages."""
    conversation = Conversation()
    for message in log.slice(max(0, len(log) - LOOK_BACK)):
        conversation.hear(message)
    return conversation
