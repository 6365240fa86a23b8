"""`lousho eval --from SESSION` and `--drift --session SESSION`: sessions as evals."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import ConfigurationError, SDKError
from ..evals.selection import Chosen
from ..evals.session_case import SessionCase, session_case
from ..evals.sessions import SessionStage, write_case
from ..evals.stage import Stage
from ..evals.suite import run_session as run_again
from ..evals.turns import script_of
from ..execution.unset import UNSET
from .eval import EvalFlags
from .eval_run import report_of
from .interrupts import Interrupted, Interrupts
from .output import notice, print_json
from .place import FoundSession, Place, find_session
from .run_options import RunFlags
from .running import ensure_trusted
from .streams import private_stdout


def make_eval(place: Place, flags: EvalFlags, given: str) -> int:
    """Make an eval of a session, with a recording that replays; returns the exit code."""
    stage = _stage(place, flags, given)
    name = flags.name or stage.case.session_id
    interrupts = Interrupts()
    with private_stdout():
        try:
            recording = interrupts.run(stage.recording)
            file = write_case(place.workspace, stage.case, name, recording)
            chosen = Chosen(stage.case.agent, file, file.eval.cases[0])
            replay = Stage(place.workspace, "replay", volatile=stage.volatile)
            interrupts.run(partial(_replayed, replay, chosen))
        except Interrupted as interrupted:
            notice("interrupted")
            return interrupted.exit_code
    cassette = file.cassette(chosen.case.label)
    told = {
        "agent": stage.case.agent,
        "sessionId": stage.case.session_id,
        "eval": file.eval.name,
        "case": chosen.case.label,
        "path": str(file.path),
        "cassette": str(cassette),
        "steps": len(stage.case.steps),
        "leftOut": stage.case.left_out,
    }
    _tell(place, told)
    return 0


async def _replayed(stage: Stage, chosen: Chosen) -> None:
    """See that the case replays; what was written is taken away again where it does not."""
    try:
        result = await stage.run(chosen, script_of(chosen.case, chosen.file.path.parent))
        problems = [each.message for each in result.failures] + [each.field for each in result.drift]
    except SDKError as error:
        problems = [error.message]
    if problems:
        for path in (chosen.file.cassette(chosen.case.label), chosen.file.path):
            with suppress(OSError):
                path.unlink()
        raise ConfigurationError(
            f"the session does not replay: {'; '.join(problems)}",
            hint="nothing was written; what differs from run to run may be named in cassette_volatile",
        )


def run_session(place: Place, flags: EvalFlags, given: str) -> int:
    """Run a session again on the agent as it is, tools answering as recorded; returns the exit code."""
    stage = _stage(place, flags, given)
    return report_of(place, flags, partial(run_again, stage, flags.runs, flags.strict))


def _stage(place: Place, flags: EvalFlags, given: str) -> SessionStage:
    found = find_session(place, given)
    case = _case(found)
    if case.left_out and not place.options.quiet:
        notice(f"session {case.session_id} is not finished: its open last step is left out")
    ensure_trusted(place, RunFlags(trust=flags.trust))
    return SessionStage(place.workspace, case, place.settings.cassette_volatile or ())


def _case(found: FoundSession) -> SessionCase:
    state = found.backend.state(found.session_id)
    return replace(session_case(state, _first_business_state(found)), agent=found.agent)


def _first_business_state(found: FoundSession) -> Any:
    """The business state before the first step; UNSET where that save is not kept."""
    kept = found.backend.kept_saves(found.session_id)
    if not kept.saves or kept.saves[-1] != (1, 0):
        return UNSET
    first = found.backend.state(found.session_id, 1).business_state
    return UNSET if first is None else first


def _tell(place: Place, told: dict[str, Any]) -> None:
    if place.options.json:
        print_json(told)
        return
    sys.stdout.write(f"{told['path']}\n")
    if not place.options.quiet:
        name = f"{told['eval']}/{told['case']}"
        notice(f"{name} has a recording of {told['steps']} steps, which replays")
        notice(f"see how the agent does today: {place.command('eval', name, '--drift')}")
