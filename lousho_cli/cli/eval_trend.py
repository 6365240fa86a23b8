"""`lousho eval --trend`: how similar the last drift runs of each case were. Nothing is run."""

from __future__ import annotations

import sys

from ..evals.drift_scores import RUNS_KEPT, read_scores
from ..evals.trend import trend_of
from ..render.console import surface_for
from ..render.eval_trends import show_trends as show
from .errors import NOTHING_DONE
from .eval import EvalFlags
from .eval_run import choose
from .output import notice, print_json
from .place import Place


def show_trends(place: Place, flags: EvalFlags) -> int:
    """Show the trends of the cases that are wanted; returns the exit code."""
    known = read_scores(place.workspace)
    cases = [
        {
            "agent": each.agent,
            "eval": each.file.eval.name,
            "case": each.case.label,
            "trend": trend_of(known[each.key].levels).to_json(),
            "runs": [run.model_dump() for run in known[each.key].runs],
        }
        for each in choose(place, flags)
        if each.key in known and known[each.key].runs
    ]
    if place.options.json:
        print_json({"cases": cases, "runsKept": RUNS_KEPT})
    elif cases:
        show(surface_for(sys.stdout, no_color=place.options.no_color), cases)
    if not cases:
        notice("no drift run is remembered: lousho eval --drift")
        return NOTHING_DONE
    if not place.options.json and not place.options.quiet:
        notice(f"the newest {RUNS_KEPT} drift runs of a case are kept")
    return 0
