"""Finding the name of a place in what a person wrote: "in Lisbon", "a trip to new york", "Porto weather"."""

from __future__ import annotations

import re

from .demo_details import NUMBERS, WEEKDAYS

_WORD = re.compile(r"[^\W\d_][\w'.-]*|[^\s\w]|\d\S*")
_JOINERS = {"de", "da", "do", "del", "di", "la", "le", "los", "las", "of", "upon", "am", "sur"}
_BEFORE_A_PLACE = {"in", "near", "visit", "visiting", "explore", "exploring", "see"}
_BEFORE_A_NAME = _BEFORE_A_PLACE | {"to", "for", "at", "around", "about", "of", "and", "or", "over"}
_GOING_WORDS = (
    "trip travel travelling traveling go going fly flying drive driving head heading holiday vacation "
    "getaway excursion visit way"
)
_GOING = frozenset(_GOING_WORDS.split())
_ABOUT = {"weather", "forecast", "trip", "itinerary", "temperature", "holiday", "weekend"}
_WHAT_ABOUT = (["what", "about"], ["how", "about"])
_OTHER_WORDS = """
    a an the this that these those my our your his her their me us you it i we they now then here there home
    today tonight tomorrow tomorrow's today's morning afternoon evening night noon lunch dinner breakfast week
    weekend next last please and or but with on at by from for to in is are was be will would can could should
    what what's whats how how's any some good bad nice town advance general mind case time total all weather
    forecast rain snow sun trip plan day days hour hours minute minutes month year table tables show check get
    give tell let do does book reserve make find restaurant restaurants outside inside january february march
    april may june july august september october november december just only about around like instead again
    thanks hi hello hey ok okay yes no also actually something somewhere anywhere everyone everybody people
    one's of if when where who which take bring need want current perfect lovely great romantic half fact
    order short quick long family beach city there's
"""
_NO_PLACE = frozenset(_OTHER_WORDS.split()) | set(NUMBERS) | set(WEEKDAYS)


def read_place(text: str) -> str | None:
    """The first place named, in title case when it was written small, or None."""
    words = [word.rstrip(".'-") if len(word) > 1 else word for word in _WORD.findall(text)]
    low = [word.lower() for word in words]
    topic = bool(_ABOUT.intersection(low))
    for i, word in enumerate(low[:-1]):
        start = i + 2 if low[i + 1] == "the" else i + 1
        capital = start < len(words) and words[start][0].isupper()
        lead_in = word in _BEFORE_A_NAME if capital else _leads_to_a_small_name(low, i, topic)
        if lead_in and (place := _name_at(words, low, start, capital)):
            return place
    for i, word in enumerate(low):
        if word in _ABOUT and i and words[i - 1][0].isupper() and (place := _name_before(words, low, i)):
            return place
    return None


def _leads_to_a_small_name(low: list[str], i: int, topic: bool) -> bool:
    if low[i] in _BEFORE_A_PLACE:
        return low[i] != "see" or topic
    if low[i] == "to":
        return bool(_GOING.intersection(low[max(0, i - 3) : i]))
    if (i == 0 and low[i] in ("and", "or") and len(low) <= 4) or low[max(0, i - 1) : i + 1] in _WHAT_ABOUT:
        return True
    return topic and low[i] in ("for", "around") and low[i - 1] in _ABOUT


def _name_at(words: list[str], low: list[str], start: int, capital: bool) -> str | None:
    name: list[str] = []
    for word, small in zip(words[start : start + 4], low[start : start + 4], strict=True):
        joins = capital and bool(name) and small in _JOINERS
        fits = (
            word[0].isalpha()
            and (small not in _NO_PLACE or joins)
            and (not capital or word[0].isupper() or joins)
        )
        if not fits:
            break
        name.append(word)
        if not capital and len(name) == 2:
            break
    while name and name[-1].lower() in _JOINERS:
        name.pop()
    if not name:
        return None
    return " ".join(name if capital else [word.capitalize() for word in name])


def _name_before(words: list[str], low: list[str], end: int) -> str | None:
    start = end
    while start and words[start - 1][0].isupper() and low[start - 1] not in _NO_PLACE:
        start -= 1
    return " ".join(words[start:end]).removesuffix("'s") or None
