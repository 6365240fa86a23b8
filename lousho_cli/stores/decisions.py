"""A human's decision as the JSON object that stores keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..execution.approval import how
from ..execution.messages import JsonObject
from ..execution.protocols import StoredApproval
from ..execution.records import ApprovalDecision
from ..execution.session import now
from ..execution.unset import UNSET

VERSION = 1

_FIELDS = ("id", "approved", "note", "arguments", "result", "by")


def decision_json(decision: ApprovalDecision) -> JsonObject:
    """A decision made now: what, how, by whom and when."""
    data: JsonObject = {
        "version": VERSION, "id": decision.id, "approved": decision.approved, "how": how(decision),
        "by": decision.by, "at": now(),
    }  # fmt: skip
    if decision.note is not None:
        data["note"] = decision.note
    if decision.arguments is not None:
        data["arguments"] = decision.arguments
    if decision.result is not UNSET:
        data["result"] = decision.result
    return data


def decision_fields(data: Mapping[str, Any]) -> JsonObject:
    """The part of a stored decision that is the decision itself."""
    return {name: data[name] for name in _FIELDS if name in data}


def with_decision(
    stored: StoredApproval, decision: ApprovalDecision, data: Mapping[str, Any]
) -> StoredApproval:
    """An approval with its stored decision."""
    decided = stored.decided(decision, str(data.get("at", "")))
    return decided.consumed() if "consumedAt" in data else decided
