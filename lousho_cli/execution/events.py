"""What a run tells while it runs: one event for each thing that happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .messages import JsonObject

EventType = Literal[
    "run.start", "step.start", "text.delta", "reasoning.delta", "call.delta", "model.retry", "model.failed",
    "tool.start", "tool.done", "tool.error", "approval.requested", "agent.drift", "output.invalid",
    "budget.unpriced", "budget.exceeded", "content.redacted", "checkpoint.saved", "step.done", "run.done",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run. `data` has camelCase keys and JSON values, by type:

    run.start           agent, model, resumed
    step.start          step, model
    text.delta, reasoning.delta     step, text (a piece of it)
    call.delta          step, index (of the call in its turn), name, arguments (pieces of its text, or empty)
    model.retry         step, attempt, model, error (code, message, status?), wait (seconds until the next
                        attempt), next? (another model, which is asked then), discard?
    model.failed        step, attempt, model, error, discard?: there is no next attempt
    tool.start          step, toolName, toolCallId, args (JSON text: what runs)
    tool.done           step, toolName, toolCallId, result (JSON text), seconds
    tool.error          step, toolName, toolCallId, result (JSON text), kind, error, seconds
    approval.requested  step, approval (id, toolName, toolCallId, args, kind)
    agent.drift         changes (a list of texts)
    output.invalid      step, error, again: the answer does not have its shape; whether it is asked for again
    budget.unpriced     step: the costs of some requests are not known, so a limit of costs misses them
    budget.exceeded     step, budget, used (tokens, seconds, steps, costUsd or knownCostUsd), exceeded (texts)
    content.redacted    step, count: so many secrets were taken out of what the next save holds
    checkpoint.saved    seq, status, step
    step.done           step, usage (of the step's model turn)
    run.done            finishReason, steps, usage (of the run), approvalId?

    Deltas come while the model writes, if it can be streamed; else the texts come once, when the turn is
    saved. A turn is whole with the `checkpoint.saved` behind its deltas. `discard` is true where deltas of
    the step were told that are void: the turn they belonged to was cut.

    `path` names the sub-agents, outermost first, that the event comes from; it is empty for the agent itself.
    """

    type: EventType
    session_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    path: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """The event as one flat JSON object: `type`, `sessionId`, its data, and `path` if it has one."""
        path = {"path": list(self.path)} if self.path else {}
        return {"type": self.type, "sessionId": self.session_id, **path, **self.data}


Observer = Callable[[Event], Awaitable[None] | None]
