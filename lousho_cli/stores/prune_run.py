"""A pruning over the stores of a workspace: what it would do, doing it, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..errors import SDKError, SessionBusyError, StorageError
from ..execution.messages import JsonObject
from .backend import Backend
from .pruning import Compaction, Pruner, Weight
from .reader import SessionSummary
from .retention import Criteria, choose

RUNNING = "it is being run"


@dataclass(frozen=True, slots=True)
class Removal:
    """A session to remove, or removed."""

    session: SessionSummary
    pruner: Pruner
    weight: Weight

    def to_json(self) -> JsonObject:
        session = self.session
        return {
            "sessionId": session.session_id, "agent": session.agent, "status": session.status,
            "savedAt": session.at, "saves": self.weight.saves, "bytes": self.weight.bytes,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Compacted:
    """A session whose journal was rewritten."""

    session: SessionSummary
    compaction: Compaction

    def to_json(self) -> JsonObject:
        done = self.compaction
        return {
            "sessionId": self.session.session_id, "agent": self.session.agent,
            "bytesBefore": done.before, "bytesAfter": done.after, "savesDroppedThrough": done.through,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Skipped:
    """A session that was left as it is, and why."""

    session: SessionSummary
    reason: str
    problem: SDKError | None = None

    def to_json(self) -> JsonObject:
        data: JsonObject = {
            "sessionId": self.session.session_id, "agent": self.session.agent, "reason": self.reason,
        }  # fmt: skip
        return data if self.problem is None else {**data, "code": self.problem.code}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pruning would do.

    Attributes:
        removals: what is to be removed.
        others: the sessions that stay.
        skipped: what cannot be read.
    """

    removals: tuple[Removal, ...]
    others: tuple[tuple[Pruner, SessionSummary], ...]
    skipped: tuple[Skipped, ...]


@dataclass
class Pruned:
    """What a pruning did, or would do."""

    dry_run: bool
    removed: list[Removal] = field(default_factory=list)
    compacted: list[Compacted] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def problem(self) -> SDKError | None:
        """The first failure, if there was one."""
        return next((each.problem for each in self.skipped if each.problem is not None), None)

    def to_json(self) -> JsonObject:
        return {
            "dryRun": self.dry_run,
            "removed": [each.to_json() for each in self.removed],
            "compacted": [each.to_json() for each in self.compacted],
            "skipped": [each.to_json() for each in self.skipped],
        }


def plan_pruning(sessions: Iterable[tuple[Backend, SessionSummary]], criteria: Criteria) -> Plan:
    """What is to be done with these sessions. Nothing is held, and nothing written."""
    pruners: dict[int, Pruner] = {}
    found: list[tuple[Pruner, SessionSummary]] = []
    for backend, session in sessions:
        found.append((pruners.setdefault(id(backend), backend.pruner()), session))
    chosen = {id(session) for session in choose((session for _, session in found), criteria)}
    removals, others, skipped = [], [], []
    for pruner, session in found:
        if session.problem is not None:
            skipped.append(Skipped(session, session.problem.message, session.problem))
        elif id(session) not in chosen:
            others.append((pruner, session))
        else:
            removals.append(Removal(session, pruner, pruner.weigh(session.session_id)))
    return Plan(tuple(removals), tuple(others), tuple(skipped))


def carry_out(plan: Plan, *, dry_run: bool) -> Pruned:
    """Remove, then compact what is left. A session that is being run, or fails, leaves the others alone."""
    done = Pruned(dry_run, skipped=list(plan.skipped))
    for removal in plan.removals:
        session = removal.session
        try:
            if dry_run and removal.pruner.is_running(session.session_id):
                done.skipped.append(Skipped(session, RUNNING))
            elif dry_run or removal.pruner.remove(session.session_id, session.seq):
                done.removed.append(removal)
            else:
                done.skipped.append(Skipped(session, "it has changed meanwhile"))
        except (SessionBusyError, StorageError) as error:
            done.skipped.append(_failed(session, error))
    for pruner, session in plan.others:
        try:
            compaction = pruner.compact(session.session_id, dry_run=dry_run)
            if compaction is not None:
                done.compacted.append(Compacted(session, compaction))
        except (SessionBusyError, StorageError) as error:
            done.skipped.append(_failed(session, error))
    return done


def _failed(session: SessionSummary, error: SessionBusyError | StorageError) -> Skipped:
    if isinstance(error, SessionBusyError):
        return Skipped(session, RUNNING)
    return Skipped(session, error.message, error)
