from __future__ import annotations

import functools
import inspect
import io
import itertools
import json
import sys
import threading
from collections import ChainMap, OrderedDict, UserDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import MagicMock, Mock
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_serializer

from lousho_cli.execution.values import (
    MAX_DEPTH,
    clean,
    clean_text,
    error_result,
    message_of,
    to_json_text,
    to_json_value,
)


class Colour(Enum):
    RED = "red"
    PAIR = (1, 2)


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    YES = "yes"


@dataclass
class Box:
    label: str
    inside: Any = None
    hidden: str = field(default="h", repr=False)


class Point(NamedTuple):
    x: int
    y: Any


class Inner(BaseModel):
    when: date


class Order(BaseModel):
    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True)
    order_id: int = Field(alias="orderId")
    price: Decimal = Decimal("1.50")
    tags: frozenset[str] = frozenset({"b", "a"})
    inner: Inner | None = None
    raw: bytes = b"\xff"


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "not what it holds"


class Number(int):
    def __repr__(self) -> str:
        return "not a number"


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def depth_of(value: Any) -> int:
    depth = 0
    while isinstance(value, list):
        depth += 1
        value = value[0] if value else None
    return depth


def counter() -> Iterator[int]:
    yield from range(3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (0, "0"),
        (2**53 + 1, "9007199254740993"),
        (2**70, "1180591620717411303424"),
        (-0.0, "-0.0"),
        (1.5, "1.5"),
        (float("nan"), '"NaN"'),
        (float("inf"), '"Infinity"'),
        (float("-inf"), '"-Infinity"'),
        ("123", '"123"'),
        ("", '""'),
        ("\u0000\u2028\ufeff", '"\\u0000\u2028\ufeff"'),
        (Decimal("1.50"), '"1.50"'),
        (Decimal("NaN"), '"NaN"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (PurePosixPath("/a/b"), '"/a/b"'),
        (1 + 2j, '"(1+2j)"'),
        (date(2024, 2, 29), '"2024-02-29"'),
        (time(1, 2, 3), '"01:02:03"'),
        (datetime(2024, 2, 29, 1, 2), '"2024-02-29T01:02:00"'),  # noqa: DTZ001
        (datetime(2024, 2, 29, 1, 2, tzinfo=UTC), '"2024-02-29T01:02:00+00:00"'),
        (datetime(2024, 2, 29, tzinfo=timezone(timedelta(hours=-5))), '"2024-02-29T00:00:00-05:00"'),
        (timedelta(minutes=1, milliseconds=250), "60.25"),
        (b"caf\xc3\xa9", '"café"'),
        (bytearray(b"ok"), '"ok"'),
        (memoryview(b"ok"), '"ok"'),
        (b"\xb2", '{"base64":"sg=="}'),
        ((1, (2, 3)), "[1,[2,3]]"),
        (range(3), "[0,1,2]"),
        (range(10**12), '"range(0, 1000000000000)"'),
        (range(10**40), f'"range(0, {10**40})"'),
        (deque([1, 2]), "[1,2]"),
        ({"a": 1}.keys(), '["a"]'),
        ({"a": 1}.items(), '[["a",1]]'),
        ({10, 9, "b"}, '["b",10,9]'),
        (frozenset({(2, 1), (1, 2)}), "[[1,2],[2,1]]"),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (MappingProxyType({"a": (1,)}), '{"a":[1]}'),
        (defaultdict(list, a=[1]), '{"a":[1]}'),
        (Colour.RED, '"red"'),
        (Colour.PAIR, "[1,2]"),
        (Level.HIGH, "3"),
        (Word.YES, '"yes"'),
        (Box("b", Box("c")), '{"label":"b","inside":{"label":"c","inside":null,"hidden":"h"},"hidden":"h"}'),
        (Point(1, {2}), '{"x":1,"y":[2]}'),
        ([Point(1, 2)], '[{"x":1,"y":2}]'),
        (ValueError("no luck"), '{"error":"no luck","type":"ValueError"}'),
        (KeyboardInterrupt(), '{"error":"KeyboardInterrupt","type":"KeyboardInterrupt"}'),
        (UnspeakableError(), '{"error":"UnspeakableError","type":"UnspeakableError"}'),
        (Text("123"), '"123"'),
        (Number(7), "7"),
        (Unspeakable(), '"<Unspeakable: no text form>"'),
        (int, "\"<class 'int'>\""),
        (Colour, "\"<enum 'Colour'>\""),
        (Box, "\"<class 'test_values.Box'>\""),
        (len, '"<built-in function len>"'),
        (counter(), '"<generator object counter>"'),
        (functools.partial(counter), '"functools.partial(<function counter>)"'),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else None,
)
def test_each_kind_of_value_has_one_documented_form(value: object, expected: str) -> None:
    assert to_json_text(value) == expected


def test_a_pydantic_model_is_an_object_by_alias_and_our_rules_hold_inside() -> None:
    order = Order.model_validate({"orderId": 2**70, "inner": {"when": "2024-01-01"}, "more": float("inf")})
    assert to_json_value(order) == {
        "orderId": 2**70,
        "price": "1.50",
        "tags": ["a", "b"],
        "inner": {"when": "2024-01-01"},
        "raw": {"base64": "/w=="},
        "more": "Infinity",
    }
    assert to_json_value([RootModel[set[int]]({2, 1}), RootModel[int](4)]) == [[1, 2], 4]


def test_a_model_that_cannot_be_dumped_is_an_object_by_field_name() -> None:
    class Broken(BaseModel):
        model_config = ConfigDict(extra="allow")
        name: str = Field(alias="Name")

        @field_serializer("name")
        def refuse(self, value: str) -> str:
            raise ValueError("no")

    assert to_json_value(Broken(Name="n", more=(1,))) == {"name": "n", "more": [1]}  # type: ignore[call-arg]


def test_a_model_that_holds_itself_ends_in_a_cycle_mark() -> None:
    class Node(BaseModel):
        next: Any = None

    node = Node()
    node.next = [node]
    text = to_json_text(node)
    assert text.startswith('{"next":[')
    assert text.count("<cycle>") == 1


def test_a_dataclass_field_without_a_value_is_said_to_be_unset() -> None:
    @dataclass
    class Late:
        later: int = field(init=False)

    assert to_json_value(Late()) == {"later": "<unset>"}


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
        ({True: 0, 1.5: 1, (1, "x"): 2}, {"true": 0, "1.5": 1, '[1,"x"]': 2}),
        ({date(2024, 1, 1): 1, Colour.RED: 2, b"k": 3}, {"2024-01-01": 1, "red": 2, "k": 3}),
        ({frozenset({2, 1}): 1}, {"[1,2]": 1}),
        ({1: "a", "1": "b"}, {"entries": [[1, "a"], ["1", "b"]]}),
        (
            dict(zip(["\ud800", "\udfff"], [1, {"deep": ()}], strict=True)),
            {"entries": [["\ufffd", 1], ["\ufffd", {"deep": []}]]},
        ),
        ({Word.YES: 1, b"yes": 2}, {"entries": [["yes", 1], ["yes", 2]]}),
    ],
)
def test_keys_become_texts_and_are_never_merged(mapping: dict[Any, Any], expected: Any) -> None:
    assert to_json_value(mapping) == expected
    assert json.loads(to_json_text(mapping)) == expected


def test_integers_beyond_the_digit_limit_become_hex_texts() -> None:
    longest = 10**4300 - 1
    assert to_json_value([longest, -longest]) == [longest, -longest]
    assert to_json_value([longest + 1, -longest - 1]) == [hex(longest + 1), hex(-longest - 1)]
    assert to_json_text(longest + 1) == f'"{hex(longest + 1)}"'


@pytest.mark.parametrize("limit", [0, 640, 100_000])
def test_the_form_of_long_integers_can_be_read_back_whatever_the_limit(limit: int) -> None:
    before = sys.get_int_max_str_digits()
    numbers = [10**639, 10**641, 10**4301]
    sys.set_int_max_str_digits(limit)
    try:
        text = to_json_text(numbers)
        read = json.loads(text)
    finally:
        sys.set_int_max_str_digits(before)
    assert [int(n, 16) if isinstance(n, str) else n for n in read] == numbers
    assert isinstance(read[2], str)
    assert isinstance(read[1], str) == (limit == 640)


def test_iterators_and_files_are_named_but_not_consumed(tmp_path: Path) -> None:
    numbers = iter([1, 2])
    squares = (n * n for n in range(3))
    pairs = itertools.count()
    stream = io.StringIO("text")
    value = to_json_value([numbers, squares, pairs, stream])
    assert value[:2] == [
        "<list_iterator object>",
        "<generator object test_iterators_and_files_are_named_but_not_consumed.<locals>.<genexpr>>",
    ]
    assert (next(numbers), next(squares), next(pairs), stream.read()) == (1, 0, 0, "text")
    with (tmp_path / "f").open("w") as file:
        assert to_json_value(file).startswith("<_io.TextIOWrapper name=")


def test_no_memory_address_is_left_anywhere() -> None:
    class Plain:
        def method(self) -> None: ...

    assert " 0x" not in to_json_text([Plain(), Plain().method, lambda: 0, object(), threading.Lock()])
    assert to_json_value(object()) == "<object object>"


def test_values_that_hold_themselves_end_in_a_cycle_mark() -> None:
    items: list[Any] = [1]
    items.append(items)
    table: dict[str, Any] = {"items": items}
    table["self"] = table
    box = Box("b")
    box.inside = {"again": box}
    assert to_json_value(items) == [1, "<cycle>"]
    assert to_json_value(table) == {"items": [1, "<cycle>"], "self": "<cycle>"}
    assert to_json_value(box) == {"label": "b", "inside": {"again": "<cycle>"}, "hidden": "h"}


def test_a_value_that_occurs_twice_is_no_cycle() -> None:
    shared = [1]
    assert to_json_value([shared, shared, {"a": shared}]) == [[1], [1], {"a": [1]}]


def test_nesting_is_kept_down_to_the_limit_and_cut_below_it() -> None:
    assert to_json_value(nested(200)) == nested(200)
    assert to_json_value(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    cut = to_json_value(nested(MAX_DEPTH + 1))
    assert depth_of(cut) == MAX_DEPTH
    assert "<too deep>" in to_json_text(nested(100_000))
    assert to_json_text(nested(100_000)) == to_json_text(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: (inner,),
        lambda inner: {"k": inner},
        lambda inner: {1: inner, "1": 0},
        lambda inner: frozenset({inner}),
        lambda inner: {(inner,): 1} if inner == "bottom" else {"k": inner, 1: 2},
        lambda inner: Box("b", inner),
        lambda inner: Point(1, inner),
        lambda inner: RootModel[Any]((inner,)),
    ],
)
def test_every_kind_of_container_is_cut_at_the_limit(wrap: Any) -> None:
    value: Any = "bottom"
    for _ in range(MAX_DEPTH + 1):
        value = wrap(value)
    text = to_json_text(value)
    assert "<too deep>" in text
    assert MAX_DEPTH <= deepest(text) <= MAX_DEPTH + 2


def deepest(text: str) -> int:
    opened = [1 if c in "[{" else -1 if c in "]}" else 0 for c in text]
    return max(itertools.accumulate(opened))


def test_deep_values_convert_however_little_stack_is_left() -> None:
    value = {"deep": nested(MAX_DEPTH - 1), "odd": (1,)}
    expected = to_json_text(value)

    def at_depth(frames: int) -> str:
        return at_depth(frames - 1) if frames else to_json_text(value)

    room = sys.getrecursionlimit() - len(inspect.stack(0))
    assert at_depth(room - 60) == expected


def test_objects_that_misbehave_in_any_way_have_a_stated_form() -> None:
    class NoClass:
        @property  # type: ignore[misc]
        def __class__(self) -> type:
            raise RuntimeError("no class")

    class BadMapping(UserDict[str, int]):
        def items(self) -> Any:
            return [1, 2, 3]

    class BadName(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]
            raise RuntimeError("no name")

    class Nameless(metaclass=BadName):
        def __repr__(self) -> str:
            raise RuntimeError("no")

    class BadBytes(bytearray):
        pass

    class RecursiveRepr:
        def __repr__(self) -> str:
            return repr(self)

    released = memoryview(b"x")
    released.release()
    odd = [
        NoClass(),
        BadMapping(a=1),
        Nameless(),
        BadBytes(b"x"),
        released,
        Mock(spec=dict),
        Mock(spec=str),
        Mock(spec=int),
        MagicMock(),
        RecursiveRepr(),
    ]
    result = json.loads(to_json_text(odd))
    assert len(result) == len(odd)
    assert result[2:4] == ["<Nameless: no text form>", "x"]
    assert result[-1] == "<RecursiveRepr: no text form>"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_real_interrupt_is_not_swallowed(stop: type[BaseException]) -> None:
    class Interrupts:
        def __repr__(self) -> str:
            raise stop

    with pytest.raises(stop):
        to_json_text([Interrupts()])
    with pytest.raises(stop):
        message_of(type("E", (Exception,), {"__str__": Interrupts.__repr__})())


def test_a_mapping_that_changes_while_it_is_read_is_read_again() -> None:
    class Busy(Mapping[str, int]):
        def __init__(self) -> None:
            self.data: dict[str, int] = {"a": 1}

        def __getitem__(self, key: str) -> int:
            return self.data[key]

        def __len__(self) -> int:
            return len(self.data)

        def __iter__(self) -> Iterator[str]:
            for key in self.data:
                yield key
                if len(self.data) < 3:
                    self.data[f"new{len(self.data)}"] = 2

    assert to_json_value(Busy()) == {"a": 1, "new1": 2, "new2": 2}


def test_containers_another_thread_is_changing_do_not_crash_it() -> None:
    table: dict[Any, Any] = {}
    items: list[Any] = []
    queue: deque[int] = deque()
    stop = threading.Event()

    def change() -> None:
        for i in itertools.count():
            if stop.is_set():
                return
            table[f"k{i % 97}"] = (i,)
            table.pop(f"k{(i * 7) % 97}", None)
            queue.append(i)
            items.append(i)
            if len(items) > 500:
                items.clear()
                queue.clear()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            assert isinstance(json.loads(to_json_text([table, items, queue, ChainMap(table)])), list)
            assert isinstance(json.loads(to_json_text(table)), dict)
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)


def test_the_result_shares_nothing_with_the_value() -> None:
    value: dict[str, Any] = {"a": [1, {"b": 2}]}
    result = to_json_value(value)
    value["a"].append(3)
    value["a"][1]["b"] = 4
    assert result == {"a": [1, {"b": 2}]}


def test_large_plain_values_are_encoded_at_the_speed_of_the_c_encoder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("walked")

    monkeypatch.setattr("lousho_cli.execution.values.convert", refuse)
    value = {"rows": [{"id": i, "name": "é"} for i in range(100)], "ok": True, "pair": (1, 2.5), "none": None}
    assert json.loads(to_json_text(value))["rows"][99] == {"id": 99, "name": "é"}


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain", "plain"),
        ("\ud83d", "\ufffd"),
        ("\udcb2x", "\ufffdx"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00a\ud83d", "\ufffd\U0001f600a\ufffd"),
        (
            "👩\u200d👩\u200d👧 e\u0301 שלום \u0000\u2028\ufeff",
            "👩\u200d👩\u200d👧 e\u0301 שלום \u0000\u2028\ufeff",
        ),
    ],
)
def test_half_surrogate_pairs_are_joined_or_replaced_and_good_text_is_kept(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned
    assert to_json_value(text) == cleaned
    assert json.loads(to_json_text(text)) == cleaned
    assert (
        to_json_text({text: [text]}).encode()
        == json.dumps({cleaned: [cleaned]}, ensure_ascii=False, separators=(",", ":")).encode()
    )


@given(st.text(st.characters(min_codepoint=0xD700, max_codepoint=0xE010, exclude_categories=())))
def test_cleaned_text_is_what_utf16_would_read(text: str) -> None:
    cleaned = clean_text(text)
    expected, units = [], [ord(c) for c in text]
    while units:
        unit = units.pop(0)
        if 0xD800 <= unit < 0xDC00 and units and 0xDC00 <= units[0] < 0xE000:
            expected.append(chr(0x10000 + ((unit - 0xD800) << 10) + (units.pop(0) - 0xDC00)))
        else:
            expected.append("\ufffd" if 0xD800 <= unit < 0xE000 else chr(unit))
    assert cleaned == "".join(expected)
    assert clean_text(cleaned) is cleaned


def test_clean_returns_the_same_object_when_there_is_nothing_to_change() -> None:
    value = {"a": ["é", {"b": None}], "n": 2**70}
    assert clean(value) is value
    deep = nested(5000)
    assert clean(deep) is deep


def test_clean_replaces_in_texts_and_keys_at_any_depth() -> None:
    value: Any = {"\ud83d": ["x\udcb2"], "good": 1.5}
    before = json.dumps(value)
    for _ in range(2000):
        value = [value]
    cleaned = clean(value)
    for _ in range(2000):
        (cleaned,) = cleaned
        (value,) = value
    assert cleaned == {"\ufffd": ["x\ufffd"], "good": 1.5}
    assert json.dumps(value) == before


def test_error_results_are_objects_of_error_kind_and_note() -> None:
    assert error_result("timeout", "took\nlong") == '{"error":"took\\nlong","kind":"timeout"}'
    assert error_result("rejected", "no", "") == '{"error":"no","kind":"rejected","note":""}'
    assert error_result("tool-error", "\ud83d", "é") == '{"error":"\ufffd","kind":"tool-error","note":"é"}'


@pytest.mark.parametrize(
    ("exception", "message"),
    [
        (ValueError("no luck"), "no luck"),
        (ValueError(), "ValueError"),
        (ValueError(" \n"), "ValueError"),
        (KeyError("k"), "'k'"),
        (UnspeakableError(), "UnspeakableError"),
        (ValueError("\ud83d"), "\ufffd"),
        (SystemExit(3), "3"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_message_of_an_exception_is_never_empty(exception: BaseException, message: str) -> None:
    assert message_of(exception) == message


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


def is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:  # a signalling NaN
        return False
    return True


odd_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.decimals()
    | st.complex_numbers()
    | st.uuids()
    | st.datetimes()
    | st.timedeltas()
    | st.sampled_from([Colour.RED, Level.HIGH, Word.YES, len, int, Text("t"), Number(3)])
)
hashable = odd_scalars.filter(is_hashable)
odd_keys = (
    hashable | st.lists(hashable, max_size=3).map(tuple) | st.lists(hashable, max_size=3).map(frozenset)
)


def held_in(kind: str, pairs: list[tuple[Any, Any]]) -> Any:
    values = [value for _, value in pairs]
    match kind:
        case "list":
            return values
        case "tuple":
            return tuple(values)
        case "deque":
            return deque(values)
        case "dict":
            return dict(pairs)
        case "set":
            return {key for key, _ in pairs}
        case "dataclass":
            return Box("b", values)
        case "named tuple":
            return Point(1, dict(pairs))
        case _:
            return [ValueError(*values), Unspeakable()]


odd_kinds = st.sampled_from(["list", "tuple", "deque", "dict", "set", "dataclass", "named tuple", "odd"])
odd_values = st.recursive(
    odd_scalars,
    lambda inner: st.builds(held_in, odd_kinds, st.lists(st.tuples(odd_keys, inner), max_size=4)),
    max_leaves=20,
)


@given(json_values)
def test_any_json_value_comes_back_exactly(value: Any) -> None:
    text = to_json_text(value)
    assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    again = json.loads(text)
    assert again == value
    assert repr(again) == repr(value) == repr(to_json_value(value))
    assert clean(value) is value


@given(odd_values)
def test_any_value_becomes_valid_json_that_reads_back_as_the_same_text(value: object) -> None:
    text = to_json_text(value)
    text.encode("utf-8")
    assert json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"), allow_nan=False) == text
    assert json.loads(text) == to_json_value(value)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from("ldso")), max_size=30))
def test_any_web_of_containers_that_hold_each_other_is_converted(links: list[tuple[int, int, str]]) -> None:
    nodes: list[Any] = [[] if i % 2 else {} for i in range(10)]
    for link, (a, b, kind) in enumerate(links[:12]):
        target = nodes[b]
        held = {"l": target, "d": {"k": target}, "s": (target, {1, "1"}), "o": Box("b", target)}[kind]
        if isinstance(nodes[a], list):
            nodes[a].append(held)
        else:
            nodes[a][link] = held
    for node in nodes:
        json.loads(to_json_text(node))
