"""`lousho approve`: decide what a paused run waits for, and go on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import run_options as opt
from .globals import Globals, command
from .output import notice, print_json

if TYPE_CHECKING:
    from ..execution.records import ApprovalDecision
    from .place import FoundApproval, Place


@command
def approve(
    options: Globals,
    approval: Annotated[
        str, typer.Argument(metavar="ID", help="The approval's id, or the beginning of one.")
    ],
    reject: Annotated[bool, typer.Option("--reject", help="Reject it: the call does not run.")] = False,
    note: Annotated[
        str | None, typer.Option("--note", metavar="TEXT", help="Why; the model reads it on a rejection.")
    ] = None,
    edit: Annotated[
        str | None, typer.Option("--edit", metavar="JSON", help="Approve with these arguments instead.")
    ] = None,
    result: Annotated[
        str | None,
        typer.Option("--result", metavar="JSON", help="Do not run it: this is its outcome, looked up."),
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Only record the decision.")] = False,
    model: opt.Model = None,
    max_steps: opt.MaxSteps = None,
    max_tokens: opt.MaxTokens = None,
    max_cost: opt.MaxCost = None,
    max_seconds: opt.MaxSeconds = None,
    tool_concurrency: opt.ToolConcurrency = None,
    on_agent_drift: opt.OnAgentDrift = None,
    business_state: opt.BusinessState = None,
    wait: opt.Wait = 0.0,
    ask: opt.Ask = False,
    trust: opt.Trust = False,
    events: opt.Events = False,
    cassette: opt.Cassette = None,
    record: opt.Record = False,
    replay: opt.Replay = False,
) -> int:
    """Approve or reject a waiting tool call, and go on with its run."""
    from .place import find_approval, open_place

    flags = opt.run_flags(
        model, max_steps, tool_concurrency, on_agent_drift, business_state, wait, ask, trust, events,
        opt.cassette_flags(cassette, record, replay), opt.budget_flags(max_tokens, max_cost, max_seconds),
    )  # fmt: skip
    place = open_place(options)
    found = find_approval(place, approval)
    decision = _decision(found.approval_id, reject, note, edit, result)
    if no_run:
        return _record_only(place, found, decision, flags)
    from .running import approve_and_run, reject_and_run

    decide = approve_and_run if decision.approved else reject_and_run
    return decide(place, found, decision, flags)


def _decision(
    approval_id: str, reject: bool, note: str | None, edit: str | None, result: str | None
) -> ApprovalDecision:
    from ..execution.deciding import parse_decision
    from ..execution.unset import UNSET

    decision = {"id": approval_id, "approved": not reject, "note": note}
    if edit is not None:
        decision["arguments"] = opt.parse_json(edit, "--edit")
    outcome = opt.parse_json(result, "--result")
    if outcome is not UNSET:
        decision["result"] = outcome
    return parse_decision(decision)


def _record_only(place: Place, found: FoundApproval, decision: ApprovalDecision, flags: opt.RunFlags) -> int:
    from .running import record_only

    recorded = record_only(place, found, decision, flags)
    session = recorded.pending.session_id
    if place.options.json:
        print_json(
            {
                "approvalId": decision.id,
                "status": recorded.status,
                "sessionId": session,
                "by": recorded.decision.by if recorded.decision else None,
                "at": recorded.decided_at,
            }
        )
    else:
        notice(f"{decision.id} is {recorded.status}; go on with: lousho resume {session}")
    return 0
