"""Approvals: what is asked, and what a decision makes of the call (R3.4, R3.6)."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import secrets
from datetime import UTC, datetime
from typing import Any

from .messages import JsonObject, MessageData
from .protocols import EXPIRY, StoredApproval
from .records import ApprovalDecision, PendingApproval
from .session import stamp
from .state import CallMark, Grant, Record, State
from .unset import UNSET
from .values import error_result, to_json_text

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_approval_id() -> str:
    """Unique, short enough to type, without letters that look alike."""
    return "ap_" + "".join(secrets.choice(ALPHABET) for _ in range(12))


def args_digest(tool: str, args: Any) -> str:
    """Binds an approval to what was shown: the tool and its validated arguments."""
    text = json.dumps([tool, args], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def os_user() -> str:
    """Who is deciding, as far as the system knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"


def has_expired(pending: PendingApproval) -> bool:
    """Whether the time to decide an approval, and to act on it, is over."""
    if pending.expires_at is None:
        return False
    return datetime.now(UTC) >= datetime.fromisoformat(pending.expires_at)


def expired_decision(pending: PendingApproval) -> ApprovalDecision:
    """What is recorded for an approval that nobody decided in time: a rejection."""
    note = f"nobody decided until {pending.expires_at}"
    return ApprovalDecision(id=pending.id, approved=False, by=EXPIRY, note=note)


def how(decision: ApprovalDecision) -> str:
    """In which way a decision decides."""
    if decision.by == EXPIRY:
        return "expired"
    if not decision.approved:
        return "rejected"
    if decision.result is not UNSET:
        return "result supplied"
    return "approved" if decision.arguments is None else "approved with other arguments"


def consume(state: State, stored: StoredApproval, fence: int) -> Record:
    """The one save that takes a decision out of waiting: the call is marked started, or has its result.

    A decision on a call inside a sub-agent takes every session on the way there out of waiting with it.
    """
    if state.approval is not None and "leadCallId" in state.approval:
        call = str(state.approval["leadCallId"])
        inner = state.subs[call]
        nested = stamp(consume(inner, stored, fence), inner, fence)
        return Record("decision", "in-progress", state.step, subs={call: nested})
    pending, decision, at = stored.pending, stored.decision, stored.decided_at or ""
    assert decision is not None
    call_id, name = pending.tool_call_id, pending.tool_name
    # A request of an older layout has no digest: what it showed is what it covers.
    digest = pending.digest or args_digest(name, pending.args)
    arguments, edited = _covered(state, pending, decision)
    grant = Grant(
        pending.id, pending.kind, decision.approved, decision.by or os_user(), at, digest,
        arguments, edited, decision.note,
    )  # fmt: skip
    record = Record("decision", "in-progress", state.step)
    runs = decision.approved and decision.result is UNSET
    if runs and has_expired(pending):
        late = ApprovalDecision(
            id=pending.id, approved=False, note=f"approved, but not used until {pending.expires_at}"
        )
        record.results = {call_id: _decided_result(pending, late, grant)}
    elif runs:
        record.marks = {call_id: CallMark(started=fence, grant=grant)}
    else:
        record.results = {call_id: _decided_result(pending, decision, grant)}
    if not stored.runs_later_calls:
        record.results = {**(record.results or {}), **_not_run(state, call_id)}
    return record


def _covered(state: State, pending: PendingApproval, decision: ApprovalDecision) -> tuple[JsonObject, bool]:
    """The arguments that may run, and whether a human put them in place of the model's."""
    if decision.arguments is not None:
        return decision.arguments, True
    mark = state.marks.get(pending.tool_call_id)
    if mark is not None and mark.grant is not None and mark.grant.edited:
        # The repetition of an edited call: what the human wrote then, not the form it was shown in.
        return mark.grant.arguments, True
    return pending.args or {}, False


def _not_run(state: State, decided: str) -> dict[str, MessageData]:
    """Results for the calls behind the decided one, which will not run."""
    text = "not run: the approval before it was asked by a version that did not keep later calls"
    return {
        call["id"]: result_message(
            call["id"], call["function"]["name"], error_result("not-run", text), failed=True
        )
        for call in state.pending_calls()
        if call["id"] != decided
    }


def _decided_result(pending: PendingApproval, decision: ApprovalDecision, grant: Grant) -> MessageData:
    if decision.approved:
        content, failed = to_json_text(decision.result), False
    elif pending.kind == "interrupted":
        text = "outcome unknown, not repeated: the call was interrupted and may already have happened"
        content, failed = error_result("interrupted", text, decision.note), True
    else:
        text = "a human rejected this call: it did not run"
        if decision.by == EXPIRY or grant.approved:
            text = "the approval of this call expired: it did not run"
        content, failed = error_result("rejected", text, decision.note), True
    return result_message(pending.tool_call_id, pending.tool_name, content, failed, grant)


def result_message(
    call_id: str, name: str, content: str, failed: bool, grant: Grant | None = None
) -> MessageData:
    """A tool message. A call that went through an approval carries the decision with it."""
    message: JsonObject = {"role": "tool", "content": content, "toolCallId": call_id, "toolName": name}
    if failed:
        message["isError"] = True
    if grant is not None:
        message["approval"] = grant.to_json()
    return message  # type: ignore[return-value]
