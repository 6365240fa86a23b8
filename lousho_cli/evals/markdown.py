"""A report as Markdown, made for a comment on a pull request: what is wrong first, the rest folded away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .._version import __version__
from .results import CaseResult, Report

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~@&-])")
_LONGEST = 300


def to_markdown(report: Report) -> str:
    """The report as a Markdown document. Texts of models and tools are shown as they are, never as markup."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    wrong = [result for result in report.results if report.problems_of(result)]
    yield f"### {'❌' if wrong else '✅'} lousho eval: {_summary(report)}"
    if report.ending == "nothing-done":
        yield ""
        yield "Nothing was run or compared."
    for result in wrong:
        yield ""
        yield f"**{_name(result)}**"
        yield ""
        yield from (f"- {_text(problem)}" for problem in report.problems_of(result))
    yield from _drift(report)
    yield from _table(report)
    yield ""
    yield (
        f"<sub>lousho {_text(__version__)}, mode {report.mode}, {_text(report.started_at)} to "
        f"{_text(report.finished_at)}; {report.compared} compared</sub>"
    )


def _summary(report: Report) -> str:
    parts = [f"{report.count('passed')} passed", f"{report.count('failed')} failed"]
    parts += [f"{report.count('skipped')} not recorded"] * bool(report.count("skipped"))
    parts += [f"{report.left_out} not begun"] * bool(report.left_out)
    if report.compared:
        parts += [f"{report.drifted} drifted", f"{report.flaky} flaky"]
    return ", ".join(parts)


def _drift(report: Report) -> Iterator[str]:
    drifted = [result for result in report.results if result.drift]
    if not drifted:
        return
    yield from ("", "| eval | case | field | committed | current |", "| --- | --- | --- | --- | --- |")
    for result in drifted:
        for each in result.drift:
            cells = (result.eval, result.case, each.field, each.committed, each.current)
            yield f"| {' | '.join(map(_text, cells))} |"
    changes = [
        change for each in drifted if each.comparison is not None for change in each.comparison.agent_changes
    ]
    if changes:
        yield ""
        yield "What changed in the agents since the recordings:"
        yield ""
        yield from (f"- {_text(change)}" for change in dict.fromkeys(changes))


def _table(report: Report) -> Iterator[str]:
    yield from ("", f"<details><summary>{len(report.results)} cases</summary>", "")
    yield from ("| case | result | similarity | seconds |", "| --- | --- | --- | --- |")
    for result in report.results:
        yield f"| {_name(result)} | {_verdict(result)} | {_similarity(result)} | {result.seconds:.1f} |"
    if report.compared:
        yield ""
        yield "Left out of what is compared: " + _joined([what for what, _ in report.normalised]) + "."
    yield from ("", "</details>")


def _verdict(result: CaseResult) -> str:
    notes: list[str] = [result.status]
    notes += ["drifted"] * bool(result.drift) + ["flaky"] * result.is_flaky
    notes += ["declining"] * (result.trend is not None and result.trend.declines)
    notes += [f"soft: {_text(each.message)}" for each in result.warnings]
    return ", ".join(notes)


def _similarity(result: CaseResult) -> str:
    return "" if result.comparison is None else f"{result.comparison.stability.score:.2f}"


def _name(result: CaseResult) -> str:
    return _text(f"{result.eval}/{result.case}")


def _joined(texts: Sequence[str]) -> str:
    return ", ".join(map(_text, texts))


def _text(text: str) -> str:
    """A text on one line, in which nothing is markup, nobody is mentioned and nothing is linked."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return _SPECIAL.sub(r"\\\1", " ".join(short.split())).replace("://", ":\\//")
