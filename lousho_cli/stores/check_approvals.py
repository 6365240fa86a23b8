"""Checking the approvals of an agent against its sessions: what cannot be read, and what nobody waits for."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..errors import StorageError
from ..execution.messages import JsonObject
from .approvals_reader import read_object
from .check_session import NEWER, not_a_file
from .files import path_exists
from .findings import Problem, SessionReport, repair_command
from .folder import DECISION_SUFFIX, AgentFolder
from .ids import decode_id
from .repair_files import PutAside, RemoveRequest


def check_approvals(
    folder: AgentFolder, names: Iterable[str], sessions: Mapping[str, SessionReport]
) -> Iterator[Problem]:
    """What there is to say about the files in `approvals/`.

    Args:
        names: of the files there.
        sessions: by id.
    """
    check = _ApprovalsCheck(folder, sessions)
    for name in names:
        if name.endswith(DECISION_SUFFIX):
            yield from check.decision(folder.approvals / name)
        elif name.endswith(".json"):
            yield from check.request(folder.approvals / name)


class _ApprovalsCheck:
    def __init__(self, folder: AgentFolder, sessions: Mapping[str, SessionReport]) -> None:
        self._folder = folder
        self._sessions = sessions
        self._waiting = {each.waits_for: each for each in sessions.values() if each.waits_for}
        self._all_readable = all(each.readable for each in sessions.values())

    def request(self, path: Path) -> Iterator[Problem]:
        waiting = self._waiting.get(decode_id(path.stem) or path.stem)
        content, problem = self._read(path, waiting)
        if problem is not None:
            yield problem
        pending = (content or {}).get("pending")
        if content is None:
            return
        if not isinstance(pending, dict) or not isinstance(pending.get("id"), str):
            yield self._damaged(path, waiting, "it names no approval")
            return
        approval_id, session_id = pending["id"], pending.get("sessionId")
        orphan = not isinstance(content.get("snapshot"), dict) and isinstance(session_id, str)
        if orphan and not path_exists(self._folder.decision(approval_id)):
            yield from self._orphan(path, approval_id, str(session_id))

    def _orphan(self, path: Path, approval_id: str, session_id: str) -> Iterator[Problem]:
        session = self._sessions.get(session_id)
        if session is not None and (not session.readable or session.running):
            return
        if session is None or not session.exists:
            why = f"its session {session_id!r} is gone"
        elif session.waits_for != approval_id:
            why = f"session {session_id!r} does not wait for it any more"
        else:
            return
        yield Problem(
            "request-orphan", str(path), f"a request that nobody decided, and {why}",
            f"nothing to do: it is not listed; {repair_command()} removes it",
            session_id, self._folder.agent, RemoveRequest(self._folder, approval_id, session_id),
        )  # fmt: skip

    def decision(self, path: Path) -> Iterator[Problem]:
        stem = path.name.removesuffix(DECISION_SUFFIX)
        approval_id = decode_id(stem)
        waiting = self._waiting.get(approval_id or stem)
        content, problem = self._read(path, waiting, decision=True)
        if problem is not None:
            yield problem
        if content is None or approval_id is None:
            return
        if content.get("id") != approval_id:
            yield self._damaged(path, waiting, f"it is about approval {content.get('id')!r}", decision=True)
        elif waiting is None and self._all_readable and not path_exists(self._folder.request(approval_id)):
            yield Problem(
                "decision-orphan", str(path), "a decision whose request is gone, and no session waits for it",
                "nothing to do: it is kept as a record of who decided", None, self._folder.agent,
            )  # fmt: skip

    def _read(
        self, path: Path, waiting: SessionReport | None, *, decision: bool = False
    ) -> tuple[JsonObject | None, Problem | None]:
        kind = not_a_file(path)
        session_id = waiting.session_id if waiting else None
        if kind is not None:
            return None, Problem(
                "not-a-file", str(path), f"{kind} is in the place of a file; it is not followed or read",
                "put the real file there, or take it away", session_id, self._folder.agent,
            )  # fmt: skip
        try:
            return read_object(path), None
        except StorageError as error:
            if error.code == "LOUSHO_SESSION_FILE_CORRUPT":
                why = error.message.removeprefix(f"{path} is damaged: ")
                return None, self._damaged(path, waiting, why, decision=decision)
            code = "newer-version" if error.code == NEWER else "unreadable"
            return None, Problem(code, str(path), error.message, error.hint, session_id, self._folder.agent)

    def _damaged(
        self, path: Path, waiting: SessionReport | None, why: str, *, decision: bool = False
    ) -> Problem:
        agent = self._folder.agent
        if waiting is None:
            fix = "restore it from a copy"
            if self._all_readable:
                fix = f"remove it, no session waits for it: {shlex.join(['rm', str(path)])}"
            return Problem("request-damaged", str(path), f"damaged: {why}", fix, None, agent)
        session_id = waiting.session_id
        remedy = PutAside(self._folder, path, str(waiting.waits_for), session_id)
        if not decision:
            fix = "nothing to do: what is asked is read from its session"
            return Problem("request-damaged", str(path), f"damaged: {why}", fix, session_id, agent, remedy)
        return Problem(
            "approval-damaged", str(path), f"the decision on session {session_id!r} is damaged: {why}",
            f"restore it from a copy, or put it aside and decide again: {repair_command(session_id)}",
            session_id, agent, remedy,
        )  # fmt: skip
