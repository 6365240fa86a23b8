"""Writing a case as an eval file, for people to read and to change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..execution.unset import UNSET
from .cases import Decision, Turn
from .session_case import SessionCase

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_NOT_PLAIN = re.compile("[\x7f-\x9f\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


class NotInTomlError(ValueError):
    """A value has no form in TOML: null."""


def eval_file(case: SessionCase, label: str) -> str:
    """The text of an eval file with this one case.

    Raises:
        NotInTomlError: a message cannot be written.
    """
    lines = [f"# Made of session {toml(case.session_id)} of agent {toml(case.agent)}.", "", "[[cases]]"]
    lines += [f"label = {toml(label)}", '# "live" lets the tools run.', 'tools = "recorded"', "input = ["]
    lines += [f"  {toml(_turn(turn))}," for turn in case.turns]
    lines += ["]"]
    if case.business_state is not UNSET and case.business_state is not None:
        lines.append(_business_state(case.business_state))
    if case.decisions:
        lines.append("")
        lines += _decisions(case.decisions)
    lines += ["", "[cases.expect]"]
    if case.is_completed:
        lines.append("completed = true")
    called = [call.name for step in case.steps for call in step.tools]
    lines.append(f"order = {toml(called)}" if called else f"max_steps = {len(case.steps)}")
    return "\n".join(lines) + "\n"


def toml(value: Any) -> str:
    """A JSON value as an inline TOML value.

    Raises:
        NotInTomlError: it holds null.
    """
    if value is None:
        raise NotInTomlError("null has no form in TOML")
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return _NOT_PLAIN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(str(key))} = {toml(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else toml(key)


def _business_state(value: Any) -> str:
    try:
        return f"business_state = {toml(value)}"
    except NotInTomlError:
        return "# The business state is left out: it holds null, which TOML does not know."


def _turn(turn: Turn) -> Any:
    if turn.text and turn.max_steps is None:
        return turn.text
    said: dict[str, Any] = {"text": turn.text} if turn.text else {"messages": list(turn.messages)}
    return said if turn.max_steps is None else {**said, "max_steps": turn.max_steps}


def _decisions(decisions: Mapping[str, Any]) -> list[str]:
    lines = ["[cases.decisions]"]
    for tool, each in decisions.items():
        written = [_decision(decision) for decision in each]
        lines.append(f"{_key(tool)} = {toml(written[0] if len(written) == 1 else written)}")
    return lines


def _decision(decision: Decision) -> Any:
    if not decision.approve:
        return "reject" if decision.note is None else {"reject": decision.note}
    if decision.arguments is None:
        return "approve"
    try:
        toml(decision.arguments)
    except NotInTomlError:
        return {"edit": json.dumps(decision.arguments, ensure_ascii=False)}
    return {"edit": decision.arguments}
