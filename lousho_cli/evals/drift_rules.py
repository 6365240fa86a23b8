"""What makes a run another one: how strictly the order of calls and each argument are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from .part import Part, Text, Texts

CallOrder = Literal["strict", "step", "any"]
RuleKind = Literal["equal", "ignore", "text", "set", "judged", "within", "fields"]
EVERY_TOOL = "*"

_WORDS = ("equal", "ignore", "text", "set", "judged")
_EXPECTED = (
    f"it takes {', '.join(repr(word) for word in _WORDS)}, {{ within = NUMBER }}, or a rule for each field"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """How two values of an argument are compared.

    Attributes:
        kind: `equal` by value; `ignore` not at all; `text` as texts without case and space; `set` lists in
            any order; `judged` by a model, where they are not equal; `within` as numbers; `fields` each by
            its own.
        tolerance: the largest difference of numbers that are the same.
        fields: rules of an object's fields; those without a rule must be equal.
    """

    kind: RuleKind = "equal"
    tolerance: float = 0.0
    fields: Mapping[str, Rule] = field(default_factory=dict)


EQUAL = Rule()
IGNORED = Rule("ignore")


def _rule(value: object) -> Rule:
    if isinstance(value, Rule):
        return value
    if isinstance(value, str) and value in _WORDS:
        return Rule(value)  # type: ignore[arg-type]
    if isinstance(value, Mapping) and value:
        if list(value) == ["within"] and _is_amount(value["within"]):
            return Rule("within", float(value["within"]))
        return Rule("fields", fields={str(key): _rule(each) for key, each in value.items()})
    raise ValueError(_EXPECTED)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _tool_rule(value: object) -> Rule:
    rule = _rule(value)
    if rule.kind not in ("ignore", "equal", "fields"):
        raise ValueError('it takes "ignore", "equal", or a rule for each argument')
    return rule


ToolRule: TypeAlias = Annotated[Rule, BeforeValidator(_tool_rule)]


class DriftTable(Part):
    """A table `drift` of an eval or of a case.

    Attributes:
        order: whether calls come in the same order (`strict`), in any within a step, or in any at all.
        ignore: tools whose calls do not count.
        args: by tool, `*` for every tool: `ignore` for all its arguments, or a rule for each.
    """

    order: CallOrder | None = None
    ignore: Texts = ()
    args: dict[Text, ToolRule] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Strictness:
    """How runs of a case are compared.

    Attributes:
        order: of calls.
        ignored: tools whose calls do not count.
        tools: how the arguments of a tool are compared; `*` for tools that are not named.
    """

    order: CallOrder = "strict"
    ignored: frozenset[str] = frozenset()
    tools: Mapping[str, Rule] = field(default_factory=dict)

    def rule(self, tool: str) -> Rule:
        """How the arguments of a tool are compared, as a whole."""
        return self.tools.get(tool) or self.tools.get(EVERY_TOOL) or EQUAL

    def described(self) -> list[tuple[str, str]]:
        """The rules in words, for reports: what, and how it is compared."""
        found: list[tuple[str, str]] = [("order of calls", self.order)] if self.order != "strict" else []
        found += [(tool, "ignored") for tool in sorted(self.ignored)]
        for tool, rule in sorted(self.tools.items()):
            found += _described(tool, rule)
        return found


def strictness(eval_table: DriftTable, case_table: DriftTable) -> Strictness:
    """How runs of a case are compared: as its eval says, and over that as the case says."""
    tools = dict(eval_table.args)
    for tool, rule in case_table.args.items():
        before = tools.get(tool, EQUAL)
        if rule.kind == before.kind == "fields":
            rule = Rule("fields", fields={**before.fields, **rule.fields})
        tools[tool] = rule
    return Strictness(
        case_table.order or eval_table.order or "strict",
        frozenset((*eval_table.ignore, *case_table.ignore)),
        tools,
    )


def _described(path: str, rule: Rule) -> list[tuple[str, str]]:
    if rule.kind == "fields":
        return [each for key, inner in rule.fields.items() for each in _described(f"{path}.{key}", inner)]
    if rule.kind == "within":
        return [(path, f"within {rule.tolerance:g}")]
    return [(path, "ignored" if rule.kind == "ignore" else rule.kind)]
