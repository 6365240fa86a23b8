"""Reports: what counts as green, JUnit as other programs read it, and the order of running."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from junitparser import Failure as JUnitFailure
from junitparser import JUnitXml, Skipped
from ways import call, comparison, way

from lousho_cli.evals.junit import to_junit
from lousho_cli.evals.last_failed import after
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
