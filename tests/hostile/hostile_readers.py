"""Reading a workspace that may hold anything: every way in, in this process, and what may come of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostile_sample import Sample

from lousho_cli.agents.folder import load_agent
from lousho_cli.config import load_settings
from lousho_cli.errors import SDKError
from lousho_cli.evals.files import read_evals
from lousho_cli.execution.checkpoint import checkpoint_of
from lousho_cli.execution.executor import AgentExecutor
from lousho_cli.execution.records import ApprovalDecision
from lousho_cli.providers.cassette import Cassette
from lousho_cli.providers.resolve import resolve_model
from lousho_cli.stores.backend_file import FileBackend
from lousho_cli.stores.findings import Problem

STORED = ("LOUSHO_SESSION_FILE_CORRUPT", "LOUSHO_CHECKPOINT_VERSION", "LOUSHO_STORAGE_FAILED")
Way = Callable[[], object]


@dataclass(frozen=True)
class Answer:
    """What came of one way in: an error of ours, or a value."""

    way: str
    value: Any = None
    error: SDKError | None = None

    @property
    def code(self) -> str | None:
        return self.error.code if self.error is not None else None


class Reader:
    """Reads one workspace over and over."""

    def __init__(self, sample: Sample, loop: asyncio.AbstractEventLoop) -> None:
        self.sample = sample
        self._loop = loop

    def wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(coroutine)

    def ask(self, way: str, session: str = "trip") -> Answer:
        """Go one way. What is raised and is no error of ours comes out."""
        try:
            return Answer(way, self._ways(session)[way]())
        except SDKError as error:
            answer = Answer(way, error=error)
        assert str(answer.error)
        assert way not in STORED_WAYS or answer.code in STORED, f"{answer.code}: {answer.error}"
        return answer

    def _ways(self, session: str) -> dict[str, Way]:
        store, backend = self.sample.store(), FileBackend(self.sample.folder, 50)
        checkpoints, approvals = store.checkpoints, store.approvals
        agent = self.sample.folder.path
        return {
            "load": lambda: self.wait(checkpoints.load(session)),
            "history": lambda: self.wait(checkpoints.history(session)),
            "listed history": lambda: backend.history(session),
            "kept": lambda: backend.kept_saves(session),
            "state at 2": lambda: checkpoint_of(backend.state(session, 2)),
            "summary": lambda: backend.summary(session),
            "header": lambda: backend.header(session),
            "sessions": lambda: list(backend.summaries()),
            "approvals": lambda: self.wait(approvals.list(status=None)),
            "request": lambda: self._approval(self.sample.waiting),
            "decision": lambda: self._approval(self.sample.decided),
            "ids": lambda: list(backend.approval_ids()),
            "waiting": lambda: [
                json.dumps(backend.undecided(each.approval)) for each in backend.summaries() if each.approval
            ],
            "doctor": lambda: list(self.problems()),
            "settings": lambda: load_settings(self.sample.home),
            "agent": lambda: self._agent(agent),
            "evals": lambda: read_evals(agent),
            "cassette": lambda: Cassette.load(self.sample.files["cassette"]),
        }

    def _approval(self, approval_id: str) -> Any:
        stored = self.wait(self.sample.store().approvals.get(approval_id))
        return stored and (stored.status, stored.pending, stored.snapshot())

    def _agent(self, folder: Path) -> Any:
        loaded = load_agent(folder, provider_of=resolve_model)
        return (
            resolve_model(loaded.model, folder) if loaded.model and loaded.model[:7] == "script:" else loaded
        )

    def problems(self) -> Iterator[Problem]:
        report = FileBackend(self.sample.folder, 50).check(lambda done, of: None)
        yield from report.problems
        for session in report.sessions:
            yield from session.problems

    def fork(self, session: str, name: str) -> Answer:
        """A fork writes a session of its own."""
        store = self.sample.store().checkpoints
        return self._did(
            "fork",
            lambda: AgentExecutor.fork_sync(
                session_id=session, from_step=1, checkpoint_store=store, new_session_id=name
            ),
        )

    def decide(self, approval_id: str) -> Answer:
        """Decide a request and take the decision up."""
        approvals = self.sample.store().approvals

        def act() -> None:
            self.wait(
                approvals.decide(approval_id, ApprovalDecision(id=approval_id, approved=False, by="me"))
            )
            self.wait(approvals.consume(approval_id))

        return self._did("decide", act)

    def repair(self) -> list[Answer]:
        """All that `doctor --repair` would do."""
        remedies = [problem.remedy for problem in self.problems() if problem.remedy is not None]
        return [self._did("repair", lambda each=each: each.apply(dry_run=False)) for each in remedies]  # type: ignore[misc]

    def _did(self, way: str, act: Way) -> Answer:
        try:
            return Answer(way, act())
        except SDKError as error:
            return Answer(way, error=error)


SESSION_WAYS = (
    "load",
    "history",
    "listed history",
    "kept",
    "state at 2",
    "summary",
    "header",
    "sessions",
    "doctor",
)
APPROVAL_WAYS = ("approvals", "request", "decision", "ids", "waiting", "doctor")
STORED_WAYS = frozenset((*SESSION_WAYS, *APPROVAL_WAYS)) - {"state at 2", "request", "decision"}
"""Ways that find what they look for, so that their errors are about what is stored."""
