"""One look at everything: the set-up, the agents, the stored data; and what a repair made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ..config import Settings
from ..errors import NotFoundError, SDKError, StorageError
from ..execution.messages import JsonObject
from ..render.console import Surface
from ..stores.findings import Mended
from .findings import Check
from .installation import check_installation, check_terminal
from .stored import StoredData, repair
from .workspace import check_agents, check_workspace

LookAtSessions = Callable[[Path, Settings], StoredData]


@dataclass(frozen=True, slots=True)
class Scope:
    """What is looked at.

    Attributes:
        workspace: the workspace folder, or None where there is none.
        sessions: the ids of the only sessions to look at, or None for everything.
        agent: the only agent to look at, or None for all.
    """

    workspace: Path | None
    sessions: Sequence[str] | None = None
    agent: str | None = None


class Examination:
    """What was found, and repaired.

    Args:
        look_at_sessions: checks the stored data, given the workspace and its settings.
    """

    def __init__(self, scope: Scope, look_at_sessions: LookAtSessions) -> None:
        self._scope = scope
        self._look_at_sessions = look_at_sessions
        self._settings: Settings | None = None
        self._stored: StoredData | None = None
        self._set_up: list[Check] = []
        self.repairs: list[Mended] | None = None

    def look(self, surface: Surface, while_agents_load: AbstractContextManager[object]) -> None:
        """Check everything in scope.

        Args:
            surface: standard output.
            while_agents_load: entered while the code of agents runs, in a trusted workspace.

        Raises:
            NotFoundError: a session that was named is not there.
        """
        if self._scope.sessions is None:
            self._set_up += [*check_installation(), check_terminal(surface)]
        workspace = self._scope.workspace
        if workspace is None:
            fix = "lousho init sets one up here"
            self._set_up.append(Check("workspace", "found", "absent", "no .lousho here or above", fix))
            return
        self._settings, checks = check_workspace(workspace)
        if self._scope.sessions is None:
            self._set_up += checks
            with while_agents_load:
                self._set_up += check_agents(workspace, self._settings, self._scope.agent)
        else:
            self._set_up += [check for check in checks if check.error is not None]
        self._look_at_stored(workspace)
        self._see_that_known(self._scope.sessions or ())

    def _look_at_stored(self, workspace: Path) -> None:
        if self._settings is None:
            message = "not checked: the settings say where sessions are, and they are wrong"
            self._set_up.append(Check("store", "sessions", "skipped", message))
        else:
            self._stored = self._look_at_sessions(workspace, self._settings)

    def _see_that_known(self, sessions: Sequence[str]) -> None:
        if self._stored is None or any(check.status == "error" for check in self._stored.checks):
            return
        known = {each.session_id for each in self._stored.sessions}
        for session_id in sessions:
            if session_id not in known:
                raise NotFoundError(
                    f"there is no session {session_id!r}", hint="lousho sessions lists the sessions there are"
                )

    @property
    def checks(self) -> list[Check]:
        return [*self._set_up, *(self._stored.checks if self._stored is not None else ())]

    def repair(self, *, dry_run: bool = False) -> None:
        """Repair what can be repaired, and look again at what is left."""
        self.repairs = self.planned() if dry_run else self._repair()

    def planned(self) -> list[Mended]:
        """What a repair would do."""
        return [] if self._stored is None else list(repair(self._stored.repairable, dry_run=True))

    def _repair(self) -> list[Mended]:
        done = [] if self._stored is None else list(repair(self._stored.repairable, dry_run=False))
        if done and self._scope.workspace is not None:
            self._look_at_stored(self._scope.workspace)
        return done

    @property
    def errors(self) -> list[SDKError]:
        """What is wrong now, as far as it is an error."""
        errors = [check.error for check in self.checks if check.error is not None]
        failed = [each for each in self.repairs or () if each.outcome == "failed"]
        return [*errors, *(StorageError(each.message) for each in failed)]

    def to_json(self) -> JsonObject:
        stored = self._stored or StoredData((), (), ())
        data: JsonObject = {
            "ok": not self.errors,
            "checks": [check.to_json() for check in self.checks],
            "problems": [problem.to_json() for problem in stored.problems],
            "counts": stored.counts(),
        }
        if self.repairs is not None:
            data["repairs"] = [each.to_json() for each in self.repairs]
        return data
