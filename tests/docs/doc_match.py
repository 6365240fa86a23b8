"""Compares what a document shows with what a command printed.

What the reader sees differently each time may differ here too, and nothing else:

- `...` stands for any text; alone on a line, for any number of lines;
- an approval id (`ap_` and what follows) stands for a real one, the same one in the whole document;
- an instant, a date, a time of day, an age (`3m ago`, `now`) and a length of time (`40ms`, `1.5s`) each match
  any other of their kind;
- one or more spaces match any number, so that columns may move.
"""

from __future__ import annotations

import re

_APPROVAL_ID = r"\bap_[0-9a-z]+\b"
_VARYING = {
    "instant": r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|\+00:00)",
    "date": r"\b\d{4}-\d{2}-\d{2}\b",
    "time": r"\b\d{2}:\d{2}(?::\d{2})?\b",
    "age": r"\b(?:now|\d+[smhd] ago|in \d+[smhd])\b",
    "length": r"\b(?:\d+ms|\d+\.\d+s|\d+m \d\ds)(?!\w)",
    "gap": r"\.\.\.",
    "space": r"[ \t]+",
}
_MATCHES = {**_VARYING, "gap": r".*?"}
_TOKEN = re.compile(
    "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in {"approval": _APPROVAL_ID, **_VARYING}.items())
)


class ApprovalIds:
    """Which real approval id each id of a document stands for."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}

    def in_command(self, text: str) -> str:
        """`text` with the ids met so far replaced by the real ones."""
        return re.sub(_APPROVAL_ID, lambda match: self._real.get(match[0], match[0]), text)

    def matches(self, shown: str, printed: str) -> bool:
        """Whether `printed` is what the document shows; learns the ids that are new."""
        new: dict[str, str] = {}
        pattern = "".join(self._line_pattern(line, new) for line in _lines(shown))
        match = re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(printed)))
        if match is None:
            return False
        learned = {**self._real, **{shown_id: match[group] for shown_id, group in new.items()}}
        if len(set(learned.values())) < len(learned):
            return False
        self._real = learned
        return True

    def _line_pattern(self, line: str, new: dict[str, str]) -> str:
        if line.strip() == "...":
            return r"(?:.*\n)*?"
        pattern, end = "", 0
        for token in _TOKEN.finditer(line):
            pattern += re.escape(line[end : token.start()]) + self._token_pattern(token, new)
            end = token.end()
        return pattern + re.escape(line[end:]) + r"\n"

    def _token_pattern(self, token: re.Match[str], new: dict[str, str]) -> str:
        if token.lastgroup != "approval":
            return f"(?:{_MATCHES[str(token.lastgroup)]})"
        shown_id = token[0]
        if shown_id in self._real:
            return re.escape(self._real[shown_id])
        if shown_id in new:
            return f"(?P={new[shown_id]})"
        new[shown_id] = f"id{len(new)}"
        return f"(?P<{new[shown_id]}>{_APPROVAL_ID})"


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]
