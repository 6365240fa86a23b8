"""What a docstring says about a function and its parameters, in Google, reST or NumPy style."""

from __future__ import annotations

import inspect
import itertools
import re
from dataclasses import dataclass, field

_GOOGLE_PARAMETERS = {
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
}
_GOOGLE_OTHERS = {
    "attributes",
    "example",
    "examples",
    "note",
    "notes",
    "raises",
    "references",
    "return",
    "returns",
    "see also",
    "todo",
    "warning",
    "warnings",
    "warns",
    "yield",
    "yields",
}
_GOOGLE_HEADER = re.compile(r"([A-Za-z][A-Za-z ]*):\s*$")
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:(?:\s+(.*))?$")
_REST_FIELD = re.compile(r":(\w+)(?:\s+([^:]*?))?:(?:\s+(.*))?$")
_REST_PARAMETERS = {"param", "parameter", "arg", "argument", "key", "keyword"}
_NUMPY_LINE = re.compile(r"-{3,}\s*$")
_NUMPY_PARAMETERS = {"parameters", "other parameters"}
_NUMPY_ITEM = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")


@dataclass(slots=True)
class Documentation:
    """A docstring, taken apart.

    Attributes:
        description: the text before the first section, possibly empty.
        parameters: what is said about each parameter, on one line.
    """

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Section:
    style: str
    holds_parameters: bool
    lines: list[str] = field(default_factory=list)


def read_docstring(docstring: str | None) -> Documentation:
    """Take a docstring apart. Text that follows no style is all description."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    description: list[str] = []
    sections: list[_Section] = []
    index = 0
    while index < len(lines):
        section, used = _header(lines, index)
        if section is not None:
            sections.append(section)
        elif sections:
            sections[-1].lines.append(lines[index])
        else:
            description.append(lines[index])
        index += used
    documentation = Documentation("\n".join(description).strip())
    for section in sections:
        if section.holds_parameters:
            _read(section, documentation.parameters)
    return documentation


def _header(lines: list[str], index: int) -> tuple[_Section | None, int]:
    """The section that starts at a line, and how many lines its header takes; or None and 1."""
    line = lines[index]
    following = lines[index + 1] if index + 1 < len(lines) else ""
    if line.strip() and _NUMPY_LINE.match(following):
        return _Section("numpy", line.strip().lower() in _NUMPY_PARAMETERS), 2
    google = _GOOGLE_HEADER.match(line)
    name = google[1].strip().lower() if google else ""
    if name in _GOOGLE_PARAMETERS or name in _GOOGLE_OTHERS:
        return _Section("google", name in _GOOGLE_PARAMETERS), 1
    rest = _REST_FIELD.match(line)
    if rest:
        return _Section("rest", rest[1] in _REST_PARAMETERS, [line]), 1
    return None, 1


def _read(section: _Section, parameters: dict[str, str]) -> None:
    if section.style == "rest":
        match = _REST_FIELD.match(section.lines[0])
        words = (match[2] or "").split() if match else []
        if match and words:
            more = itertools.takewhile(str.strip, section.lines[1:])
            _add(parameters, words[-1], [match[3] or "", *more])
        return
    item = _GOOGLE_ITEM if section.style == "google" else _NUMPY_ITEM
    indent = next((_indent(line) for line in section.lines if line.strip()), 0)
    names: list[str] = []
    text: list[str] = []
    for line in section.lines:
        if line.strip() and _indent(line) < indent:
            break
        match = item.match(line.strip()) if line.strip() and _indent(line) == indent else None
        if match is None:
            text.append(line)
            continue
        for name in names:
            _add(parameters, name, text)
        names = [name.strip() for name in match[1].split(",")]
        text = [match[2] or ""] if section.style == "google" else []
    for name in names:
        _add(parameters, name, text)


def _add(parameters: dict[str, str], name: str, lines: list[str]) -> None:
    text = " ".join(" ".join(lines).split())
    if text:
        parameters.setdefault(name.lstrip("*\\"), text)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
