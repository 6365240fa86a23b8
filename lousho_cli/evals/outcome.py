"""What came of playing a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..execution.messages import JsonObject
from ..execution.steps import Step, StepCall, Trajectory


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that is not as it was expected.

    Attributes:
        check: what was expected, by its key in the eval file; `run` where the case could not be played.
        message: what was expected and what was seen, in words.
    """

    check: str
    message: str

    def to_json(self) -> dict[str, str]:
        return {"check": self.check, "message": self.message}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One play of a case.

    Attributes:
        steps: every model turn of the conversation.
        endings: why each turn's run ended: a finish reason.
        reply: the last reply.
        tokens: used in all.
        cost_usd: in all; None if it is not known.
        problem: why the case could not be played to its end; None if it was.
        fingerprint: of the agent that played it.
    """

    steps: Sequence[Step] = ()
    endings: tuple[str, ...] = ()
    reply: str = ""
    tokens: int = 0
    cost_usd: float | None = None
    problem: Failure | None = None
    fingerprint: JsonObject | None = None

    @property
    def calls(self) -> list[StepCall]:
        return [call for step in self.steps for call in step.tools]

    def trajectory(self, *, usage: bool = False) -> Trajectory:
        """As it is compared; with `usage` its tokens count too."""
        ended = self.endings[-1] if self.endings else None
        return Trajectory(self.steps, ended, self.tokens if usage else None)
