"""Reading wishes: the same wish in many words, and words that look alike but are not."""

from __future__ import annotations

import time

import pytest

from lousho_cli.providers.demo_reading import read_wish
from lousho_cli.providers.demo_rules import Kind


@pytest.mark.parametrize(
    ("text", "party"),
    [
        ("Book a table for 2 tonight", 2),
        ("could you reserve us a spot for four tomorrow at 8pm?", 4),
        ("a party of four", 4),
        ("table for seven at 7", 7),
        ("Make it 3 people", 3),
        ("make it 3", 3),
        ("make it three, please", 3),
        ("we'll be 5 instead", 5),
        ("we\N{RIGHT SINGLE QUOTATION MARK}ll be 5", 5),
        ("we are now six", 6),
        ("there will be twelve of us", 12),
        ("just me", 1),
        ("a table by myself", 1),
        ("a couple", 2),
        ("dinner for a couple on Friday", 2),
        ("my wife and I want to eat out", 2),
        ("me and two friends want dinner", 3),
        ("two adults and two kids", 4),
        ("half a dozen of us", 6),
        ("6 guests on the 12th of March at 8 o'clock", 6),
        ("change the booking to 5", 5),
        ("3", 3),
        ("no, four please", 4),
        ("Book a table", None),
        ("for 7pm", None),
        ("for 7:30", None),
        ("for 2 nights", None),
        ("on 3 March at 8", None),
        ("could we come at 9 instead?", None),
        ("one more person", None),
    ],
)
def test_party_size(text: str, party: int | None) -> None:
    assert read_wish(text).party == party


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("one more person", 1),
        ("add two", 2),
        ("two fewer please", -2),
        ("another guest", 1),
        ("one more time", 0),
    ],
)
def test_a_change_of_the_party_size(text: str, more: int) -> None:
    assert read_wish(text).more == more


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("tonight at 8", "tonight"),
        ("this evening", "tonight"),
        ("for lunch today", "today"),
        ("tomorrow night", "tomorrow"),
        ("the day after tomorrow", "the day after tomorrow"),
        ("on friday", "Friday"),
        ("next Saturday at noon", "next Saturday"),
        ("on sat at 8", "Saturday"),
        ("the 12th of march", "12 March"),
        ("March 12th", "12 March"),
        ("on 2031-05-04 at 19:00", "2031-05-04"),
        ("this weekend", "this weekend"),
        ("in two weeks", "in two weeks"),
        ("may I have a table", None),
        ("we sat outside in the sun", None),
    ],
)
def test_day(text: str, day: str | None) -> None:
    assert read_wish(text).day == day


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("at 7", "19:00"),
        ("at seven", "19:00"),
        ("19:30", "19:30"),
        ("at 7:30", "19:30"),
        ("7pm", "19:00"),
        ("at 11 a.m.", "11:00"),
        ("12am", "00:00"),
        ("8 o'clock", "20:00"),
        ("8ish", "20:00"),
        ("half past seven", "19:30"),
        ("quarter to nine", "20:45"),
        ("at 20.15", "20:15"),
        ("tomorrow at noon", "12:00"),
        ("lunch tomorrow", "12:30"),
        ("dinner for 4", "19:30"),
        ("breakfast at 9", "09:00"),
        ("dinner at 11", "23:00"),
        ("move it to 8", "20:00"),
        ("about 8 tomorrow", "20:00"),
        ("table for 7", None),
        ("about 5 people", None),
        ("at 25", None),
        ("it costs 12.50", None),
        ("at 19:75", None),
    ],
)
def test_time_of_day(text: str, time: str | None) -> None:
    assert read_wish(text).time == time


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("what's the weather like in Lisbon?", "Lisbon"),
        ("weather in lisbon tomorrow", "Lisbon"),
        ("plan my trip to Porto", "Porto"),
        ("i want to plan a trip to porto", "Porto"),
        ("Is it sunny in São Paulo?", "São Paulo"),
        ("how about new york?", "New York"),
        ("and in London?", "London"),
        ("and paris?", "Paris"),
        ("Lisbon weather", "Lisbon"),
        ("forecast for bergen please", "Bergen"),
        ("a weekend in Rio de Janeiro", "Rio de Janeiro"),
        ("plan a day in the Algarve", "Algarve"),
        ("What's the weather tomorrow?", None),
        ("Plan my trip", None),
        ("I want to plan something", None),
        ("a table in the evening", None),
        ("Book a table for Friday", None),
    ],
)
def test_place(text: str, place: str | None) -> None:
    assert read_wish(text).place == place


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Book a table", Kind.BOOK),
        ("could you reserve us a spot for four?", Kind.BOOK),
        ("get us in tonight", Kind.BOOK),
        ("we'd like to eat out on Friday", Kind.BOOK),
        ("plan a dinner for 4", Kind.BOOK),
        ("any tables free tomorrow?", Kind.FIND),
        ("show me the restaurants", Kind.FIND),
        ("Make it 3 people", Kind.CHANGE),
        ("we'll be 5 instead", Kind.CHANGE),
        ("move it to 8", Kind.CHANGE),
        ("actually, tomorrow", Kind.DETAILS),
        ("just me", Kind.DETAILS),
        ("will it rain in London?", Kind.WEATHER),
        ("do I need an umbrella", Kind.WEATHER),
        ("also check the weather", Kind.WEATHER),
        ("Plan my trip", Kind.TRIP),
        ("what should we do in Madrid?", Kind.TRIP),
        ("plan a day in Kyoto", Kind.TRIP),
        ("cancel that", Kind.CANCEL),
        ("please delete my booking", Kind.CANCEL),
        ("don't book it", Kind.DECLINE),
        ("no thanks", Kind.DECLINE),
        ("Are you done?", Kind.STATUS),
        ("what is my confirmation code?", Kind.STATUS),
        ("yes please", Kind.AGAIN),
        ("ok, go ahead", Kind.AGAIN),
        ("try again", Kind.AGAIN),
        ("great, thanks", Kind.THANKS),
        ("perfect", Kind.THANKS),
        ("Hello", Kind.GREETING),
        ("what can you do?", Kind.HELP),
        ("tell me a joke", Kind.UNCLEAR),
        ("book a flight for 2 at 8", Kind.UNCLEAR),
        ("book a flight", Kind.UNCLEAR),
        ("", Kind.UNCLEAR),
    ],
)
def test_kind_of_wish(text: str, kind: Kind) -> None:
    assert read_wish(text).kind is kind


def test_a_message_of_any_length_is_read_quickly() -> None:
    start = time.process_time()
    for piece in ("book a ", "for 2 ", "and ", "A ", "9:", "\N{RIGHT SINGLE QUOTATION MARK}"):
        read_wish(piece * 200_000)
    assert time.process_time() - start < 2
