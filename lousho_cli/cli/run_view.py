"""What a run prints: progress on stderr, the reply or its JSON on stdout."""

from __future__ import annotations

import json
import sys
from types import TracebackType
from typing import Any, TextIO

from ..execution.messages import JsonObject, calls_of
from ..execution.records import ExecutionResult, PendingApproval
from ..execution.state import State
from ..render.approvals import show_approval_panel
from ..render.console import surface_for
from ..render.events import WARNINGS, warnings_of
from ..render.live import LiveRun
from ..render.text import escape, escape_json
from .globals import Globals
from .output import notice, write_out
from .run_options import RunFlags

STATUS = {
    "awaiting-approval": "awaiting-approval",
    "aborted": "in-progress",
    "budget-exceeded": "in-progress",
}
_PRINTED = {"finish_reason", "text", "output", "steps", "usage", "tool_calls", "approval_id", "approval"}


class RunOutput:
    """Shows one run. A context manager, so that the terminal is left clean however the run ends.

    Args:
        stdout: the process's standard output, which tools cannot reach.
    """

    def __init__(self, options: Globals, flags: RunFlags, stdout: TextIO) -> None:
        self._options = options
        self._events = flags.events
        self._stdout = stdout
        self._stderr = surface_for(sys.stderr, no_color=options.no_color)
        self._live = LiveRun(self._stderr, quiet=options.quiet or options.json or flags.events)

    def __enter__(self) -> RunOutput:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def observe(self, event: Any) -> None:
        """Show one event as it happens."""
        if self._events:
            write_out(self._stdout, escape_json(json.dumps(event.to_json(), allow_nan=False)) + "\n")
        elif event.type in WARNINGS and (self._options.quiet or self._options.json):
            for warning in warnings_of(event.type, event.data):
                notice(warning)
        else:
            self._live.handle(event)

    def finish(self, result: ExecutionResult, agent: str) -> None:
        """Print what came of the run."""
        if self._events:
            return
        if self._options.json:
            text = json.dumps(result_json(result, agent), indent=2, allow_nan=False)
            write_out(self._stdout, escape_json(text) + "\n")
        elif result.approval is not None:
            self.show_approval(result.approval)
        else:
            self._show_reply(result)

    def _show_reply(self, result: ExecutionResult) -> None:
        shown = self._live.reply_shown and self._stdout.isatty()
        if result.text and not shown and result.finish_reason != "aborted":
            write_out(self._stdout, escape(result.text) + "\n")
        if result.finish_reason not in ("stop", "aborted", "budget-exceeded"):
            notice(f"the run ended early: {result.finish_reason}")

    def show_approval(self, approval: PendingApproval) -> None:
        """Show what waits for a human, and how to decide it."""
        if self._options.quiet:
            notice(f"paused: approval {approval.id} of {approval.tool_name} waits for a decision")
            return
        show_approval_panel(
            self._stderr,
            approval.model_dump(mode="json", by_alias=True, exclude_none=True),
            agent=self._options.agent,
            workspace=self._options.workspace,
        )


def result_json(result: ExecutionResult, agent: str) -> JsonObject:
    """The object that `run --json` prints."""
    status = STATUS.get(result.finish_reason, "finished")
    data = result.model_dump(mode="json", by_alias=True, exclude_none=True, include=_PRINTED)
    return {"sessionId": result.session_id, "agent": agent, "status": status, **data}


def finished_json(state: State, agent: str) -> JsonObject:
    """The same object for a run that was finished before."""
    return {
        "sessionId": state.session_id,
        "agent": agent,
        "status": state.status,
        "finishReason": state.finish_reason,
        "text": state.last_text(),
        "steps": state.step,
        "usage": dict(state.usage),
        "toolCalls": [call for message in state.run_messages() for call in calls_of(message)],
    }
