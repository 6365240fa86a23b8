"""The options of the commands that run an agent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigurationError
from ..execution.unset import UNSET

if TYPE_CHECKING:
    from ..providers.cassette_model import Mode

Model = Annotated[str | None, typer.Option("--model", metavar="MODEL", help="Use this model.")]
MaxSteps = Annotated[
    int | None, typer.Option("--max-steps", min=1, metavar="N", help="Model turns the run may take in all.")
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", min=1, metavar="N", help="Tokens the run may use in all, then it stops."),
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", metavar="USD", help="What the run may cost in all, in US dollars."),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option("--max-seconds", metavar="S", help="Seconds the run may be running in all."),
]
ToolConcurrency = Annotated[
    int | None,
    typer.Option("--tool-concurrency", min=1, metavar="N", help="Tool calls of one turn that run at once."),
]
OnAgentDrift = Annotated[
    str | None,
    typer.Option("--on-agent-drift", metavar="POLICY", help="If the agent changed: warn, error or ignore."),
]
BusinessState = Annotated[
    str | None, typer.Option("--business-state", metavar="JSON", help="The value the run's tools share.")
]
Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        min=0,
        metavar="SECONDS",
        show_default=False,
        help="Wait this long while another process runs it; 0 by default.",
    ),
]
Ask = Annotated[bool, typer.Option("--ask", help="Ask for approvals here, and go on.")]
Trust = Annotated[bool, typer.Option("--trust", help="Trust this workspace: its Python files may run.")]
Cassette = Annotated[
    str | None,
    typer.Option(
        "--cassette",
        metavar="FILE",
        help="Take the model's answers from this file; record there what it lacks.",
    ),
]
Record = Annotated[
    bool, typer.Option("--record", help="With --cassette: ask the model every time, and record it.")
]
Replay = Annotated[
    bool, typer.Option("--replay", help="With --cassette: never ask the model; what is missing is an error.")
]
Events = Annotated[bool, typer.Option("--events", help="Print each event as a line of JSON.")]


@dataclass(frozen=True, slots=True)
class CassetteFlags:
    """A cassette to run on.

    Attributes:
        path: its file.
        mode: `record`, `replay` or `auto`.
        anew: whether a recording starts from nothing.
    """

    path: Path
    mode: Mode
    anew: bool = False


@dataclass(frozen=True, slots=True)
class RunFlags:
    """What was asked of a run. None and UNSET: not given."""

    model: str | None = None
    max_steps: int | None = None
    tool_concurrency: int | None = None
    on_agent_drift: str | None = None
    business_state: Any = UNSET
    wait: float = 0.0
    ask: bool = False
    trust: bool = False
    events: bool = False
    cassette: CassetteFlags | None = None
    budget: Mapping[str, float] | None = None

    def for_new_session(self) -> RunFlags:
        """The same for a session that is not there yet: its recording starts from nothing."""
        if self.cassette is None:
            return self
        return replace(self, cassette=replace(self.cassette, anew=True))


def cassette_flags(file: str | None, record: bool, replay: bool) -> CassetteFlags | None:
    """The cassette that a command line asks for.

    Raises:
        ConfigurationError: it says no file, or two modes.
    """
    if record and replay:
        raise ConfigurationError("--record and --replay exclude each other", hint="keep one of them")
    if not file:
        if record or replay or file is not None:
            raise ConfigurationError(
                f"{'--record' if record else '--replay' if replay else '--cassette'} needs a file",
                hint="add --cassette FILE",
            )
        return None
    return CassetteFlags(Path(file), "record" if record else "replay" if replay else "auto")


def run_flags(
    model: str | None,
    max_steps: int | None,
    tool_concurrency: int | None,
    on_agent_drift: str | None,
    business_state: str | None,
    wait: float,
    ask: bool,
    trust: bool,
    events: bool,
    cassette: CassetteFlags | None,
    budget: Mapping[str, float] | None,
) -> RunFlags:
    """The flags of a command line, its JSON parsed."""
    state = parse_json(business_state, "--business-state")
    return RunFlags(
        model, max_steps, tool_concurrency, on_agent_drift, state, wait, ask, trust, events, cassette, budget
    )


def budget_flags(
    max_tokens: int | None, max_cost: float | None, max_seconds: float | None
) -> Mapping[str, float] | None:
    """What a command line lets a run use up; None if it says nothing.

    Raises:
        ConfigurationError: a limit is not above 0.
    """
    given = {"max_tokens": max_tokens, "max_cost_usd": max_cost, "max_seconds": max_seconds}
    limits = {name: value for name, value in given.items() if value is not None}
    for name, value in limits.items():
        if not 0 < value < inf:
            flag = "--" + name.removesuffix("_usd").replace("_", "-")
            raise ConfigurationError(f"{flag} is {value:g}", hint="use a number above 0")
    return limits or None


def parse_json(text: str | None, flag: str) -> Any:
    """The JSON value given to a flag; UNSET if the flag was not given.

    Raises:
        ConfigurationError: it is no JSON.
    """
    if text is None:
        return UNSET
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{flag} is not JSON: {error}", hint="quote it for the shell, for example '{\"size\": 2}'"
        ) from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
