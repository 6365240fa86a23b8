"""Running an agent from the command line: load, run, show, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO

from ..config import Settings
from ..errors import ConfigurationError, SDKError, SessionAwaitingApprovalError
from ..execution.agent import Agent
from ..execution.deciding import record_decision
from ..execution.events import Event
from ..execution.executor import AgentExecutor, resume_after_approval
from ..execution.protocols import Provider, StoredApproval
from ..execution.records import ApprovalDecision, ExecutionResult
from ..execution.sync import run_sync
from ..loading import load_from_workspace
from ..stores.backend import Store
from ..telemetry import current_tracing
from ..telemetry.setup import sending_spans
from ..trust import is_trusted, trust
from ..workspace import agent_folder, list_agents
from .cassette import CassetteTape
from .errors import error_line, exit_code
from .interrupts import Interrupted, Interrupts, exit_at_once
from .output import notice, write_out
from .place import FoundApproval, FoundSession, Place
from .questions import ask_decision, ask_trust, can_ask
from .run_options import RunFlags
from .run_view import RunOutput
from .server_errors import show_server_errors
from .streams import private_stdout

EXIT_CODES = {"stop": 0, "awaiting-approval": 3}
ENDED_EARLY = 1


@dataclass(frozen=True)
class LoadedRun:
    """An agent ready to run, and what it runs with."""

    name: str
    agent: Agent
    provider: Provider
    store: Store
    settings: Settings
    flags: RunFlags
    tape: CassetteTape

    async def send(self, session_id: str, message: str | None, live: Live) -> ExecutionResult:
        """Send a message, or just resume."""
        return await AgentExecutor.execute(
            agent=self.agent,
            input=message,
            provider=self.provider,
            session_id=session_id,
            checkpoint_store=self.store.checkpoints,
            approval_store=self.store.approvals,
            **self._options(live),
        )

    async def decide(self, decision: ApprovalDecision, live: Live) -> ExecutionResult:
        """Record a decision and go on."""
        return await resume_after_approval(
            decision,
            self.store.approvals,
            None,
            self.provider,
            {"agent": self.agent, **self._options(live)},
            self.store.checkpoints,
        )

    def _options(self, live: Live) -> dict[str, Any]:
        return {
            "max_steps": self.flags.max_steps,
            "budget": self.flags.budget,
            "approval_ttl": self.settings.approval_ttl,
            "tool_concurrency": self.settings.tool_concurrency,
            "on_agent_drift": self.settings.on_agent_drift,
            "business_state": self.flags.business_state,
            "redaction": self.settings.redaction,
            "on_event": live.observe,
            "cancel": live.interrupts.cancel,
            "tracing": current_tracing(self.settings.otel_content),
            "wait": self.flags.wait,
        }


class Live:
    """One attempt to run: its stop signals and its view."""

    def __init__(self, output: RunOutput) -> None:
        self.interrupts = Interrupts()
        self._output = output

    def observe(self, event: Event) -> None:
        self.interrupts.started = True
        self._output.observe(event)


def run_session(place: Place, agent: str, session_id: str, message: str | None, flags: RunFlags) -> int:
    """Send a message to a session, or go on with it; returns the exit code."""
    return _run(place, agent, flags, lambda run, live: run.send(session_id, message, live))


def resume_session(place: Place, found: FoundSession, flags: RunFlags) -> int:
    """Go on with an unfinished session."""
    return run_session(place, found.agent, found.session_id, None, flags)


def approve_and_run(place: Place, found: FoundApproval, decision: ApprovalDecision, flags: RunFlags) -> int:
    """Record an approval, if today's agent can carry it out, and go on with its run."""
    return _run(place, found.agent, flags, lambda run, live: run.decide(decision, live))


def reject_and_run(place: Place, found: FoundApproval, decision: ApprovalDecision, flags: RunFlags) -> int:
    """Record a rejection, which needs no agent, then go on with the run, which does."""
    recorded = record_only(place, found, decision, flags)
    assert recorded.pending.session_id is not None
    return run_session(place, found.agent, recorded.pending.session_id, None, flags)


def record_only(
    place: Place, found: FoundApproval, decision: ApprovalDecision, flags: RunFlags
) -> StoredApproval:
    """Record a decision and start nothing."""
    if decision.approved:
        run = load_run(place, found.agent, flags)
        drift: dict[str, Any] = {"on_agent_drift": run.settings.on_agent_drift}
        store, check = run.store, {"agent": run.agent, "provider": run.provider, **drift}
    else:
        store, check = found.backend.store(), {}
    return run_sync(lambda: record_decision(decision, store.approvals, store.checkpoints, **check))


def choose_agent(place: Place) -> str:
    """The agent of a new session: the one named, the default one, or the only one.

    Raises:
        ConfigurationError: there are several, or none.
    """
    named = place.options.agent or place.settings.default_agent
    if named is not None:
        return named
    names = [each.name for each in list_agents(place.workspace)]
    if len(names) == 1:
        return names[0]
    if not names:
        raise ConfigurationError(
            f"{place.workspace} has no agent",
            hint="make agents/NAME/agent.toml, or run lousho init in another folder",
        )
    raise ConfigurationError(
        f"there are several agents: {', '.join(names)}", hint="name one with --agent, or set default_agent"
    )


def ensure_trusted(place: Place, flags: RunFlags) -> None:
    """See that this user lets the workspace's code run; on a terminal, ask once.

    Raises:
        ConfigurationError: they do not.
    """
    if is_trusted(place.workspace):
        return
    if not flags.trust and not ask_trust(place.workspace):
        raise ConfigurationError(
            f"{place.workspace} is not trusted, and running its agent runs its Python files",
            code="LOUSHO_WORKSPACE_UNTRUSTED",
            hint="look at agents/*/tools/*.py and the commands in agents/*/agent.toml, "
            "then add --trust (or set LOUSHO_TRUST_WORKSPACE=1)",
        )
    trust(place.workspace)


def load_run(place: Place, agent: str, flags: RunFlags) -> LoadedRun:
    """Load an agent and what it runs with. This runs the Python files of its folder."""
    # One that is not there is told before the user is asked for trust.
    agent_folder(place.workspace, agent)
    ensure_trusted(place, flags)
    if place.options.verbose:
        show_server_errors()
    tape = CassetteTape(flags.cassette, place.settings.cassette_volatile or ())
    ready = load_from_workspace(
        place.workspace, agent, flags=_setting_flags(flags), make_provider=tape.provider
    )
    if ready.found is not None:
        notice(f"no model is set; using {ready.found.model}: {ready.found.why}")
    store = place.backend_of(agent).store()
    return LoadedRun(agent, ready.agent, ready.provider, store, ready.settings, flags, tape)


def _setting_flags(flags: RunFlags) -> dict[str, Any]:
    names = ("model", "max_steps", "tool_concurrency", "on_agent_drift")
    return {name: getattr(flags, name) for name in names}


Start = Callable[[LoadedRun, Live], Coroutine[Any, Any, ExecutionResult]]


def _run(place: Place, agent: str, flags: RunFlags, start: Start) -> int:
    with private_stdout() as stdout, sending_spans() as missing:
        if missing is not None:
            notice(missing)
        try:
            run = load_run(place, agent, flags)
            with run.tape:
                return _attempts(place, run, start, stdout)
        except SDKError as error:
            if not flags.events:
                raise
            # Whoever reads lines of events gets the error as one more line.
            write_out(stdout, error_line(error))
            return exit_code(error)


def _attempts(place: Place, run: LoadedRun, start: Start, stdout: TextIO) -> int:
    """Run, and with `--ask` decide and go on, until there is nothing more to do now."""
    while True:
        output = RunOutput(place.options, run.flags, stdout)
        live = Live(output)
        try:
            with output:
                result = live.interrupts.run(partial(start, run, live))
        except Interrupted as interrupted:
            notice("interrupted before anything was run")
            return interrupted.exit_code
        except SessionAwaitingApprovalError as waits:
            decision = _ask_waiting(run, waits, output) if run.flags.ask else None
            if decision is None:
                raise
            start = _deciding(decision)
            continue
        output.finish(result, run.name)
        run.tape.ended(result.finish_reason)
        decision = ask_decision(result.approval) if run.flags.ask and result.approval else None
        if decision is None:
            code = _exit_code(result, live.interrupts, place)
            if live.interrupts.left_running:
                # A tool that ignores being cancelled would keep the interpreter from ending.
                stdout.flush()
                exit_at_once(code)
            return code
        start = _deciding(decision)


def _ask_waiting(
    run: LoadedRun, waits: SessionAwaitingApprovalError, output: RunOutput
) -> ApprovalDecision | None:
    """Ask about what a session waited for before this command came."""
    stored = run_sync(lambda: run.store.approvals.get(waits.approval_id)) if can_ask() else None
    if stored is None:
        return None
    output.show_approval(stored.pending)
    return ask_decision(stored.pending)


def _deciding(decision: ApprovalDecision) -> Start:
    return lambda run, live: run.decide(decision, live)


def _exit_code(result: ExecutionResult, interrupts: Interrupts, place: Place) -> int:
    if result.finish_reason == "budget-exceeded":
        command = place.command("resume", result.session_id or "")
        notice(f"what is done is saved. Go on with a larger budget: {command} --max-tokens N, or the like")
    if result.finish_reason == "aborted":
        command = place.command("resume", result.session_id or "")
        notice(f"stopped; what is done is saved. Go on with: {command}")
        return interrupts.exit_code or 130
    return EXIT_CODES.get(result.finish_reason, ENDED_EARLY)
