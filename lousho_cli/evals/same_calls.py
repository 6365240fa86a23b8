"""When two tool calls are the same: volatile texts replaced, each argument by its rule. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..execution.redaction import mapped
from ..execution.steps import StepCall
from ..providers.cassette_volatile import Volatile
from ..render.fields import canonical
from .drift_rules import EQUAL, Rule, Strictness


class SameMeaning(Protocol):
    """Says whether two values mean the same."""

    def __call__(self, one: Any, other: Any) -> bool: ...


def never(one: Any, other: Any) -> bool:
    """Without a judge, values that are not equal are not the same."""
    return False


@dataclass(frozen=True, slots=True)
class PlainCall:
    """A call as it is compared.

    Attributes:
        step: the number of its step, from 1.
        call: as it was made.
        args: its arguments without what does not count. Arguments that are no object have the name "".
        key: equal for calls that are equal.
    """

    step: int
    call: StepCall
    args: Mapping[str, Any]
    key: str

    @property
    def name(self) -> str:
        return self.call.name


class Sameness:
    """Compares calls.

    Args:
        rules: how strictly.
        volatile: replaces what changes from run to run.
        same_meaning: asked about arguments whose rule is `judged`.
    """

    def __init__(self, rules: Strictness, volatile: Volatile, same_meaning: SameMeaning = never) -> None:
        self.rules = rules
        self._volatile = volatile
        self._same_meaning = same_meaning

    def plain(self, step: int, call: StepCall) -> PlainCall:
        """A call as it is compared."""
        given = call.args if isinstance(call.args, dict) else {"": call.args}
        rule = self.rules.rule(call.name)
        args = (
            {}
            if rule.kind == "ignore"
            else _without_noise(self._fields(rule), mapped(given, self._volatile.text))
        )
        return PlainCall(step, call, args, f"{call.name} {canonical(args)}")

    def similarity(self, a: PlainCall, b: PlainCall) -> float:
        """0 for calls of different tools, else 0.5 to 1 by the share of arguments that are the same.

        The share is taken of the arguments that at least one of the two has.
        """
        if a.name != b.name:
            return 0.0
        if a.key == b.key:
            return 1.0
        names = a.args.keys() | b.args.keys()
        rules = self._fields(self.rules.rule(a.name)).fields
        same = sum(
            name in a.args
            and name in b.args
            and self._same(rules.get(name, EQUAL), a.args[name], b.args[name])
            for name in names
        )
        return 0.5 + 0.5 * same / len(names)

    def _fields(self, rule: Rule) -> Rule:
        return rule if rule.kind == "fields" else Rule("fields")

    def _same(self, rule: Rule, a: Any, b: Any) -> bool:
        if canonical(a) == canonical(b):
            return True
        if rule.kind == "within" and _is_number(a) and _is_number(b):
            return bool(abs(a - b) <= rule.tolerance)
        if rule.kind == "judged":
            return self._same_meaning(a, b)
        if rule.kind == "fields" and isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
            return all(self._same(rule.fields.get(key, EQUAL), a[key], b[key]) for key in a)
        return False


def _without_noise(rule: Rule, value: Any) -> Any:
    """A value in a form that is equal for values that are the same, as far as there is one."""
    if rule.kind == "fields" and isinstance(value, dict):
        rules = rule.fields
        kept = {key: each for key, each in value.items() if rules.get(key, EQUAL).kind != "ignore"}
        return {key: _without_noise(rules.get(key, EQUAL), each) for key, each in kept.items()}
    if rule.kind == "set" and isinstance(value, list):
        return sorted(value, key=canonical)
    if rule.kind == "text":
        return _as_text(value)
    return value


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_text(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    text = value if isinstance(value, str) else canonical(value)
    return "".join(text.casefold().split())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
