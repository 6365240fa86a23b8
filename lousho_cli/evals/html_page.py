"""A report as one HTML page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from itertools import zip_longest

from .._version import __version__
from ..execution.steps import Step
from .results import CaseResult, Comparison, Report

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --ok: #1a7f37; --bad: #cf222e; --warn: #9a6700 }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
h1 { font-size: 1.4rem } code, pre { font: 13px/1.45 ui-monospace, monospace }
table { border-collapse: collapse; width: 100% } td, th { border-bottom: 1px solid var(--line);
  padding: .3rem .6rem; text-align: left; vertical-align: top; overflow-wrap: anywhere }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem }
summary { cursor: pointer } .passed { color: var(--ok) } .failed { color: var(--bad) }
.skipped, .flaky, .drifted, .soft { color: var(--warn) } .other { background: #f5c51833 }
.bar { background: var(--line); border-radius: 3px; display: inline-block; height: .6rem; width: 6rem }
.bar i { background: currentColor; border-radius: 3px; display: block; height: 100% } pre { margin: 0;
  white-space: pre-wrap }
"""


def to_html(report: Report) -> str:
    """The report as an HTML document. Texts of models and tools are shown as they are, never as markup."""
    title = f"lousho eval: {report.count('passed')} passed, {report.count('failed')} failed"
    body = "\n".join(_body(report, title))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _body(report: Report, title: str) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    facts = [
        ("mode", report.mode),
        ("begun", report.started_at),
        ("ended", report.finished_at),
        ("lousho", __version__),
        ("not recorded", str(report.count("skipped"))),
        ("not begun", str(report.left_out)),
        ("compared", str(report.compared)),
        ("drifted", str(report.drifted)),
        ("flaky", str(report.flaky)),
        ("declining", str(report.declining)),
    ]
    yield _table([], [[escape(name), escape(value)] for name, value in facts])
    if report.ending == "nothing-done":
        yield '<p class="failed">Nothing was run or compared.</p>'
    for result in report.results:
        yield from _case(report, result)
    if report.compared:
        yield "<h2>Left out of what is compared</h2>"
        rows = [[_code(what), _code(becomes)] for what, becomes in report.normalised]
        yield _table(["what", "becomes"], rows)


def _case(report: Report, result: CaseResult) -> Iterator[str]:
    problems = report.problems_of(result)
    kinds = [result.status, *["drifted"] * bool(result.drift), *["flaky"] * result.is_flaky]
    badges = " ".join(f'<span class="{kind}">{kind}</span>' for kind in kinds)
    name = escape(f"{result.agent}: {result.eval}/{result.case}")
    yield f"<details{' open' if problems or result.drift else ''}>"
    yield f"<summary>{badges} <b>{name}</b> {_similarity(result)}</summary>"
    yield _list("failed", problems)
    yield _list("soft", [f"{each.check}: {each.message}" for each in result.warnings])
    if result.drift:
        rows = [[escape(each.field), _code(each.committed), _code(each.current)] for each in result.drift]
        yield _table(["field", "committed", "current"], rows)
    if result.comparison is not None:
        yield _list("drifted", result.comparison.agent_changes)
        yield from _parting(result.comparison)
    yield f"<p>{result.seconds:.2f} s, {result.runs} recorded</p></details>"


def _parting(comparison: Comparison) -> Iterator[str]:
    """The two runs side by side, where they are not alike."""
    if not comparison.parts:
        return
    parted = comparison.stability.likeness.parted_at
    rows = [
        [str(number), _step(committed, number == parted), _step(current, number == parted)]
        for number, (committed, current) in enumerate(
            zip_longest(comparison.committed, comparison.current), 1
        )
    ]
    yield _table(["step", "committed", "current"], rows)


def _step(step: Step | None, parts: bool) -> str:
    if step is None:
        return ""
    lines = [f"{tool.name} {json.dumps(tool.args, ensure_ascii=False)}" for tool in step.tools]
    text = "\n".join([*lines, *([step.text] if step.text else [])])
    look = ' class="other"' if parts else ""
    return f"<pre{look}>{escape(text)}</pre>"


def _similarity(result: CaseResult) -> str:
    if result.comparison is None:
        return ""
    score = result.comparison.stability.score
    return f'<span class="bar" title="similarity"><i style="width:{score:.0%}"></i></span> {score:.2f}'


def _list(kind: str, texts: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<ul class="{kind}">{items}</ul>' if items else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{f'<tr>{cells}</tr>' if cells else ''}{body}</table>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"
