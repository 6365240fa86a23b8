"""An eval as data: cases, what is said in each, and what is expected of the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ..execution.steps import parsed
from ..execution.unset import UNSET
from .drift_rules import DriftTable
from .part import Amount, Count, Part, Text, Texts, listed

ToolAnswers = Literal["live", "recorded", "stub"]


class Turn(Part):
    """What is said in one turn.

    Attributes:
        text: a text, and
        files: files beside it, by path from the eval file's folder; or
        messages: messages as they stand in a transcript.
        max_steps: model turns until the next thing is said; None for the agent's own limit.
    """

    text: str = ""
    files: Texts = ()
    messages: tuple[dict[str, Any], ...] = ()
    max_steps: Annotated[Count, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Turn:
        if bool(self.text or self.files) == bool(self.messages):
            raise ValueError("it takes a text, or files, or both; or messages")
        return self


class Decision(Part):
    """What is decided about each call of a tool that waits for a human.

    Attributes:
        approve: whether it may run.
        arguments: run it with these instead.
        note: for the model, on a rejection.
    """

    approve: bool
    arguments: dict[str, Any] | None = None
    note: str | None = None


def _turn(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


def _decision(value: object) -> object:
    if value in ("approve", "reject"):
        return {"approve": value == "approve"}
    if isinstance(value, Mapping) and len(value) == 1:
        edit = parsed(value.get("edit"))
        if isinstance(edit, Mapping):
            return {"approve": True, "arguments": edit}
        if isinstance(value.get("reject"), str):
            return {"approve": False, "note": value["reject"]}
    raise ValueError(
        'it takes "approve", "reject", { edit = { ... } } or { reject = "why" }, or a list of them'
    )


def _decided(value: object) -> object:
    """One decision for every call of a tool, or a list of one for each."""
    return [_decision(each) for each in value] if isinstance(value, list) else _decision(value)


class Stub(Part):
    """The answer of a tool that is not run.

    Attributes:
        tool: its name.
        args: the arguments it answers, as far as they are given; empty for any.
        result: what it returns, or
        error: what it fails with.
    """

    tool: Text
    args: dict[str, Any] = Field(default_factory=dict)
    result: Any = None
    error: Text | None = None


class ExpectedCall(Part):
    """A call the run must make.

    Attributes:
        tool: the tool's name.
        args: what the arguments must hold; they may hold more, at every depth.
        times: how often exactly; None for at least once.
    """

    tool: Text
    args: dict[str, Any] = Field(default_factory=dict)
    times: Count | None = None


class ExpectedReply(Part):
    """What the last reply must say: every one of some texts, a regular expression, or exactly a text."""

    includes: Texts = ()
    matches: str | None = None
    equals: str | None = None

    @field_validator("matches")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise ValueError(f"it takes a regular expression: {error}") from error
        return pattern


class Checks(Part):
    """What a run is held against. What is None or empty is not checked.

    Attributes:
        completed: every turn ended with an answer of the model.
        called: calls that must be made.
        not_called: tools that must not be called.
        order: tools that must be called in this order; other calls may lie between.
        max_steps: model turns of the whole case.
        max_tokens: of the whole case.
        max_cost_usd: likewise; a cost that is not known does not pass.
        reply: what the last reply must say.
        output: values in the last reply read as JSON, by dotted path.
    """

    completed: bool | None = None
    called: tuple[ExpectedCall, ...] = ()
    not_called: Texts = ()
    order: Texts = ()
    max_steps: Count | None = None
    max_tokens: Count | None = None
    max_cost_usd: Amount | None = None
    reply: ExpectedReply | None = None
    output: dict[str, Any] = Field(default_factory=dict)


class SoftChecks(Checks):
    """Checks that are told of but do not fail a case, unless too few of them hold.

    Attributes:
        threshold: the share of them, 0 to 1, that must hold.
    """

    threshold: Annotated[Amount, Field(le=1)] = 0.0


class Rubric(Part):
    """What a model judges a run by. Told of like a soft check.

    Attributes:
        rubric: what a good run is, in words.
        threshold: the score, 0 to 1, that is enough.
    """

    rubric: Text
    threshold: Annotated[Amount, Field(le=1)] = 0.7


class Expectations(Checks):
    """The gates of a case, its soft checks, and what a model judges it by."""

    soft: SoftChecks | None = None
    judge: tuple[Rubric, ...] = ()


Input: TypeAlias = tuple[Annotated[Turn, BeforeValidator(_turn)], ...]
Decisions: TypeAlias = dict[str, Annotated[Decision | tuple[Decision, ...], BeforeValidator(_decided)]]


class Case(Part):
    """One conversation and what is expected of it.

    Attributes:
        label: names it within its eval.
        input: what is said, turn by turn.
        business_state: the value the tools share; UNSET for none.
        decisions: what is decided about calls that wait for a human, by tool: about all, or about each.
        tools: where tools' answers come from; None leaves it to how the eval is run.
        stubs: the answers where `tools` is `stub`.
        expect: what is expected.
        drift: what makes a run another one, over what the eval says.
    """

    read_before = ("dataset",)

    label: Text
    input: Annotated[Input, BeforeValidator(listed), Field(min_length=1)]
    business_state: Any = UNSET
    decisions: Decisions = Field(default_factory=dict)
    tools: ToolAnswers | None = None
    stubs: tuple[Stub, ...] = ()
    expect: Expectations = Field(default_factory=Expectations)
    drift: DriftTable = Field(default_factory=DriftTable)

    @model_validator(mode="after")
    def _stubs_are_used(self) -> Case:
        if self.stubs and self.tools != "stub":
            raise PydanticCustomError("stubs", "stubs without tools", {"hint": 'add tools = "stub"'})
        return self


class Eval(Part):
    """The cases of an eval file, and what makes a run of one of them another one."""

    name: Text
    tags: Texts = ()
    drift: DriftTable = Field(default_factory=DriftTable)
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]
