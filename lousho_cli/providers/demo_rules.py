"""The kinds of wishes the demo model knows, and the words that tell them apart."""

from __future__ import annotations

import re
from enum import Enum


class Kind(Enum):
    """What somebody wants."""

    BOOK = "book a table"
    FIND = "see which tables are free"
    CHANGE = "change the booking talked about"
    DETAILS = "only details, to be understood from what came before"
    WEATHER = "know the weather"
    TRIP = "plan a trip"
    AGAIN = "go on, or try again"
    STATUS = "know what has been booked"
    CANCEL = "cancel a booking"
    DECLINE = "leave it"
    GREETING = "say hello"
    THANKS = "say thanks, or all right"
    HELP = "know what can be done"
    UNCLEAR = "not understood"


TABLE_TASKS = frozenset({Kind.BOOK, Kind.FIND, Kind.CHANGE})
TASKS = TABLE_TASKS | {Kind.WEATHER, Kind.TRIP}

_TABLE = r"(?:tables?|spot|seats?|place for|dinner|lunch|brunch|breakfast|supper|meal)"
_MEAL_OUT = r"\b(?:dinner|lunch|brunch|tables?)\b"

# The first kind whose words fit, and whose condition holds, is it.
_WORDS: dict[Kind, tuple[str, ...]] = {
    Kind.DECLINE: (
        r"\b(?:don't|do not|not|no need to) (?:book|reserve|bother)\b",
        r"^no,? thank",
        r"^(?:no|nope|nah|never ?mind|forget (?:it|that|about it)|leave it)[.! ]*$",
    ),
    Kind.CANCEL: (
        r"\b(?:cancel|call (?:it|that) off|undo|never ?mind)\b",
        r"(?<!not )(?<!don't )\bforget (?:it|that|the)\b",
        r"\b(?:delete|remove|drop) (?:it|that|(?:the|my|our) (?:booking|reservation|table))\b",
    ),
    Kind.STATUS: (
        r"^(?:are you|is (?:it|that|everything|the \w+|my \w+)|did (?:you|it)|have you|was (?:it|that))\b.*"
        r"\b(?:done|booked|book|reserved?|confirmed|finished|ready|through|work(?:ed)?)\b",
        r"\bconfirmation\b|\bstatus\b|\bwhat (?:did you|have you|is|'s) book",
        r"\bwhen (?:is|was) (?:my|our|the) (?:booking|table|reservation|dinner|lunch)\b",
    ),
    Kind.CHANGE: (
        r"\b(?:make (?:it|that)|change|move|push|shift|switch|update|reschedule|postpone|instead|rather)\b",
    ),
    Kind.FIND: (
        r"\b(?:find|show|list|search|look for|which|what|any|is there|are there|options?)\b.*"
        r"\b(?:tables?|restaurants?|places? to eat|free|available|availability)\b",
    ),
    Kind.TRIP: (
        r"\b(?:trip|itinerary|day out|excursion|vacation|holidays?|getaway|sightseeing|travel(?:l?ing)?)\b",
        rf"\bplan (?:me |us )?(?:my|our|a|the|an|this|something)\b(?!.*{_MEAL_OUT})",
        r"\bwhat (?:should|can|could|shall) (?:i|we) (?:do|see|visit)\b|\b(?:visit|explore)\b",
    ),
    Kind.WEATHER: (
        r"\b(?:weather|forecast|rain(?:y|ing)?|sunny|sunshine|snow(?:y|ing)?|temperature|umbrella)\b",
        r"\b(?:stormy?|degrees|how (?:hot|cold|warm))\b",
    ),
    Kind.BOOK: (
        r"\b(?:book|reserve|reservation|booking|tables?|dinner|lunch|brunch|restaurants?)\b",
        r"\b(?:eat out|to eat|dine|dining|food|hungry|spot for|(?:get|fit|squeeze) (?:us|me) in)\b",
    ),
    Kind.HELP: (
        r"\bhelp\b|\bwhat (?:can|do) you\b|\bwho are you\b|^[?]+$",
        r"\bhow do(?:es)? (?:this|you|it) work\b",
    ),
    Kind.AGAIN: (
        r"^(?:(?:ok|okay|fine|perfect|great|and)[,.! ]+)*(?:yes|yeah|yep|sure|please do|go (?:ahead|on))\b",
        r"^(?:(?:ok|okay|fine|perfect|great|and)[,.! ]+)*(?:do (?:it|that|so)|try|retry|again|continue)\b",
        r"\b(?:once more|one more time|(?:try|do) (?:it |that )?again)\b",
    ),
    Kind.THANKS: (
        r"\b(?:thanks|thank you|thx|cheers|great|wonderful|lovely|appreciated)\b",
        r"^(?:ok|okay|fine|perfect|sounds good|all right|alright)\b",
    ),
    Kind.GREETING: (r"^(?:hi|hello|hey|good (?:morning|afternoon|evening|day)|greetings|bye|goodbye)\b",),
}
_RULES = {kind: re.compile("|".join(words)) for kind, words in _WORDS.items()}

_NEW_TABLE = re.compile(
    r"\b(?:book|reserve|get|need|want|like|have|make)\b.*\b(?:an?|another|new)\b.*"
    rf"\b(?:{_TABLE}|booking|reservation)\b"
)
_OTHER_BOOKING = re.compile(
    r"\b(?:book|reserve|booking|reservation)\b.*\b(?:flights?|hotels?|taxis?|cabs?|rooms?|trains?|tickets?"
    r"|cars?|bus(?:es)?|appointments?|courts?|haircut)\b"
)
_STRONG_CHANGE = re.compile(
    r"\b(?:make (?:it|that)|change|move|push|shift|switch|reschedule|postpone|instead)\b"
)
_REFERS_BACK = re.compile(r"\b(?:it|that|that one|this one|the same|the \w+ one|one of (?:them|those))\b")


def kind_of(plain: str, has_details: bool, has_place: bool) -> Kind:
    """The kind of a message in small letters, given whether it holds details of a table or names a place."""
    for kind, pattern in _RULES.items():
        if pattern.search(plain) and _holds(kind, plain, has_details, has_place):
            return kind
    about_details = (has_details or has_place) and not _OTHER_BOOKING.search(plain)
    return Kind.DETAILS if about_details else Kind.UNCLEAR


def starts_anew(plain: str) -> bool:
    """Whether a wish for a table is for a new one, not for the one talked about."""
    return bool(_NEW_TABLE.search(plain)) or not _REFERS_BACK.search(plain)


def wants_another(text: str) -> bool:
    """Whether a wish for a table says that it is for one more."""
    return bool(re.search(r"\b(?:another|new)\b", text, re.IGNORECASE))


def _holds(kind: Kind, plain: str, has_details: bool, has_place: bool) -> bool:
    """Whether a kind whose words fit also fits the message as a whole."""
    if kind is Kind.CHANGE:
        other = re.search(r"\b(?:weather|forecast|trip)\b", plain)
        return not other and bool(_STRONG_CHANGE.search(plain) or not _NEW_TABLE.search(plain))
    if kind is Kind.TRIP:
        return not re.search(r"\b(?:table|reserve|restaurant|weather|forecast)\b", plain)
    if kind is Kind.BOOK:
        return not _OTHER_BOOKING.search(plain) or bool(re.search(rf"\b{_TABLE}\b", plain))
    if kind is Kind.THANKS:
        return not has_details
    if kind in (Kind.AGAIN, Kind.GREETING):
        return not has_details and not has_place
    return True
