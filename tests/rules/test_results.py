"""What tools return is what is recorded, live and after a resume (R3.19)."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
from typing import Any

import pytest
import rules_kit
from rules_kit import World, asks, dump, results, turn

from lousho_cli import StoredApproval, tool

world = rules_kit.world


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: float


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no text form")


def cycle() -> list[Any]:
    inner: list[Any] = [1]
    inner.append(inner)
    return inner


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(200):
        value = [value]
    return value


VALUES: dict[str, Any] = {
    "decimal": decimal.Decimal("1.50"), "date": datetime.date(2024, 1, 31),
    "naive": datetime.datetime(2024, 1, 31, 12, 0),  # noqa: DTZ001
    "aware": datetime.datetime(2024, 1, 31, 12, 0, tzinfo=datetime.UTC), "bytes": b"\xb2\x00",
    "set": {3, 1, 2}, "tuple": (1, (2,)), "dataclass": Point(1, 2.5), "enum": Colour.RED,
    "path": pathlib.PurePosixPath("a/b"), "exception": ValueError("x"), "generator": (n for n in range(3)),
    "cycle": cycle(), "silent": Silent(), "nan": [math.nan, math.inf, -math.inf], "exact": 2**53 + 1,
    "big": -(2**70), "digits": "123", "text": "ok", "empty": "", "zero": 0, "false": False, "none": None,
    "list": [], "surrogate": "a\ud83d b\udcb2", "nul": "a\x00b", "separators": "\u2028\ufeff",
    "emoji": "👩‍🚀 שלום", "deep": deep(), "keys": {1: "int", "1": "text", None: 0},
}  # fmt: skip


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_f19_the_outcome_is_recorded_and_reads_the_same_live_and_resumed(world: World, value: Any) -> None:
    world.tools = [world.ledger.tool("a", lambda: value)]
    world.crash([asks("a"), {"error": "the model died"}])
    live = dump(world.model.calls[-1].messages)
    world.resume(["done"])
    assert dump(world.model.calls[-1].messages) == live
    content = live[-1]["content"]
    assert "isError" not in live[-1]

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    json.loads(content, parse_constant=refuse)
    content.encode("utf-8")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("digits", "123"), ("text", "ok"), ("empty", ""), ("zero", 0), ("false", False), ("none", None),
        ("exact", 2**53 + 1), ("big", -(2**70)), ("list", []), ("set", [1, 2, 3]), ("tuple", [1, [2]]),
        ("dataclass", {"x": 1, "y": 2.5}), ("enum", "red"), ("decimal", "1.50"), ("emoji", "👩‍🚀 שלום"),
    ],
)  # fmt: skip
def test_f19_known_kinds_keep_their_value(world: World, name: str, expected: Any) -> None:
    world.tools = [world.ledger.tool("a", lambda: VALUES[name])]
    found = results(world.execute([asks("a"), "done"]).messages)["call_a"]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("number", [2**53 + 1, 2**70, -(2**63) - 1])
def test_f19_integer_arguments_stay_exact(world: World, number: int) -> None:
    given: list[int] = []

    @tool(needs_approval=True)
    def exact(n: int) -> int:
        "exact"
        given.append(n)
        return n

    world.tools = [exact]
    paused = world.execute([turn({"name": "exact", "args": json.dumps({"n": number})})])
    done = world.decide(paused.approval_id, ["done"])
    assert given == [number]
    assert list(results(done.messages).values()) == [number]


def test_a_value_that_changes_after_it_was_returned_is_recorded_as_it_was(world: World) -> None:
    shared: list[int] = []

    def grow() -> list[int]:
        shared.append(len(shared))
        return shared

    world.tools = [world.ledger.tool("a", grow)]
    done = world.execute([turn(*(rules_kit.call("a", str(n)) for n in range(3))), "x"], tool_concurrency=1)
    assert results(done.messages) == {"0": [0], "1": [0, 1], "2": [0, 1, 2]}


def test_a_pause_after_an_odd_result_can_be_resumed(world: World) -> None:
    import asyncio

    world.tools = [world.ledger.tool("odd", Silent), world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("odd", "g")])
    stored: list[StoredApproval] = list(asyncio.run(world.store.approvals.list()))
    assert [one.pending.id for one in stored] == [paused.approval_id]
    assert world.decide(paused.approval_id, ["done"]).text == "done"
