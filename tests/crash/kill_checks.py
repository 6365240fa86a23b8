"""What must hold of a session after each life of a process, however that ended (R3.4 to R3.6)."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crash_checks import check_pairs
from crash_facts import results_in, turns_in
from kill_world import AGENT, INPUTS, approval, load
from life_client import Life

Data = dict[str, Any]
ONE_ANSWER = "suatttttata"
TWO_ANSWERS = ONE_ANSWER + "uattta"
"""The roles of the transcript, by their first letters."""
SUB_TURNS = 2
"""How many turns the sub-agent takes."""


@dataclass
class Watch:
    """One session, over the lives of the processes that work on it.

    Attributes:
        now: its checkpoint.
        runs: how often each call ran.
        allowed: how often a call that may not be repeated may have run.
        decided: what was decided on each approval, and when.
        failing: with which exit codes a process may fail.
    """

    home: Path
    session: str
    now: Data | None = None
    runs: Counter[str] = field(default_factory=Counter)
    allowed: Counter[str] = field(default_factory=Counter)
    decided: dict[str, tuple[str, bool, str | None]] = field(default_factory=dict)
    failing: tuple[int, ...] = ()
    _seen: set[str] = field(default_factory=set)
    _older: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._older = results_in(self.now)
        self._see_approval()

    def after(self, life: Life) -> None:
        """A process ended."""
        before, self.now = self.now, load(self.home, self.session)
        assert life.killed or life.code in (0, 3, *self.failing), life
        self._kept(before, life)
        self._decisions(life)
        self._runs(before, life)
        self._turns(before, life)
        self._said()
        self._history_file()

    def _kept(self, before: Data | None, life: Life) -> None:
        """What was recorded is still there, and the same."""
        if before is None:
            return
        assert self.now is not None, life
        known = before["messages"]
        assert self.now["messages"][: len(known)] == known, life
        assert results_in({"messages": known}) <= results_in(self.now), life
        assert self.now["engine"]["seq"] >= before["engine"]["seq"], life
        early = before["engine"].get("results", {})
        late = {each["toolCallId"]: each for each in self.now["messages"] if each["role"] == "tool"}
        late |= self.now["engine"].get("results", {})
        assert all(late[call] == result for call, result in early.items()), life

    def _decisions(self, life: Life) -> None:
        """A decision that was recorded stays as it is; an approval allows one run."""
        self._see_approval()
        for one in self._seen:
            stored = approval(self.home, one)
            if stored is None or stored.decision is None:
                assert one not in self.decided, f"the decision on {one} is lost: {life}"
                continue
            decision = (stored.pending.tool_call_id, stored.decision.approved, stored.decided_at)
            if one not in self.decided:
                runs = stored.decision.approved and "result" not in stored.decision.model_fields_set
                self.allowed[stored.pending.tool_call_id] += runs
            assert self.decided.setdefault(one, decision) == decision, life

    def _see_approval(self) -> None:
        waiting = (self.now or {}).get("engine", {}).get("approval")
        if waiting is not None:
            self._seen.add(waiting["id"])

    def _runs(self, before: Data | None, life: Life) -> None:
        """No recorded call ran again; what may not be repeated was not, without a human's word."""
        ran = [line.split()[1:] for line in life.noted if line.startswith("ran ")]
        assert len({call for _, call in ran}) == len(ran), f"a call ran twice in one life: {life}"
        for name, call in ran:
            assert call not in results_in(before), f"{call} ran again: {life}"
            self.runs[call] += 1
            once = {"pay": 1, "once": 1, "gated": 0}.get(name)
            if once is not None:
                assert self.runs[call] <= once + self.allowed[call], (
                    f"{call} ran {self.runs[call]} times: {life}"
                )

    def _turns(self, before: Data | None, life: Life) -> None:
        """Each question to the model gave a new turn; only the one that a kill cut off gave none."""
        if not life.asks_noted:
            return
        lost = life.noted.count("asked") - (_turns(self.now) - _turns(before))
        cut_off = life.killed or life.code in self.failing
        assert lost in ((0, 1) if cut_off else (0,)), f"{lost} turns lost: {life}"

    def _said(self) -> None:
        """Every message once, in order; every result right behind its turn."""
        if self.now is None:
            return
        check_pairs(self.now["messages"])
        queued = self.now["engine"].get("queue", [])
        said = [each["content"] for each in [*self.now["messages"], *queued] if each["role"] == "user"]
        assert tuple(said) == INPUTS[: len(said)]

    def _history_file(self) -> None:
        """It is whole at every instant."""
        path = self.home / ".lousho" / "agents" / AGENT / "checkpoint-history" / f"{self.session}.json"
        if path.exists():
            assert json.loads(path.read_bytes())["sessionId"] == self.session

    def check_end(self) -> None:
        """The conversation is the whole one, whatever it took to get there."""
        assert self.now is not None
        roles = "".join(message["role"][0] for message in self.now["messages"])
        assert roles in (ONE_ANSWER, TWO_ANSWERS), roles
        for message in self.now["messages"]:
            if message["role"] == "tool" and not message.get("isError"):
                name, call = message["toolName"], message["toolCallId"]
                text = json.loads(message["content"])
                assert text in (f"{name} done", "soup", "looked up")
                ran = self.runs[call] or call in self._older
                assert ran or text == "looked up" or name.startswith("delegate"), call
            elif message["role"] == "tool":
                kind = json.loads(message["content"])["kind"]
                assert (message["toolName"], kind) in OUTCOMES


OUTCOMES = {("once", "interrupted"), ("pay", "interrupted"), ("gated", "interrupted"), ("gated", "rejected")}
"""The errors that a kill, or a human's no, makes of a call."""


def _turns(checkpoint: Data | None) -> int:
    inner = SUB_TURNS if "c_cook" in results_in(checkpoint) else turns_in(checkpoint, "cook", AGENT)
    return turns_in(checkpoint, AGENT, AGENT) + inner
