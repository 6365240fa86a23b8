"""The state of a session, and the one function that changes it.

A session is the fold of its records: `state = apply(state, record)`. Live saves and loading a stored session
use the same function, so what a run sees and what a resume sees cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

from .budget import UNLIMITED, Budget
from .log import Log
from .messages import CallData, JsonObject, MessageData, UsageData, calls_of, text_of
from .unset import UNSET, Unset

Status = Literal["in-progress", "awaiting-approval", "finished"]
RecordKind = Literal[
    "input", "queue", "turn", "start", "result", "pause", "decision", "abort", "finish", "fork", "delete",
    "sub", "save", "base",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grant:
    """A human's decision on one call, as the checkpoint remembers it.

    Attributes:
        id: the approval it answered.
        kind: what was asked: `needs-approval` or `interrupted`.
        approved: whether the call may run.
        by, at: who decided and when (UTC, ISO 8601).
        digest: of the tool and the arguments that were shown.
        arguments: the arguments that may run: those shown, or those put in their place.
        edited: whether they were put in their place.
        note: what they wrote.
    """

    id: str
    kind: str
    approved: bool
    by: str
    at: str
    digest: str
    arguments: JsonObject = field(default_factory=dict)
    edited: bool = False
    note: str | None = None

    def to_json(self) -> JsonObject:
        data: JsonObject = {
            "id": self.id, "kind": self.kind, "approved": self.approved,
            "by": self.by, "at": self.at, "digest": self.digest, "arguments": self.arguments,
        }  # fmt: skip
        if self.edited:
            data["edited"] = True
        if self.note is not None:
            data["note"] = self.note
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Grant:
        return cls(
            str(data["id"]), str(data["kind"]), data["approved"] is True, str(data["by"]),
            str(data["at"]), str(data["digest"]), dict(data["arguments"]), data.get("edited") is True,
            data.get("note"),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallMark:
    """What is known of a call that has no result yet.

    Attributes:
        started: the fencing token of the runner that started it, or None.
        grant: the decision it runs under, or None.
    """

    started: int | None = None
    grant: Grant | None = None

    def to_json(self) -> JsonObject:
        data: JsonObject = {}
        if self.started is not None:
            data["started"] = self.started
        if self.grant is not None:
            data["grant"] = self.grant.to_json()
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CallMark:
        grant = data.get("grant")
        return cls(data.get("started"), Grant.from_json(grant) if grant else None)


@dataclass(frozen=True, slots=True)
class RunStart:
    """Where the current run began.

    Attributes:
        index: position in the log of its first message.
        opening: how many messages it was opened with.
        max_steps: the run's limit of model turns.
        budget: what it may use up.
    """

    index: int = 0
    opening: int = 0
    max_steps: int = 10
    budget: Budget = UNLIMITED

    def to_json(self) -> JsonObject:
        data: JsonObject = {"index": self.index, "opening": self.opening, "maxSteps": self.max_steps}
        return data if self.budget == UNLIMITED else {**data, "budget": self.budget.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunStart:
        budget = Budget.from_json(data["budget"]) if "budget" in data else UNLIMITED
        return cls(int(data["index"]), int(data["opening"]), int(data["maxSteps"]), budget)


@dataclass(slots=True)
class Record:
    """One save: only what is new, and always the status and the step.

    `seq`, `at` and `fence` are filled in by the session that saves it. Fields left at their default change
    nothing. `rewrite` cuts the log to that many messages before `add` is appended. `subs` holds saves of
    sub-agents, by the call that runs them. A `base` stands for all saves up to its `seq`; `last_step` is the
    largest step of those.
    """

    kind: RecordKind
    status: Status
    step: int
    seq: int = 0
    at: str = ""
    fence: int = 0
    agent: str | None = None
    rewrite: int | None = None
    add: list[MessageData] | None = None
    results: dict[str, MessageData] | None = None
    marks: dict[str, CallMark] | None = None
    queue: list[MessageData] | None = None
    usage: UsageData | None = None
    seconds: float | None = None
    finish_reason: str | None = None
    approval: JsonObject | None = None
    run: RunStart | None = None
    system: str | Unset | None = UNSET
    business_state: Any = UNSET
    fingerprint: JsonObject | None = None
    run_config: JsonObject | None = None
    parent: JsonObject | None = None
    subs: dict[str, Record] | None = None
    last_step: int | None = None


@dataclass(frozen=True, eq=False)
class State:
    """A session at one moment. A session that does not exist yet is a finished one without messages.

    Attributes:
        seq, saved_at: of the newest save; 0 before the first.
        fence: the fencing token of the runner that made it.
        step: model turns of the current run.
        log: the transcript; the system message is kept apart, in `system`.
        turn: position in `log` of the last model turn with calls, or None.
        results: results that wait for an earlier call of their turn, by call id.
        marks: what is known of calls of the last turn, by call id, until all of them have results.
        queue: user messages that wait for the results of the open calls.
        usage: of the current run.
        seconds: how long it has been running, where its budget limits that.
        approval: the pending approval's JSON, while awaiting one.
        parent: `{sessionId, seq, step}` of the save this session was forked from.
        subs: the sessions of sub-agents that calls of the last turn run, by call id; kept as long.
    """

    session_id: str | None
    agent: str = ""
    seq: int = 0
    saved_at: str = ""
    fence: int = 0
    status: Status = "finished"
    step: int = 0
    log: Log = field(default_factory=Log)
    system: str | None = None
    turn: int | None = None
    results: Mapping[str, MessageData] = field(default_factory=dict)
    marks: Mapping[str, CallMark] = field(default_factory=dict)
    queue: tuple[MessageData, ...] = ()
    usage: UsageData = field(default_factory=UsageData)
    seconds: float = 0.0
    finish_reason: str | None = None
    approval: JsonObject | None = None
    run: RunStart = RunStart()
    business_state: Any = None
    fingerprint: JsonObject | None = None
    run_config: JsonObject | None = None
    parent: JsonObject | None = None
    subs: Mapping[str, State] = field(default_factory=dict)
    deleted: bool = False

    @property
    def exists(self) -> bool:
        return self.seq > 0 and not self.deleted

    @property
    def message_count(self) -> int:
        return len(self.log) + (self.system is not None)

    def open_calls(self) -> list[CallData]:
        """The calls of the last turn that have no result in the transcript, in call order."""
        if self.turn is None:
            return []
        return calls_of(self.log[self.turn])[len(self.log) - self.turn - 1 :]

    def pending_calls(self) -> list[CallData]:
        """The calls of the last turn that have no recorded result, in call order."""
        return [call for call in self.open_calls() if call["id"] not in self.results]

    def ends_with_answer(self) -> bool:
        """Whether the last message is a model turn that asks for nothing."""
        if not len(self.log):
            return False
        last = self.log[-1]
        return last["role"] == "assistant" and not calls_of(last)

    def run_messages(self) -> Iterator[MessageData]:
        """The messages of the current run."""
        return self.log.slice(self.run.index)

    def without_queue(self) -> State:
        """The same state with no input waiting."""
        return _evolve(self, {"queue": ()})

    def as_session(self, session_id: str) -> State:
        """The same state under another session's name."""
        subs = {call: sub.as_session(session_id) for call, sub in self.subs.items()}
        return _evolve(self, {"session_id": session_id, "subs": subs})

    def last_text(self) -> str:
        """The text of the run's last model turn, or nothing."""
        for index in range(len(self.log) - 1, self.run.index - 1, -1):
            if self.log[index]["role"] == "assistant":
                return text_of(self.log[index]["content"])
        return ""


def apply(state: State, record: Record) -> State:
    """The session after one more save."""
    if record.kind == "delete":
        gone = State(state.session_id, agent=state.agent, deleted=True)
        return _evolve(gone, {"seq": record.seq, "saved_at": record.at, "fence": record.fence})
    state = _what_remains(state, record)
    after = _evolve(state, {})
    changes = vars(after)
    changes["seq"] = record.seq
    changes["saved_at"] = record.at
    changes["fence"] = record.fence
    changes["status"] = record.status
    changes["step"] = record.step
    changes["approval"] = record.approval
    changes["finish_reason"] = record.finish_reason
    changes["deleted"] = False
    if record.add or record.rewrite is not None:
        log = state.log if record.rewrite is None else state.log.cut(record.rewrite)
        changes["log"] = log = log.extended(record.add or ())
        changes["turn"] = _open_turn(log, state.turn if record.rewrite is None else None)
    if record.results:
        changes["results"] = {**state.results, **record.results}
    if record.marks or record.kind == "fork":
        changes["marks"] = {**state.marks, **(record.marks or {})} if record.kind != "fork" else {}
    if record.subs:
        saved = {call: _sub(state, call, sub) for call, sub in record.subs.items()}
        changes["subs"] = {**state.subs, **saved}
    if record.kind == "fork":
        changes["subs"] = {call: _reopened(sub) for call, sub in state.subs.items()}
    if record.queue:
        changes["queue"] = (*state.queue, *record.queue)
    for (name, unchanged), value in zip(_SCALARS, _scalar_values(record), strict=True):
        if value is not unchanged:
            changes[name] = value
    if after.results or after.queue or after.marks or after.subs:
        _settle(after)
    return after


def _what_remains(state: State, record: Record) -> State:
    """What a record goes on from: of a whole checkpoint or a base, nothing but the session itself."""
    if record.kind == "save" and record.rewrite == 0:
        return State(state.session_id, agent=state.agent, parent=state.parent)
    return State(state.session_id) if record.kind == "base" else state


def goes_on(state: State, record: Record) -> bool:
    """Whether a stored record is the next save: a base stands for earlier ones, so it is the first."""
    if record.kind == "base":
        return state.seq == 0 < record.seq
    return record.seq == state.seq + 1


def base_of(state: State, last_step: int | None = None) -> Record:
    """The record that stands for all saves up to `state`: applied to a session without any, it gives `state`.

    Args:
        last_step: the largest step of those saves, as far as they are the session's own.
    """
    record = Record(
        "base", state.status, state.step, state.seq, state.saved_at, state.fence,
        rewrite=0,
        add=list(state.log),
        results=dict(state.results) or None,
        marks=dict(state.marks) or None,
        queue=list(state.queue) or None,
        finish_reason=state.finish_reason,
        approval=state.approval,
        subs={call: base_of(sub) for call, sub in state.subs.items()} or None,
        last_step=last_step,
    )  # fmt: skip
    for name, _ in _SCALARS:
        setattr(record, name, getattr(state, name))
    return record


def _sub(state: State, call: str, record: Record) -> State:
    return apply(state.subs.get(call) or State(state.session_id), record)


def _reopened(state: State) -> State:
    """A sub-agent's session in a fork: what waited for an approval goes through it again."""
    status: Status = "finished" if state.status == "finished" else "in-progress"
    subs = {call: _reopened(sub) for call, sub in state.subs.items()}
    return _evolve(state, {"status": status, "approval": None, "marks": {}, "subs": subs})


_SCALARS = (
    ("agent", None), ("usage", None), ("seconds", None), ("run", None), ("fingerprint", None),
    ("run_config", None), ("parent", None), ("system", UNSET), ("business_state", UNSET),
)  # fmt: skip
_scalar_values = attrgetter(*(name for name, _ in _SCALARS))


def _evolve(state: State, changes: dict[str, Any]) -> State:
    new = object.__new__(State)
    new.__dict__.update(state.__dict__)
    new.__dict__.update(changes)
    return new


def _settle(state: State) -> None:
    """Move results into the transcript in call order; behind a closed turn, append what was queued.

    It changes `state`, which nobody else has seen yet.
    """
    log, results = state.log, dict(state.results)
    open_calls = state.open_calls()
    settled = []
    for call in open_calls:
        result = results.pop(call["id"], None)
        if result is None:
            break
        settled.append(result)
    if settled:
        log = log.extended(settled)
    changes = vars(state)
    changes["log"], changes["results"] = log, results
    if len(settled) == len(open_calls):
        changes.update(results={}, marks={}, subs={}, turn=None)
        if state.queue:
            longer = log.extended(state.queue)
            changes.update(log=longer, queue=(), turn=_open_turn(longer, None))


def _open_turn(log: Log, known: int | None) -> int | None:
    """The position of the last model turn if its calls may still lack results."""
    for index in range(len(log) - 1, -1, -1):
        if index == known:
            break
        message = log[index]
        if message["role"] == "assistant":
            answered = len(log) - index - 1
            return index if len(calls_of(message)) > answered else None
        if message["role"] != "tool":
            return None
    return known
