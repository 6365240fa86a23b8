"""Which cases are run: by name, by tag, or those that failed last. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from .cases import Case
from .files import EvalFile


@dataclass(frozen=True, slots=True)
class Chosen:
    """A case that is to be run."""

    agent: str
    file: EvalFile
    case: Case

    @property
    def name(self) -> str:
        """`eval/label`, as it is given on the command line."""
        return f"{self.file.eval.name}/{self.case.label}"

    @property
    def key(self) -> str:
        """Names the case in its workspace."""
        return f"{self.agent}/{self.name}"


def all_cases(agents: Iterable[tuple[str, Sequence[EvalFile]]]) -> Iterator[Chosen]:
    """Every case of the evals of some agents."""
    for agent, files in agents:
        for file in files:
            for case in file.eval.cases:
                yield Chosen(agent, file, case)


def select(
    cases: Iterable[Chosen],
    *,
    names: Sequence[str] = (),
    tags: Sequence[str] = (),
    keys: Collection[str] | None = None,
) -> list[Chosen]:
    """The cases that are wanted.

    Args:
        names: of evals, or `eval/label`; empty for all.
        tags: of evals, one of which they must have; empty for all.
        keys: only these; None for all.
    """
    return [
        each
        for each in cases
        if (not names or each.name in names or each.file.eval.name in names)
        and (not tags or not set(tags).isdisjoint(each.file.eval.tags))
        and (keys is None or each.key in keys)
    ]


def unknown_name(cases: Iterable[Chosen], names: Sequence[str]) -> tuple[str, list[str]] | None:
    """The first of `names` that names nothing, and what there is that is spelled like it; None if all do."""
    known = {name for each in cases for name in (each.name, each.file.eval.name)}
    missing = next((name for name in names if name not in known), None)
    return None if missing is None else (missing, get_close_matches(missing, sorted(known), n=3))
