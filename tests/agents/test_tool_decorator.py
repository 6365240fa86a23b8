from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Optional, Union

import pytest
from pydantic import BaseModel, BeforeValidator, Field
from typing_extensions import TypedDict

from lousho_cli.agents.docstrings import read_docstring
from lousho_cli.agents.tool import tool
from lousho_cli.errors import ConfigurationError
from lousho_cli.execution.cancel import Cancel
from lousho_cli.execution.tools import InvalidArgumentsError, Tool, ToolContext
from lousho_cli.execution.values import to_json_value

if TYPE_CHECKING:
    from uuid import UUID


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1


class Guest(BaseModel):
    """One guest."""

    name: str
    age: int = Field(default=18, ge=0)


@dataclass
class Table:
    title: str
    seats: int = 4


class Pair(NamedTuple):
    left: int
    right: int = 2


class Options(TypedDict, total=False):
    retries: int


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


def refused(made: Tool, arguments: Any) -> str:
    with pytest.raises(InvalidArgumentsError) as caught:
        made.bind(arguments)
    text = str(caught.value)
    assert "http" not in text
    assert "\n" not in text
    return text


def test_every_way_to_apply_the_decorator_makes_a_tool() -> None:
    @tool
    def bare(n: int) -> int:
        "bare"
        return n + 1

    @tool()
    async def called() -> str:
        "called"
        return "ok"

    @tool(name="other-name", description="Said here.", needs_approval=True, on_interrupt="ask", timeout=1.5)
    def options() -> str:
        "not used"
        return "ok"

    def check(n: int) -> bool:
        return n > 3

    def plain(n: int) -> int:
        return n

    direct = tool(plain, needs_approval=check)
    assert all(isinstance(t, Tool) for t in (bare, called, options, direct))
    assert (bare.name, bare.description, bare.is_async, bare.context_parameter) == (
        "bare",
        "bare",
        False,
        None,
    )
    assert (bare.needs_approval, bare.on_interrupt, bare.timeout) == (False, None, None)
    assert bare(3) == 4
    assert called.is_async
    assert (options.name, options.description) == ("other-name", "Said here.")
    assert (options.needs_approval, options.on_interrupt, options.timeout) == (True, "ask", 1.5)
    assert direct.needs_approval is check
    assert direct.description == ""
    assert direct.function is plain


def test_methods_partials_callable_objects_and_wrappers_can_be_tools() -> None:
    class Shop:
        def __init__(self) -> None:
            self.sold: list[str] = []

        def sell(self, item: str, count: int = 1) -> int:
            """Sell it."""
            self.sold += [item] * count
            return count

        async def __call__(self, item: str) -> str:
            """Ask for it."""
            return item

    class Silent:
        """Says nothing."""

        def __call__(self, n: int) -> int:
            return n

    def add(a: int, b: int, c: int = 0) -> int:
        """Add."""
        return a + b + c

    async def later(a: int, b: int) -> int:
        return a + b

    @functools.wraps(add)
    def wrapped(*args: Any, **kwargs: Any) -> int:
        return -add(*args, **kwargs)

    shop = Shop()
    sell = tool(shop.sell)
    assert (sell.name, sell.description, list(sell.parameters["properties"])) == (
        "sell",
        "Sell it.",
        ["item", "count"],
    )
    assert sell.function(**sell.bind({"item": "tea", "count": 2})) == 2
    assert shop.sold == ["tea", "tea"]
    ask = tool(shop, name="ask")
    assert (ask.description, ask.is_async, ask.parameters["required"]) == ("Ask for it.", True, ["item"])
    assert (tool(Silent(), name="s").description, tool(Silent(), name="s").is_async) == (
        "Says nothing.",
        False,
    )
    by_position = tool(functools.partial(add, 1))
    assert (by_position.name, by_position.description) == ("add", "Add.")
    assert by_position.parameters["required"] == ["b"]
    assert by_position.function(**by_position.bind({"b": 2})) == 3
    by_name = tool(functools.partial(add, b=5), name="add5")
    assert by_name.parameters["properties"]["b"] == {"default": 5, "type": "integer"}
    assert by_name.function(**by_name.bind({"a": 1, "c": 2})) == 8
    assert tool(functools.partial(later, 1)).is_async
    negative = tool(wrapped)
    assert negative.parameters["required"] == ["a", "b"]
    assert negative.function(**negative.bind({"a": 1, "b": 2})) == -3


def test_the_docstring_set_on_a_function_after_its_definition_counts() -> None:
    def body() -> None: ...

    body.__name__ = "renamed"
    body.__doc__ = "described"
    made = tool(body)
    assert (made.name, made.description) == ("renamed", "described")


def test_the_schema_comes_from_the_signature() -> None:
    @tool
    def everything(  # type: ignore[no-untyped-def]
        text: str,
        number: float,
        anything,
        maybe: Optional[int] = None,  # noqa: UP045
        either: int | str = 3,
        choice: Literal["a", "b"] = "a",
        bounded: Annotated[int, Field(ge=1, description="how many", title="Count")] = 2,
        field_default: str = Field("x", max_length=3),
        listed: list[date] = [],  # noqa: B006
        table: dict[str, int] | None = None,
        flag: bool = False,
    ) -> None: ...

    assert everything.parameters == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "number": {"type": "number"},
            "anything": {},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 3},
            "choice": {"enum": ["a", "b"], "type": "string", "default": "a"},
            "bounded": {
                "type": "integer",
                "minimum": 1,
                "description": "how many",
                "title": "Count",
                "default": 2,
            },
            "field_default": {"type": "string", "maxLength": 3, "default": "x"},
            "listed": {"type": "array", "items": {"type": "string", "format": "date"}, "default": []},
            "table": {
                "anyOf": [{"type": "object", "additionalProperties": {"type": "integer"}}, {"type": "null"}],
                "default": None,
            },
            "flag": {"type": "boolean", "default": False},
        },
        "required": ["text", "number", "anything"],
        "additionalProperties": False,
    }
    assert list(everything.parameters["properties"])[:4] == ["text", "number", "anything", "maybe"]


def test_nested_types_are_definitions_without_made_up_titles() -> None:
    @tool
    def nested(
        guest: Guest, table: Table, colour: Colour, pair: Pair, options: Options, tree: Tree
    ) -> None: ...

    definitions = nested.parameters["$defs"]
    assert definitions["Guest"] == {
        "type": "object",
        "description": "One guest.",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 18, "minimum": 0}},
        "required": ["name"],
    }
    assert definitions["Table"]["properties"]["title"] == {"type": "string"}
    assert definitions["Colour"] == {"enum": ["red", "blue"], "type": "string"}
    assert definitions["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert nested.parameters["properties"]["guest"] == {"$ref": "#/$defs/Guest"}
    assert all("title" not in definition for definition in definitions.values())
    json.dumps(nested.parameters)


def test_nested_types_arrive_as_instances() -> None:
    @tool
    def nested(
        guest: Guest,
        table: Table,
        colour: Colour,
        pair: Pair,
        options: Options,
        tree: Tree,
        day: date,
        price: Decimal,
    ) -> None: ...

    bound = nested.bind(
        {
            "guest": {"name": "Ann"},
            "table": {"title": "A"},
            "colour": "blue",
            "pair": [1],
            "options": {"retries": 3},
            "tree": {"value": 1, "children": [{"value": 2}]},
            "day": "2024-02-29",
            "price": "1.50",
        }
    )
    assert bound == {
        "guest": Guest(name="Ann", age=18),
        "table": Table("A", 4),
        "colour": Colour.BLUE,
        "pair": Pair(1, 2),
        "options": {"retries": 3},
        "tree": Tree(value=1, children=[Tree(value=2)]),
        "day": date(2024, 2, 29),
        "price": Decimal("1.50"),
    }
    assert nested.bind(to_json_value(bound)) == bound


def test_defaults_are_filled_in_and_not_shared_between_calls() -> None:
    missing = object()

    @tool
    def lazy(
        a: list[int] = [],  # noqa: B006
        b: Any = missing,
        c: Colour = Colour.RED,
        d: int = Field(default=7),
    ) -> None: ...

    first = lazy.bind({})
    assert first == {"a": [], "b": missing, "c": Colour.RED, "d": 7}
    first["a"].append(1)
    assert lazy.bind({})["a"] == []
    assert lazy.parameters["properties"]["b"] == {}


@pytest.mark.parametrize(
    "name", ["copy", "json", "schema", "model_config", "self_", "_private", "class_", "p0"]
)
def test_a_parameter_may_have_any_name(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f(other: int, {name}: int = 1): return {name}", scope)
    made = tool(scope["f"])
    assert list(made.parameters["properties"]) == ["other", name]
    assert made.function(**made.bind({"other": 0, name: 5})) == 5
    assert made.bind({"other": 0}) == {"other": 0, name: 1}


def test_building_twice_and_in_other_processes_gives_the_same_schema(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import json\n"
        "from lousho_cli.agents.tool import tool\n"
        "@tool\n"
        "def f(s: set[str] = {'a', 'b', 'c'}, t: frozenset[int | str] = frozenset({1, 'x', 'y'})): ...\n"
        "print(json.dumps(f.parameters))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
    properties = json.loads(outputs.pop())["properties"]
    assert properties["s"]["default"] == ["a", "b", "c"]
    assert sorted(map(str, properties["t"]["default"])) == ["1", "x", "y"]


def test_importing_the_decorator_does_not_import_asyncio() -> None:
    code = "import sys, lousho_cli.agents.tool; print('asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_the_context_is_passed_in_and_hidden_from_the_model() -> None:
    @tool
    def with_context(n: int, ctx: ToolContext) -> str:
        return f"{ctx.agent}{n}"

    @tool
    def optional(ctx: ToolContext | None = None) -> None: ...

    @tool
    def annotated(ctx: Annotated[Union[ToolContext, None], "note"]) -> None: ...  # noqa: UP007

    assert with_context.context_parameter == "ctx"
    assert list(with_context.parameters["properties"]) == ["n"]
    context = ToolContext("call_1", None, "bot", {}, Cancel())
    assert with_context.function(**with_context.bind({"n": 1}), ctx=context) == "bot1"
    for made in (optional, annotated):
        assert made.context_parameter == "ctx"
        assert made.parameters["properties"] == {}
        assert made.bind({}) == {}
    assert 'unknown argument "ctx"' in refused(with_context, {"n": 1, "ctx": {}})


def test_the_context_cannot_be_given_by_the_model_among_other_arguments() -> None:
    @tool
    def open_ended(ctx: ToolContext, **others: Any) -> None: ...

    assert open_ended.bind({"a": 1}) == {"a": 1}
    assert 'unknown argument "ctx"' in refused(open_ended, {"a": 1, "ctx": {}})


def test_a_context_imported_for_type_checkers_only_is_known() -> None:
    scope: dict[str, Any] = {}
    exec("def f(ctx: 'ToolContext', n: 'int'): ...", scope)
    made = tool(scope["f"])
    assert (made.context_parameter, list(made.parameters["properties"])) == ("ctx", ["n"])


def test_two_contexts_are_refused() -> None:
    def twice(a: ToolContext, b: ToolContext | None = None) -> None: ...

    with pytest.raises(ConfigurationError, match="twice takes a ToolContext twice: a and b"):
        tool(twice)


def test_annotations_from_enclosing_scopes_are_resolved() -> None:
    class Local(BaseModel):
        n: int

    class Holder:
        class Inner(BaseModel):
            m: int

        @tool
        @staticmethod
        def method(inner: Inner) -> None: ...

    def make() -> Tool:
        class Deeper(BaseModel):
            k: int

        @tool
        def deep(a: Local, b: list[Deeper], c: Optional["Deeper"] = None) -> None: ...  # noqa: UP037, UP045

        return deep

    def decorated_elsewhere(x: Local) -> Local:
        return Local(n=x.n)

    def later(function: Callable[..., Any]) -> Tool:
        return tool(function)

    made = make()
    assert made.bind({"a": {"n": 1}, "b": [{"k": 2}]})["a"] == Local(n=1)
    assert made.bind({"a": {"n": 1}, "b": [{"k": 2}]})["b"][0].k == 2
    assert Holder.method.bind({"inner": {"m": 1}})["inner"].m == 1
    assert later(decorated_elsewhere).bind({"x": {"n": 3}})["x"] == Local(n=3)


def test_a_name_that_only_a_caller_has_is_not_an_annotation() -> None:
    class Elsewhere(BaseModel): ...

    def f(x: Elsewhere) -> None: ...

    g = exec_function("def g(x: 'Elsewhere'): ...")
    assert tool(f).bind({"x": {}}) == {"x": Elsewhere()}
    with pytest.raises(ConfigurationError, match="'Elsewhere'"):
        tool(g)


def exec_function(code: str) -> Callable[..., Any]:
    scope: dict[str, Any] = {}
    exec(code, scope)
    function: Callable[..., Any] = scope["g"]
    return function


def unresolvable(key: UUID) -> None: ...


def not_a_type(key: 3) -> None: ...  # type: ignore[valid-type]


def no_json_form(n: int, key: Cancel) -> None: ...


def a_function(key: Callable[[int], int]) -> None: ...


def others(n: int, **key: Cancel) -> None: ...


@pytest.mark.parametrize(
    ("function", "annotation"),
    [
        (unresolvable, "UUID"),
        (not_a_type, "3"),
        (no_json_form, "Cancel"),
        (a_function, "Callable[[int], int]"),
        (others, "Cancel"),
    ],
)
def test_an_annotation_without_a_schema_is_named_with_its_parameter(
    function: Callable[..., Any], annotation: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        tool(function)
    assert function.__name__ in caught.value.message
    assert "'key'" in caught.value.message
    assert annotation in caught.value.message
    assert "http" not in caught.value.message
    assert caught.value.hint


def variadic(*names: str) -> None: ...


def positional(n: int, /) -> None: ...


class Unbound:
    def method(self, n: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (variadic, r"variadic takes \*names"),
        (positional, "takes n by position only"),
        (Unbound.method, "method without its object"),
        (Unbound, "not a function"),
        (3, "3 is not a function"),
        (lambda n: n, "'<lambda>' is not a name for a tool"),
        (functools.partial(functools.partial(lambda: 0)), "'<lambda>' is not a name"),
        (type("Callable", (), {"__call__": lambda self, n: n})(), "has no name"),
        (tool(exec_function("def g(): ...")), "g is a tool already"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_a_reason(function: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        tool(function)
    assert caught.value.hint


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ü", "x" * 65, "a\n", 3])
def test_a_name_providers_refuse_is_refused(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="not a name for a tool"):
        tool(exec_function("def g(): ..."), name=name)


def test_the_longest_name_is_kept() -> None:
    assert tool(exec_function("def g(): ..."), name="aZ_9-" + "x" * 59).name == "aZ_9-" + "x" * 59


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "timeout is 0"),
        ({"timeout": -1.5}, "timeout is -1.5"),
        ({"timeout": True}, "timeout is True"),
        ({"timeout": "5"}, "timeout is '5'"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"timeout": float("inf")}, "timeout is inf"),
        ({"on_interrupt": "retry"}, "on_interrupt is 'retry'"),
        ({"on_interrupt": ["ask"]}, "on_interrupt is"),
        ({"needs_approval": None}, "needs_approval is None"),
        ({"needs_approval": "yes"}, "needs_approval is 'yes'"),
    ],
)
def test_a_wrong_option_is_refused_with_what_to_give_instead(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        tool(**options)(exec_function("def g(): ..."))
    assert "tool g" in caught.value.message
    assert caught.value.hint


@tool
def trip(
    city: str,
    days: int = 2,
    guests: list[Guest] = [],  # noqa: B006
    rate: float | None = None,
    colour: Colour = Colour.RED,
    size: Size = Size.SMALL,
    either: int | Guest = 0,
    one: Literal[1] = 1,
    flags: dict[str, int] | list[bool] = {},  # noqa: B006
    pair: tuple[int, str] = (1, "x"),
) -> None: ...


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "city: required, but missing"),
        ({"city": 1}, "city: expected a valid string, got 1"),
        ({"city": None}, "city: expected a valid string, got null"),
        ({"days": "x"}, 'days: expected a valid integer, unable to parse string as an integer, got "x"'),
        ({"days": 1.5}, "days: expected a valid integer, got 1.5"),
        ({"days": True}, "days: expected a number, got true"),
        ({"rate": False}, "rate: expected a number, got false"),
        ({"size": True}, "size: expected a number, got true"),
        ({"one": True}, "one: expected a number, got true"),
        ({"colour": "green"}, "colour: expected 'red' or 'blue', got \"green\""),
        ({"guests": [{"age": -1}]}, "guests[0].name: required, but missing; guests[0].age: expected "),
        ({"guests": [{"name": "a", "age": True}]}, "guests[0].age: expected a number, got true"),
        ({"guests": "Ann"}, 'guests: expected a valid list, got "Ann"'),
        ({"guests": [3]}, "guests[0]: expected an object, got 3"),
        ({"either": True}, "either: expected a number, got true"),
        ({"either": "x"}, "unable to parse string as an integer or expected an object, got "),
        ({"either": {"name": "a", "age": True}}, "either.age: expected a number, got true"),
        ({"flags": {"a": True}}, "flags.a: expected a number, got true"),
        ({"pair": [True, "x"]}, "pair[0]: expected a number, got true"),
        ({"cty": "x"}, 'unknown argument "cty", did you mean "city"?'),
        ({"zzz": 1}, 'unknown argument "zzz" (known: city, days, '),
    ],
)
def test_what_does_not_fit_is_named_with_what_was_expected_and_what_came(
    arguments: dict[str, Any], message: str
) -> None:
    text = refused(trip, arguments if not arguments else {"city": "Rome", **arguments})
    assert text.startswith("invalid arguments for trip: ")
    assert message in text


def test_all_problems_are_told_at_once_but_not_too_many_and_not_at_length() -> None:
    text = refused(trip, {"days": "x" * 10_000, "rate": [], "zzz": 1})
    assert [part in text for part in ("city: ", "days: ", "rate: ", '"zzz"')] == [True] * 4
    assert len(text) < 600
    many = refused(trip, {"city": "x", "guests": [1] * 1000})
    assert many.endswith("; and 990 more")


@pytest.mark.parametrize("arguments", [None, [], [("city", "x")], "city", 3])
def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    assert "must be a JSON object" in refused(trip, arguments)


def test_values_written_as_text_are_read_as_pydantic_does() -> None:
    bound = trip.bind({"city": "Rome", "days": "4", "rate": "1.5", "guests": [{"name": "A", "age": 3.0}]})
    assert (bound["days"], bound["rate"], bound["guests"]) == (4, 1.5, [Guest(name="A", age=3)])


@pytest.mark.parametrize("number", [2**53 + 1, 2**70, -(2**70)])
def test_integers_stay_exact(number: int) -> None:
    assert trip.bind({"city": "x", "days": number})["days"] == number
    assert trip.bind({"city": "x", "flags": {"n": number}})["flags"] == {"n": number}


def test_booleans_are_fine_where_a_boolean_is_allowed() -> None:
    @tool
    def free(
        a: bool,
        b: bool | int = False,
        c: Any = None,
        d: dict[str, Any] | None = None,
        e: list[int] | list[bool] | None = None,
    ) -> None: ...

    arguments = {"a": True, "b": True, "c": {"x": True}, "d": {"y": [True]}, "e": [True, False]}
    bound = free.bind(arguments)
    assert bound == arguments
    assert bound["b"] is True


def test_other_arguments_are_taken_only_by_a_function_that_takes_them() -> None:
    @tool
    def untyped(n: int, **others: Any) -> None: ...

    @tool
    def typed(n: int, **others: int) -> None: ...

    assert untyped.parameters["additionalProperties"] is True
    assert untyped.bind({"n": 1, "x": [2], "p0": "y"}) == {"n": 1, "x": [2], "p0": "y"}
    assert typed.parameters["additionalProperties"] == {"type": "integer"}
    assert typed.bind({"n": 1, "x": "2"}) == {"n": 1, "x": 2}
    assert "x: expected a valid integer" in refused(typed, {"n": 1, "x": "y"})
    assert "x: expected a number, got true" in refused(typed, {"n": 1, "x": True})


def test_a_validator_that_breaks_makes_the_arguments_invalid() -> None:
    def explode(value: Any) -> Any:
        raise ZeroDivisionError("boom")

    def complain(value: Any) -> Any:
        raise ValueError("not on Mondays")

    @tool
    def breaks(n: Annotated[int, BeforeValidator(explode)]) -> None: ...

    @tool
    def complains(n: Annotated[int, BeforeValidator(complain)]) -> None: ...

    assert refused(breaks, {"n": 1}) == "the arguments of breaks cannot be checked: boom"
    assert refused(complains, {"n": 1}) == "invalid arguments for complains: n: not on Mondays, got 1"


def test_arguments_nested_as_deep_as_json_goes_are_valid_or_refused() -> None:
    @tool
    def grow(tree: Tree | None = None, free: Any = None) -> None: ...

    tree: dict[str, Any] = {"value": 1}
    free: list[Any] = []
    for _ in range(3000):
        tree = {"value": 1, "children": [tree]}
        free = [free]
    assert grow.bind({"free": free})["free"] is not None
    assert refused(grow, {"tree": tree})


def google(ctx: ToolContext, city: str, days: int = 1, **others: Any) -> None:
    """Plan a trip.

    Takes the weather into account: always.

    Args:
        ctx: never shown.
        city (str): the city,
            with its country: always

            in English.
        days: how many days.
        **others: wishes.

    Returns:
        The plan.
    """


def numpy_style(city: str, days: int = 1) -> None:
    """Plan a trip.

    Takes the weather into account: always.

    Parameters
    ----------
    city : str
        the city,
        with its country: always
        in English.
    days, nights : int, optional
        how many days.

    Returns
    -------
    city : str
        The plan.
    """


def rest(city: str, days: int = 1) -> None:
    """Plan a trip.

    Takes the weather into account: always.

    :param str city: the city,
        with its country: always
        in English.
    :param days: how many days.
    :type days: int
    :returns: The plan.

    The end.
    """


@pytest.mark.parametrize("function", [google, numpy_style, rest])
def test_descriptions_come_from_each_style_of_docstring(function: Callable[..., Any]) -> None:
    made = tool(function)
    assert made.description == "Plan a trip.\n\nTakes the weather into account: always."
    properties = made.parameters["properties"]
    assert properties["city"]["description"] == "the city, with its country: always in English."
    assert properties["days"]["description"] == "how many days."
    assert list(properties) == ["city", "days"]


def test_a_description_in_the_annotation_wins_over_the_docstring() -> None:
    @tool
    def f(a: Annotated[int, Field(description="here")], b: Guest) -> None:
        """F.

        Args:
            a: there
            b: the guest
        """

    properties = f.parameters["properties"]
    assert properties["a"]["description"] == "here"
    assert properties["b"] == {"$ref": "#/$defs/Guest", "description": "the guest"}


@pytest.mark.parametrize(
    ("docstring", "description", "parameters"),
    [
        (None, "", {}),
        ("", "", {}),
        ("One line.", "One line.", {}),
        ("Do it: now.\n\nNo section: here.", "Do it: now.\n\nNo section: here.", {}),
        ("Do.\n\nExample::\n\n    code: x", "Do.\n\nExample::\n\n    code: x", {}),
        ("Do.\n\nRaises:\n    x: never\n\nArgs:\n    a: the a", "Do.", {"a": "the a"}),
        ("Args:\n    a:\n        the a\n    b: \n\nThe: end", "", {"a": "the a"}),
        (
            "Do.\n\n:class:`X` is used.\n\n:arg a: the a\n:keyword b: the b",
            None,
            {"a": "the a", "b": "the b"},
        ),
        ("Do.\n\nNotes\n-----\na : b\n\nOther Parameters\n----------\nc\n    the c", "Do.", {"c": "the c"}),
    ],
)
def test_docstrings_of_no_or_odd_style_are_read_with_care(
    docstring: str | None, description: str | None, parameters: dict[str, str]
) -> None:
    documentation = read_docstring(docstring)
    assert documentation.parameters == parameters
    if description is not None:
        assert documentation.description == description
    else:
        assert documentation.description == "Do.\n\n:class:`X` is used."
