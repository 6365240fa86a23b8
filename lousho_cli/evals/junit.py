"""A report as JUnit XML, which CI servers show: a test suite for each eval, a test case for each case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree

from .results import CaseResult, Report

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: Report) -> bytes:
    """The report as an XML document. Drift that fails nothing is the output of its test case."""
    root = ElementTree.Element("testsuites", _counts("lousho eval", report.results, report))
    for (agent, name), results in groupby(report.results, key=lambda each: (each.agent, each.eval)):
        cases = list(results)
        suite = ElementTree.SubElement(root, "testsuite", _counts(f"{agent}: {name}", cases, report))
        suite.set("timestamp", report.started_at.removesuffix("Z").partition("+")[0])
        if report.compared:
            properties = ElementTree.SubElement(suite, "properties")
            for what, becomes in report.normalised:
                ElementTree.SubElement(
                    properties, "property", {"name": "not compared", "value": _clean(f"{what} ({becomes})")}
                )
        suite.extend(_test_case(case, report) for case in cases)
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _test_case(result: CaseResult, report: Report) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        {
            "classname": _clean(f"{result.agent}.{result.eval}"),
            "name": _clean(result.case),
            "time": f"{result.seconds:.3f}",
        },
    )
    problems = report.problems_of(result)
    if problems:
        failure = ElementTree.SubElement(case, "failure", {"message": _clean(problems[0])})
        failure.text = _clean("\n".join(problems))
    elif result.status == "skipped":
        ElementTree.SubElement(case, "skipped", {"message": "nothing is recorded"})
    told = [f"drift: {each.field}: {each.committed} -> {each.current}" for each in result.drift]
    if result.comparison is not None:
        found = result.comparison.stability
        told += [f"flaky: {found.as_recorded} of {found.new} new runs went as recorded"] * result.is_flaky
        told += [f"agent: {change}" for change in result.comparison.agent_changes]
    told += [f"soft: {each.check}: {each.message}" for each in result.warnings]
    if told:
        ElementTree.SubElement(case, "system-out").text = _clean("\n".join(told))
    return case


def _counts(name: str, results: Sequence[CaseResult], report: Report) -> dict[str, str]:
    failed = [result for result in results if report.problems_of(result)]
    return {
        "name": _clean(name),
        "tests": str(len(results)),
        "failures": str(len(failed)),
        "errors": "0",
        "skipped": str(sum(each.status == "skipped" and each not in failed for each in results)),
        "time": f"{sum(result.seconds for result in results):.3f}",
    }


def _clean(text: str) -> str:
    """Text without the characters that XML cannot carry."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
