"""Reading the details of a wish: how many people, which day, what time.

Each reader takes a message in small letters, with single spaces and straight apostrophes, and returns the
first detail of its kind, or None. They look for visible patterns, not for meaning.
"""

from __future__ import annotations

import re

_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
NUMBERS = {word: number for number, word in enumerate(_NUMBER_WORDS.split())}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_N = rf"(\d{{1,3}}|{'|'.join(NUMBERS)})\b"
_PEOPLE = (
    r"(?:people|persons?|guests?|adults?|of us|pax|diners?|friends?|heads?|seats?|covers?|ppl|"
    r"colleagues|others|kids|children)\b"
)
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_UNIT = rf"(?:nights?|days?|hours?|weeks?|min(?:ute)?s?|months?|years?|euros?|dollars?|{_MONTH})\b"
_CLOCK = r"(?:[:.h]\s?\d\d|a\.?m\b|p\.?m\b|o'?clock|ish\b)"
_NOT_TIME = rf"(?!\s*(?:-?{_CLOCK}|-?{_UNIT}|[/%]|more time))"

_MORE = re.compile(
    rf"\b{_N} (?:more|extra|additional)\b(?! (?:time|table|booking))|\b(?:add|plus|another) {_N}"
)
_FEWER = re.compile(rf"\b{_N} (?:less|fewer)\b")
_WITH_ME = re.compile(
    rf"\b(?:me|myself|i)(?: and|,| \+| plus| with) (?:my )?{_N} (?:\w+ )?{_PEOPLE}"
    rf"|\b{_N} (?:\w+ )?{_PEOPLE} (?:and|plus|\+) (?:me|i|myself)\b"
)
_ADULTS_AND_CHILDREN = re.compile(rf"\b{_N} adults?,?(?: and| plus| \+)? {_N} (?:kids?|children|child)\b")
_PARTY = [
    re.compile(rf"\b(?:party|group|table|family|crowd) (?:of|for) (?:about |around |just )?{_N}{_NOT_TIME}"),
    re.compile(rf"\b{_N}[- ](?:\w+ )?{_PEOPLE}"),
    re.compile(rf"\bfor (?:(?:the|all|about|around|up to|just|only|maybe) )*{_N}{_NOT_TIME}"),
    re.compile(
        rf"\b(?:make (?:it|that|us)|(?:we|there)(?:'ll| will| would)? be|we(?:'re| are)|"
        rf"(?:change|update|set) (?:it|that|(?:the|my|our) \w+) (?:to|for)|be|now|say) "
        rf"(?:(?:a|party|of|for|just|only|about|actually|now) )*{_N}{_NOT_TIME}"
    ),
    re.compile(rf"(?<!at )(?<!by )(?<!until )\b{_N} (?:instead|rather)\b"),
    re.compile(rf"^(?:no,? |yes,? |ok,? |just |only )*{_N}(?:,? please| then)?[.!]*$"),
]
_ALONE = re.compile(r"\b(?:just|only) (?:for )?me\b|\b(?:by|for) myself\b|\bon my own\b|\balone\b|\bsolo\b")
_TWO = re.compile(
    r"\b(?:a couple|couple of (?:people|us)|both of us|me and (?:my|a)|my \w+ and (?:i|me)|twosome)\b"
)
_DOZEN = re.compile(r"\b(half )?a dozen\b")


def read_party(text: str) -> int | None:
    """How many people: "for 2", "a party of four", "we'll be 5", "just me"."""
    if found := _ADULTS_AND_CHILDREN.search(text):
        return sum(_number(group) for group in found.groups())
    if found := _WITH_ME.search(text):
        return _first(found) + 1
    if _MORE.search(text) or _FEWER.search(text):
        return None
    for pattern in _PARTY:
        if found := pattern.search(text):
            return _first(found)
    if _ALONE.search(text):
        return 1
    if _TWO.search(text):
        return 2
    if found := _DOZEN.search(text):
        return 6 if found[1] else 12
    return None


def read_party_change(text: str) -> int:
    """How many people more (or fewer, below 0): "one more", "two fewer". 0 when the text says neither."""
    if found := _MORE.search(text):
        return _first(found)
    if re.search(r"\banother (?:person|guest|friend)\b|\bplus one\b", text):
        return 1
    if found := _FEWER.search(text):
        return -_first(found)
    return 0


_DAYS: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"\b(?:the )?day after tomorrow\b"), "the day after tomorrow"),
    (re.compile(r"\b(?:tomorrow|tmrw|tmr)\b"), "tomorrow"),
    (re.compile(r"\b(?:tonight|tonite|this (?:evening|night))\b"), "tonight"),
    (re.compile(r"\b(?:today|this (?:morning|afternoon)|right now)\b"), "today"),
    (re.compile(rf"\b((?:next )?(?:{'|'.join(WEEKDAYS)}))s?\b"), r"\1"),
    (re.compile(rf"\b(?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b"), r"\1 \2"),
    (re.compile(rf"\b({_MONTH}) (?:the )?(\d{{1,2}})(?:st|nd|rd|th)?\b"), r"\2 \1"),
    (re.compile(r"\b(\d{4}-\d\d-\d\d)\b"), r"\1"),
    (re.compile(r"\b(\d{1,2}/\d{1,2}(?:/\d{2,4})?)\b"), r"\1"),
    (re.compile(r"\b(the \d{1,2}(?:st|nd|rd|th))\b"), r"\1"),
    (re.compile(r"\b(in (?:\d{1,2}|a|two|three|four|five|six) (?:days?|weeks?))\b"), r"\1"),
    (re.compile(r"\b(next) (weekend|week)\b"), r"\1 \2"),
    (re.compile(r"\b(?:this|at the|on the) weekend\b"), "this weekend"),
]
_SHORT_DAY = re.compile(rf"\b(on|next|this) ({'|'.join(day[:3] for day in WEEKDAYS)})(?:s|rs|urs|nes)?\b")


def read_day(text: str) -> str | None:
    """The day in words, as it was said: "tonight", "next Friday", "12 March", "2031-05-04"."""
    hits = [(hit.start(), hit.expand(form)) for pattern, form in _DAYS if (hit := pattern.search(text))]
    if short := _SHORT_DAY.search(text):
        day = next(day for day in WEEKDAYS if day.startswith(short[2]))
        hits.append((short.start(), f"next {day}" if short[1] == "next" else day))
    # Of two at the same place the one listed first says more: "12 march", not "march 12".
    return _with_capitals(min(hits, key=lambda hit: hit[0])[1]) if hits else None


def _with_capitals(day: str) -> str:
    return re.sub(rf"{'|'.join(WEEKDAYS)}|{_MONTH}", lambda name: name[0].capitalize(), day)


_PAST_HOUR = re.compile(rf"\b(half past|quarter past|quarter to|half) {_N}")
_HOUR_MINUTE = re.compile(r"(\bat |\baround )?\b(\d{1,2})([:h.])(\d\d)\b\s*(a\.?m\b|p\.?m\b)?")
_HOUR_MERIDIEM = re.compile(rf"\b(\d{{1,2}}|{'|'.join(NUMBERS)})\s*(a\.?m\b|p\.?m\b)")
_OCLOCK = re.compile(rf"\b(\d{{1,2}}|{'|'.join(NUMBERS)})(?: o'?clock|\s?-?ish\b)")
_AT_HOUR = re.compile(
    rf"(?:\b(?:at|by|from|after|until|till)|(?<!for )(?<!it )(?<!be )\b(?:around|about)|"
    rf"\b(?:move|push|shift|bring|reschedule|postpone) (?:it|that|us|(?:the|my|our) \w+)"
    rf"(?: back| forward)? to) {_N}(?! (?:\w+ )?{_PEOPLE})(?!\s*-?{_UNIT})(?![:/.]\d)"
)
_NAMED_TIMES = (
    ("breakfast", "09:00"), ("brunch", "11:00"), ("lunch", "12:30"), ("noon", "12:00"), ("midday", "12:00"),
    ("dinner", "19:30"), ("supper", "19:30"), ("midnight", "00:00"),
    ("morning", "10:00"), ("afternoon", "15:00"),
)  # fmt: skip


def read_time(text: str) -> str | None:
    """The time as HH:MM. An hour without am or pm is one at which people go out: "at 7" is 19:00."""
    if found := _PAST_HOUR.search(text):
        minutes = {"half past": 30, "half": 30, "quarter past": 15, "quarter to": -15}[found[1]]
        hour = _hour(_number(found[2]), None, text)
        return None if hour is None else _clock(hour * 60 + minutes)
    for found in _HOUR_MINUTE.finditer(text):
        said_as_time = found[3] != "." or found[1] or found[5]
        hour = _hour(int(found[2]), found[5], text, exact=found[2].startswith("0"))
        if said_as_time and hour is not None and int(found[4]) < 60:
            return _clock(hour * 60 + int(found[4]))
    for pattern in (_HOUR_MERIDIEM, _OCLOCK, _AT_HOUR):
        if found := pattern.search(text):
            hour = _hour(_number(found[1]), found[2] if pattern is _HOUR_MERIDIEM else None, text)
            if hour is not None:
                return _clock(hour * 60)
    for name, time in _NAMED_TIMES:
        if re.search(rf"\b{name}\b", text):
            return time
    return None


def _hour(hour: int, meridiem: str | None, text: str, exact: bool = False) -> int | None:
    if hour > 23 or (meridiem and not 1 <= hour <= 12):
        return None
    if meridiem:
        return hour % 12 + (12 if meridiem.startswith("p") else 0)
    if exact or re.search(r"\b(?:breakfast|brunch|morning)\b", text):
        return hour
    late = hour == 11 and re.search(r"\b(?:tonight|night|evening|dinner)\b", text)
    return hour + 12 if 1 <= hour <= 10 or late else hour


def _clock(minutes: int) -> str:
    hours, minutes = divmod(minutes % (24 * 60), 60)
    return f"{hours:02}:{minutes:02}"


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else NUMBERS[word]


def _first(found: re.Match[str]) -> int:
    return _number(next(group for group in found.groups() if group))
