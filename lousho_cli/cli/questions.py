"""Questions to the person at the terminal. Without a terminal nothing is asked."""

from __future__ import annotations

import sys
from pathlib import Path

from ..execution.records import ApprovalDecision, PendingApproval
from .output import notice

YES = ("y", "yes")
NO = ("n", "no")


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_trust(workspace: Path) -> bool:
    """Ask whether a workspace's code may run. No terminal, no answer and anything but yes mean no."""
    if not can_ask():
        return False
    notice(f"{workspace} was not set up by you on this machine. Running its agent runs its Python files.")
    return ask_yes("Trust this workspace?")


def ask_yes(question: str) -> bool:
    """A yes-or-no question; no answer and anything but yes mean no."""
    return _ask(f"{question} [y/N] ") in YES


def ask_decision(pending: PendingApproval) -> ApprovalDecision | None:
    """Ask for a decision on a call that was just shown; None leaves it undecided."""
    if not can_ask():
        return None
    answer = ""
    while answer not in (*YES, *NO, "l", "later"):
        answer = _ask(f"Run {pending.tool_name}? [y]es, [n]o, [l]ater: ")
    if answer in YES:
        return ApprovalDecision(id=pending.id, approved=True)
    if answer in NO:
        note = _ask("Why not? (the model reads it; empty for no note) ", lower=False)
        return ApprovalDecision(id=pending.id, approved=False, note=note or None)
    return None


def _ask(question: str, *, lower: bool = True) -> str:
    """One line from the terminal. The end of input is taken for "later"."""
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        return "later"
    return line.strip().lower() if lower else line.strip()
