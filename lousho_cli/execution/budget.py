"""What a run may use up, and what is said when it has."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from .messages import JsonObject

if TYPE_CHECKING:
    from .state import State

_JSON_KEYS = (
    ("max_tokens", "maxTokens"), ("max_cost_usd", "maxCostUsd"), ("max_seconds", "maxSeconds"),
    ("max_steps", "maxSteps"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may use up in all, resumes and sub-agents included. What is None is not limited.

    It is looked at before each model call and before tools run, so the last answer may exceed it. A run that
    has used it up returns with finish reason `budget-exceeded` and stays unfinished: a resume with a larger
    budget goes on.

    Attributes:
        max_tokens: tokens read and written.
        max_cost_usd: US dollars, as far as the costs are known.
        max_seconds: seconds it is running, not those it waits for humans.
        max_steps: model turns of the agent itself.

    Raises:
        ConfigurationError: a value is impossible.
    """

    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_seconds: float | None = None
    max_steps: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kind = int if field.name in ("max_tokens", "max_steps") else int | float
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, kind) or not 0 < value < math.inf:
                whole = "a whole number" if kind is int else "a number"
                raise ConfigurationError(f"budget: {field.name} is {value!r}", hint=f"use {whole} above 0")

    @classmethod
    def of(cls, value: Budget | Mapping[str, Any] | None) -> Budget:
        """The budget that `value` is; one without limits for None.

        Raises:
            ConfigurationError: a key is unknown or a value impossible.
        """
        if isinstance(value, Budget):
            return value
        given = dict(value or {})
        known = [field.name for field in fields(cls)]
        unknown = sorted(given.keys() - set(known))
        if unknown:
            raise ConfigurationError(
                f"budget: unknown key {unknown[0]!r}", hint=f"known keys: {', '.join(known)}"
            )
        return cls(**given)

    def with_limits(self, over: Budget) -> Budget:
        """This budget with the limits that `over` sets."""
        return Budget(
            *(
                mine if (theirs := getattr(over, field.name)) is None else theirs
                for field in fields(self)
                for mine in (getattr(self, field.name),)
            )
        )

    def to_json(self) -> JsonObject:
        values = ((key, getattr(self, name)) for name, key in _JSON_KEYS)
        return {key: value for key, value in values if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Budget:
        return cls(**{name: data.get(key) for name, key in _JSON_KEYS})


UNLIMITED = Budget()


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used up.

    Attributes:
        cost_usd: what is known of its costs.
        is_priced: whether that is all of them.
    """

    tokens: int = 0
    cost_usd: float = 0.0
    is_priced: bool = True
    seconds: float = 0.0
    steps: int = 0

    @classmethod
    def of(cls, state: State, seconds: float) -> Spent:
        """What the run of a session, and the sub-agents on their way in it, have used up."""
        usage = state.usage
        spent = cls(
            usage.get("totalTokens") or 0,
            usage.get("costUsd", usage.get("knownCostUsd", 0.0)),
            "costUsd" in usage or not usage.get("modelCalls"),
            seconds,
            state.step,
        )
        for sub in state.subs.values():
            inner = cls.of(sub, 0.0)
            spent = cls(
                spent.tokens + inner.tokens,
                spent.cost_usd + inner.cost_usd,
                spent.is_priced and inner.is_priced,
                spent.seconds,
                spent.steps,
            )
        return spent

    def to_json(self) -> JsonObject:
        data: JsonObject = {"tokens": self.tokens, "seconds": round(self.seconds, 3), "steps": self.steps}
        data["costUsd" if self.is_priced else "knownCostUsd"] = self.cost_usd
        return data


class BudgetExceededError(Exception):
    """Ends a run that has used up its budget; it can be resumed.

    Attributes:
        about: what was used of what.
    """

    def __init__(self, budget: Budget, spent: Spent, exceeded: list[str]) -> None:
        super().__init__("; ".join(exceeded))
        self.about: JsonObject = {
            "budget": budget.to_json(), "used": spent.to_json(), "exceeded": exceeded,
        }  # fmt: skip


class BudgetWatch:
    """Watches what one run, with its sub-agents, uses up of its budget.

    Args:
        budget: its limits.
        state_of: the session of the agent itself, as of now.

    Attributes:
        is_limited: whether there is any limit.
    """

    def __init__(self, budget: Budget, state_of: Callable[[], State]) -> None:
        self.is_limited = budget != UNLIMITED
        self._budget = budget
        self._state_of = state_of
        self._seconds_before = state_of().seconds
        self._since = time.monotonic()
        self._told_unpriced = False

    @property
    def seconds(self) -> float | None:
        """Seconds the run has been running, for its next save; None where nobody limits them."""
        if self._budget.max_seconds is None:
            return None
        return self._seconds_before + time.monotonic() - self._since

    def check(self) -> None:
        """Go on only within the budget.

        Raises:
            BudgetExceededError: it is used up.
        """
        spent = Spent.of(self._state_of(), self.seconds or 0.0)
        exceeded = _exceeded(self._budget, spent)
        if exceeded:
            raise BudgetExceededError(self._budget, spent, exceeded)

    def newly_unpriced(self) -> bool:
        """Whether a limit of costs turns out to miss some of them; true once."""
        if self._budget.max_cost_usd is None or self._told_unpriced:
            return False
        self._told_unpriced = not Spent.of(self._state_of(), 0.0).is_priced
        return self._told_unpriced


def _exceeded(budget: Budget, spent: Spent) -> list[str]:
    """Each limit that is reached, as `1,200 of 1,000 tokens`."""
    found = []
    if budget.max_tokens is not None and spent.tokens >= budget.max_tokens:
        found.append(f"{spent.tokens:,} of {budget.max_tokens:,} tokens")
    if budget.max_cost_usd is not None and spent.cost_usd >= budget.max_cost_usd:
        found.append(f"${spent.cost_usd:.4f} of ${budget.max_cost_usd:.4f}")
    if budget.max_seconds is not None and spent.seconds >= budget.max_seconds:
        found.append(f"{spent.seconds:.1f} of {budget.max_seconds:g} seconds")
    if budget.max_steps is not None and spent.steps >= budget.max_steps:
        found.append(f"{spent.steps} of {budget.max_steps} steps")
    return found
