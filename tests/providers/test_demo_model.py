"""The demo model: what it calls and what it says, for any tools and any results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from demo_play import Dialogue, Failed, ask, assistant, fixed, result, schema, user

from lousho_cli.execution.log import Log
from lousho_cli.execution.messages import MessageData, calls_of
from lousho_cli.providers.demo import DemoModel
from lousho_cli.providers.demo_outcomes import is_dry

FIND = schema("find_tables", party_size="integer", day="string", time="string")
BOOK = schema("book_table", party_size="integer", day="string", time="string", restaurant="string")
WEATHER = schema("get_weather", place="string")
OUTDOORS = schema("plan_outdoors", place="string")
INDOORS = schema("plan_indoors", place="string")
ALL = (FIND, BOOK, WEATHER, OUTDOORS, INDOORS)

RESULTS: dict[str, Any] = {
    "find_tables": {"tables": [{"restaurant": "Blue Door"}, {"restaurant": "Old Mill"}]},
    "book_table": {
        "confirmation": "C-1",
        "restaurant": "Blue Door",
        "party_size": 2,
        "day": "tonight",
        "time": "19:30",
    },
    "get_weather": {"forecast": "sunny"},
    "plan_outdoors": {"plan": ["a swim", "a picnic"]},
    "plan_indoors": {"plan": ["a museum"]},
}


def dialogue(**results: Any) -> Dialogue:
    return Dialogue(ALL, fixed(RESULTS | results))


@pytest.mark.parametrize(
    ("text", "party", "day", "time"),
    [
        ("Book a table for 2 tonight", 2, "tonight", "19:30"),
        ("Book a table", 2, "tonight", "19:30"),
        ("could you reserve us a spot for four tomorrow at 8pm?", 4, "tomorrow", "20:00"),
        ("I'd like a reservation for six guests on Friday at half past seven", 6, "Friday", "19:30"),
        ("lunch for a couple tomorrow, please", 2, "tomorrow", "12:30"),
        ("lunch for 3", 3, "today", "12:30"),
        ("somewhere to eat tonight, just me", 1, "tonight", "19:30"),
        ("party of four next friday 20:15", 4, "next Friday", "20:15"),
    ],
)
def test_booking_looks_for_tables_first_and_then_books(text: str, party: int, day: str, time: str) -> None:
    talk = dialogue()
    talk.say(text)
    table = {"party_size": party, "day": day, "time": time}
    assert talk.calls == [("find_tables", table), ("book_table", table | {"restaurant": "Blue Door"})]


def test_each_call_is_a_step_of_its_own_with_an_id_of_its_own() -> None:
    talk = dialogue()
    talk.say("Book a table")
    turns = [calls_of(message) for message in talk.log if message["role"] == "assistant"]
    assert [len(calls) for calls in turns] == [1, 1, 0]
    assert len({call["id"] for calls in turns for call in calls}) == 2


def test_the_answer_speaks_from_the_result_not_from_what_was_asked() -> None:
    ran = {"confirmation": "C-9", "restaurant": "Old Mill", "party_size": 4, "day": "Monday", "time": "18:00"}
    said = dialogue(book_table=ran).say("Book a table for 2 tonight")
    assert "Old Mill, Monday at 18:00 for 4" in said
    assert "C-9" in said
    assert "Blue Door" not in said


def test_a_result_of_another_shape_is_quoted() -> None:
    assert "all yours" in dialogue(book_table="all yours").say("Book a table")
    assert "full" in dialogue(book_table={"booked": False, "reason": "full"}).say("Book a table")
    assert "is booked" not in dialogue(book_table={"booked": False, "reason": "full"}).say("Book a table")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("Make it 3 people", {"party_size": 3}),
        ("we'll be 5 instead", {"party_size": 5}),
        ("one more person", {"party_size": 3}),
        ("just me", {"party_size": 1}),
        ("actually, on Sunday", {"day": "Sunday"}),
        ("move it to 9", {"time": "21:00"}),
        ("could we come at 9 instead?", {"time": "21:00"}),
        ("change it to lunch", {"day": "today", "time": "12:30"}),
        ("rather at Old Mill", {"restaurant": "Old Mill"}),
    ],
)
def test_a_change_books_again_and_keeps_the_rest(text: str, changed: dict[str, Any]) -> None:
    talk = dialogue()
    talk.say("Book a table for 2 tonight")
    said = talk.say(text)
    kept = {"party_size": 2, "day": "tonight", "time": "19:30", "restaurant": "Blue Door"}
    assert talk.calls == [("book_table", kept | changed)]
    assert "C-1" in said


def test_a_change_starts_from_what_really_ran() -> None:
    talk = dialogue(book_table=RESULTS["book_table"] | {"day": "Monday", "restaurant": "Old Mill"})
    talk.say("Book a table for 2 tonight")
    talk.say("Make it 3 people")
    assert talk.calls[0][1] == {"party_size": 3, "day": "Monday", "time": "19:30", "restaurant": "Old Mill"}


def test_the_earlier_table_is_named_when_a_change_left_it_standing() -> None:
    talk = dialogue()
    talk.say("Book a table")
    talk.run = fixed(RESULTS | {"book_table": RESULTS["book_table"] | {"confirmation": "C-2"}})
    said = talk.say("Make it 3 people")
    assert "C-2" in said
    assert "earlier table (C-1) still stands" in said
    assert "earlier" not in talk.say("Book another table for 5 tomorrow")


def test_a_new_booking_does_not_take_over_the_old_details() -> None:
    talk = dialogue()
    talk.say("Book a table for 7 on Sunday at 9")
    talk.say("Book a table")
    assert talk.calls[0] == ("find_tables", {"party_size": 2, "day": "tonight", "time": "19:30"})


def test_a_change_without_a_booking_is_a_booking() -> None:
    talk = dialogue()
    talk.say("Make it 3 people")
    assert talk.called == ["find_tables", "book_table"]
    assert talk.calls[1][1]["party_size"] == 3


def test_a_change_of_nothing_asks_what_to_change() -> None:
    talk = dialogue()
    talk.say("Book a table")
    assert "What shall I change" in talk.say("change my booking")
    assert talk.calls == []


@pytest.mark.parametrize(
    ("text", "restaurant"),
    [
        ("the second one, please", "Old Mill"),
        ("book the mill", "Old Mill"),
        ("book it", "Blue Door"),
        ("yes", "Blue Door"),
    ],
)
def test_one_of_the_tables_found_can_be_booked(text: str, restaurant: str) -> None:
    talk = dialogue()
    said = talk.say("any tables free for 4 tomorrow?")
    assert talk.called == ["find_tables"]
    assert "Blue Door and Old Mill" in said
    talk.say(text)
    asked = {"party_size": 4, "day": "tomorrow", "time": "19:30", "restaurant": restaurant}
    assert talk.calls == [("book_table", asked)]


def test_no_free_table_ends_without_a_booking() -> None:
    talk = dialogue(find_tables={"tables": []})
    assert "no table free" in talk.say("Book a table for 40")
    assert talk.called == ["find_tables"]


def test_a_rejected_booking_says_so_and_repeats_the_note() -> None:
    talk = dialogue(book_table=Failed("rejected by ana", "rejected", "too expensive"))
    said = talk.say("Book a table")
    assert "did not book" in said
    assert "too expensive" in said
    assert talk.called.count("book_table") == 1
    assert "Nothing has been booked" in talk.say("are you done?")


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("tool-error", "could not book the table: the line is dead"),
        ("timeout", "could not book the table: the line is dead"),
        ("unknown-tool", "could not book the table"),
        ("invalid-arguments", "could not book the table"),
        ("cancelled", "was stopped while trying to book the table"),
        ("interrupted", "may or may not have happened"),
    ],
)
def test_a_failed_call_is_told_and_not_repeated(kind: str, says: str) -> None:
    talk = dialogue(book_table=Failed("the line is dead", kind))
    assert says in talk.say("Book a table")
    assert talk.called.count("book_table") == 1


@pytest.mark.parametrize("name", ["find_tables", "get_weather", "plan_outdoors"])
@pytest.mark.parametrize("text", ["Book a table", "Plan my trip", "any tables?", "how is the weather?"])
def test_no_tool_is_called_twice_for_a_wish_that_fails(text: str, name: str) -> None:
    talk = dialogue(**{name: Failed("broken", "tool-error")})
    said = talk.say(text)
    assert len(talk.called) == len(set(talk.called))
    assert ("broken" in said) == (name in talk.called)


def test_trying_again_asks_for_the_same_again() -> None:
    talk = dialogue(book_table=Failed("busy", "tool-error"))
    talk.say("Book a table for 4 tomorrow")
    talk.run = fixed(RESULTS)
    talk.say("try again")
    asked = {"party_size": 4, "day": "tomorrow", "time": "19:30", "restaurant": "Blue Door"}
    assert talk.calls == [("book_table", asked)]


@pytest.mark.parametrize("text", ["yes", "ok", "perfect, thanks", "great", "go ahead", "hello", "no thanks"])
def test_a_polite_word_after_a_booking_books_nothing(text: str) -> None:
    talk = dialogue()
    talk.say("Book a table")
    assert talk.say(text)
    assert talk.calls == []


def test_what_cannot_be_done_is_said_with_what_can() -> None:
    talk = dialogue()
    assert "nothing booked" in talk.say("cancel that")
    talk.say("Book a table")
    said = talk.say("cancel that")
    assert "no tool to cancel" in said
    assert "C-1" in said
    assert "book a table" in talk.say("tell me a joke")
    assert talk.calls == []


@pytest.mark.parametrize(
    ("forecast", "plan"),
    [
        ({"forecast": "sunny"}, "plan_outdoors"),
        ({"forecast": "rain"}, "plan_indoors"),
        ({"place": "Oslo", "forecast": "heavy snow showers"}, "plan_indoors"),
        ("Clear skies all day", "plan_outdoors"),
        ("a thunderstorm is coming", "plan_indoors"),
    ],
)
def test_a_trip_is_planned_by_the_forecast_of_the_result(forecast: object, plan: str) -> None:
    talk = dialogue(get_weather=forecast)
    said = talk.say("Plan my trip")
    assert talk.called == ["get_weather", plan]
    assert all(item in said for item in RESULTS[plan]["plan"])


def test_a_trip_to_a_place_stays_there() -> None:
    talk = dialogue()
    talk.say("plan my trip to Porto")
    assert talk.calls == [("get_weather", {"place": "Porto"}), ("plan_outdoors", {"place": "Porto"})]
    talk.say("and in Rome?")
    assert talk.calls == [("get_weather", {"place": "Rome"}), ("plan_outdoors", {"place": "Rome"})]


def test_another_forecast_put_in_the_place_of_the_result_changes_the_plan() -> None:
    talk = dialogue()
    talk.say("Plan my trip")
    asked, call = list(talk.log.slice(0, 2))
    forked = Dialogue(ALL, talk.run)
    rain = result(calls_of(call)[0], lambda _: {"forecast": "rain"})
    forked.log = Log([asked, call, rain])
    assert "rain" in forked.go_on()
    assert forked.called == ["plan_indoors"]


def test_the_weather_of_a_place_is_told() -> None:
    talk = dialogue(get_weather={"place": "Lisbon", "forecast": "fog", "high_c": 17})
    assert "Lisbon is fog, with up to 17 °C" in talk.say("what's the weather like in Lisbon?")
    assert talk.calls == [("get_weather", {"place": "Lisbon"})]
    talk.say("and paris?")
    assert talk.calls == [("get_weather", {"place": "Paris"})]


@pytest.mark.parametrize(
    ("forecast", "dry"),
    [
        ("sunny", True),
        ("partly cloudy", True),
        ("no rain", True),
        ("no rain, sunny", True),
        ("sunny with showers", False),
        ("not sunny", False),
        ("drizzle", False),
        ("the train is late", False),
        ({"condition": "Clear"}, True),
        ({"forecast": ["rain", "sun"]}, False),
        (None, False),
        (12, False),
    ],
)
def test_a_forecast_is_dry_only_if_it_says_so(forecast: object, dry: bool) -> None:
    assert is_dry(forecast) is dry


@pytest.mark.parametrize(
    "text", ["Book a table", "any tables?", "Make it 3", "what's the weather?", "Plan my trip", "hi"]
)
def test_without_tools_nothing_is_called_and_it_says_why(text: str) -> None:
    talk = Dialogue((), fixed({}))
    assert "no tool" in talk.say(text)
    assert talk.calls == []


@pytest.mark.parametrize(
    ("offered", "text", "called"),
    [
        ((BOOK,), "Book a table", ["book_table"]),
        ((FIND,), "Book a table", ["find_tables"]),
        ((WEATHER,), "Plan my trip", []),
        ((WEATHER, OUTDOORS), "Plan my trip", ["get_weather", "plan_outdoors"]),
        ((WEATHER, INDOORS), "Plan my trip", ["get_weather"]),
        ((INDOORS, OUTDOORS), "Plan my trip", ["plan_indoors"]),
    ],
)
def test_only_offered_tools_are_called(offered: tuple[Any, ...], text: str, called: list[str]) -> None:
    talk = Dialogue(offered, fixed(RESULTS))
    assert talk.say(text)
    assert talk.called == called


def test_arguments_follow_the_schema_that_is_offered() -> None:
    talk = Dialogue(
        [schema("get_weather", city="string"), schema("book_table", guests="integer")], fixed(RESULTS)
    )
    talk.say("weather in Porto")
    assert talk.calls == [("get_weather", {"city": "Porto"})]
    talk.say("a table for 5")
    assert talk.calls == [("book_table", {"guests": 5})]


def test_a_tool_it_does_not_know_is_named() -> None:
    said = Dialogue([schema("refund"), WEATHER], fixed({})).say("refund order 7")
    assert "refund" in said
    assert "agent.toml" in said


def test_of_two_messages_the_newest_wish_is_answered() -> None:
    talk = dialogue()
    talk.say("Book a table", "also check the weather")
    assert talk.called == ["get_weather"]


def test_a_second_message_may_add_to_the_first() -> None:
    talk = dialogue()
    talk.say("Book a table", "for 4 people tomorrow at 8")
    assert talk.calls[0] == ("find_tables", {"party_size": 4, "day": "tomorrow", "time": "20:00"})
    assert talk.called == ["find_tables", "book_table"]


def test_a_booking_not_told_yet_is_told_with_the_next_answer() -> None:
    talk = dialogue()
    log = Log([user("Book a table")])
    for _ in range(2):
        turn = assistant(ask(log, ALL))
        log = log.extended([turn, result(calls_of(turn)[0], talk.run)])
    talk.log = log
    said = talk.say("what's the weather like in Rome?")
    assert "C-1" in said
    assert "sunny" in said
    assert talk.called == ["get_weather"]
    assert "C-1" not in talk.say("what's the weather like in Rome?")


def test_the_same_transcript_gives_the_same_turn_with_a_plausible_count() -> None:
    log = Log([user("Book a table for 2 tonight")])
    first, second = ask(log, ALL), ask(log, ALL)
    assert first == second
    assert first.finish_reason == "tool_calls"
    assert first.usage is not None
    assert 0 < first.usage.output_tokens < first.usage.input_tokens < first.usage.total_tokens
    assert ask(Log([user("hello")]), ALL).finish_reason == "stop"
    assert DemoModel().model == "demo"


def test_a_turn_costs_the_same_however_long_the_transcript_is() -> None:
    class CountingLog(Log):
        looked_at = 0

        def slice(self, start: int, stop: int | None = None) -> Iterator[MessageData]:
            self.looked_at = max(self.looked_at, len(self) - start)
            return super().slice(start, stop)

    hello: list[MessageData] = [user("hello"), {"role": "assistant", "content": "hi"}]
    log = CountingLog([*hello * 5000, user("Book a table")])
    assert ask(log, ALL).tool_calls[0].name == "find_tables"
    assert 0 < log.looked_at <= 40


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": None}],
        [{"role": "user", "content": None}],
        [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "\x00\ud83d"}]}],
        [{"role": "tool", "content": "not json", "toolCallId": "x", "toolName": "book_table"}],
        [
            {
                "role": "tool",
                "content": "[" * 100_000,
                "toolCallId": "x",
                "toolName": "find_tables",
                "isError": True,
            }
        ],
    ],
)
def test_odd_transcripts_get_an_answer(messages: list[MessageData]) -> None:
    assert ask(Log(messages), ALL).content
