"""Reports: what counts as green, JUnit as other programs read it, and the order of running."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from junitparser import Failure as JUnitFailure
from junitparser import JUnitXml, Skipped
from markdown_it import MarkdownIt
from ways import call, comparison, way

from lousho_cli.evals.html_page import to_html
from lousho_cli.evals.junit import to_junit
from lousho_cli.evals.last_failed import after
from lousho_cli.evals.markdown import to_markdown
from lousho_cli.evals.outcome import Failure
from lousho_cli.evals.pool import run_all
from lousho_cli.evals.results import CaseResult, Mode, Report

PASSED = CaseResult("bot", "one", "a", "passed", seconds=0.5, comparison=comparison(way(), way()))
FAILED = replace(
    PASSED, case="b", status="failed", failures=(Failure("called", "x was not <called> \x1b\ud800"),)
)
SKIPPED = CaseResult("bot", "two", "c", "skipped")
DRIFTED = replace(
    PASSED, eval="two", case="d", comparison=comparison(way(call("a")), way(call("a", b="]]>")))
)


def report(*results: CaseResult, mode: Mode = "run", strict: bool = False) -> Report:
    return Report(mode, results, 0, "2026-01-31T09:30:00+00:00", "2026-01-31T09:31:00+00:00", strict)


@pytest.mark.parametrize(
    ("results", "mode", "strict", "ending"),
    [
        ([PASSED], "run", False, "passed"),
        ([PASSED, FAILED], "run", False, "failed"),
        ([], "run", False, "nothing-done"),
        ([SKIPPED], "replay", False, "nothing-done"),
        ([SKIPPED, PASSED], "replay", False, "failed"),
        ([SKIPPED, PASSED], "drift", False, "passed"),
        ([SKIPPED, PASSED], "drift", True, "failed"),
        ([SKIPPED, FAILED], "drift", False, "failed"),
        ([DRIFTED], "drift", False, "passed"),
        ([DRIFTED], "drift", True, "failed"),
        ([replace(PASSED, comparison=None)], "drift", False, "nothing-done"),
    ],
)
def test_nothing_done_is_never_green(
    results: list[CaseResult], mode: Mode, strict: bool, ending: str
) -> None:
    assert report(*results, mode=mode, strict=strict).ending == ending


def test_junit_is_read_by_others() -> None:
    document = JUnitXml.fromstring(to_junit(report(PASSED, FAILED, SKIPPED, DRIFTED)))
    suites = list(document)
    assert [(suite.name, suite.tests, suite.failures, suite.skipped) for suite in suites] == [
        ("bot: one", 2, 1, 0),
        ("bot: two", 2, 0, 1),
    ]
    (passed, failed), (skipped, drifted) = suites
    assert (passed.classname, passed.name, passed.time, passed.result) == ("bot.one", "a", 0.5, [])
    (why,) = failed.result
    assert isinstance(why, JUnitFailure)
    assert why.message == "called: x was not <called> \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"
    assert isinstance(skipped.result[0], Skipped)
    assert drifted.result == []
    assert drifted.system_out == 'drift: args: a {} -> a {"b":"]]>"}'


def test_in_junit_what_fails_the_command_is_a_failure() -> None:
    document = JUnitXml.fromstring(to_junit(report(SKIPPED, DRIFTED, PASSED, mode="drift", strict=True)))
    assert (document.tests, document.failures, document.skipped) == (3, 2, 0)


def test_what_was_not_run_keeps_what_was_known_of_it() -> None:
    assert after(["a", "b"], {"a"}, {"c"}) == ["b", "c"]
    assert after(["a"], set(), {"a"}) == ["a"]


def test_results_keep_the_order_of_the_cases_and_come_as_they_end() -> None:
    ended: list[int] = []

    async def main() -> list[int]:
        second_ended = asyncio.Event()

        async def run(item: int) -> int:
            if item == 1:
                await second_ended.wait()
            else:
                second_ended.set()
            return item

        return await run_all([1, 2, 3], run, jobs=2, on_result=ended.append, is_last=lambda _: False)

    assert asyncio.run(main()) == [1, 2, 3]
    assert ended[0] == 2


def test_after_the_last_result_what_runs_comes_to_its_end_and_nothing_is_begun() -> None:
    async def main() -> list[int]:
        begun = asyncio.Event()
        first_ended = asyncio.Event()

        async def run(item: int) -> int:
            if item == 1:
                await begun.wait()
                first_ended.set()
            else:
                begun.set()
                await first_ended.wait()
            return item

        return await run_all(
            [1, 2, 3, 4], run, jobs=2, on_result=lambda _: None, is_last=lambda result: result == 1
        )

    assert asyncio.run(main()) == [1, 2]


def test_what_stops_one_case_stops_all() -> None:
    async def run(item: int) -> int:
        if item == 1:
            raise ValueError("broken")
        await asyncio.Event().wait()
        return item

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(run_all([2, 1, 3], run, jobs=2, on_result=lambda _: None, is_last=lambda _: False))


HOSTILE = replace(
    FAILED,
    case="<script>alert(1)</script> @everyone | `x`",
    failures=(Failure("reply", "said <img src=x> [a](http://b) **c**\n# d"),),
)


class Page(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onclick"}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_needs_nothing_else_and_shows_text_as_text() -> None:
    page = Page(to_html(report(PASSED, HOSTILE, SKIPPED, DRIFTED, mode="drift")))
    assert not set(page.tags) & {"script", "img", "link", "iframe", "a"}
    assert "<script>alert(1)</script>" in page.text
    assert "said <img src=x>" in page.text
    assert "2 passed, 1 failed" in page.text
    assert "2026-01-31T09:31:00+00:00" in page.text
    assert "]]>" in page.text


def test_markdown_says_what_is_wrong_and_holds_no_markup_of_models() -> None:
    text = to_markdown(report(PASSED, HOSTILE, DRIFTED, mode="drift"))
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    page = Page(html)
    assert not set(page.tags) & {"script", "img", "a", "h1", "code"}
    assert "<script>alert(1)</script> @everyone | `x`" in page.text
    assert "2 passed, 1 failed" in page.text
    assert page.tags.count("h3") == 1
    assert "drifted" in page.text


def test_a_report_of_nothing_says_so() -> None:
    assert "Nothing was run" in to_markdown(report())
    assert "Nothing was run" in Page(to_html(report())).text
