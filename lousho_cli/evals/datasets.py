"""Cases made of the rows of a file: a case with a `dataset` stands for one case a row."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..toml_file import read_text

Row = Mapping[str, Any]
_COLUMN = re.compile(r"\{\{|\}\}|\{([A-Za-z_][\w -]*)\}")


class UnknownColumnError(ValueError):
    """A template names a column that a row does not have."""


def read_rows(file: Path) -> list[Row]:
    """The rows of a `.csv` file (its cells are texts) or a `.jsonl` file (an object a line).

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is neither, or a line is wrong; says which.
        SDKError: it cannot be read.
    """
    content = read_text(file)
    if file.suffix.lower() == ".csv":
        return list(_csv_rows(content))
    if file.suffix.lower() == ".jsonl":
        return list(_json_rows(content))
    raise ValueError("a dataset is a .csv or a .jsonl file")


def fill(template: Any, row: Row) -> Any:
    """`template` with `{column}` in its texts replaced by the row's value; `{{` and `}}` are braces.

    A text that is one column and nothing else becomes the value itself, of its own type.

    Raises:
        UnknownColumnError: the row has no such column.
    """
    if isinstance(template, str):
        return _fill_text(template, row)
    if isinstance(template, Mapping):
        return {_text(_fill_text(key, row)): fill(value, row) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(value, row) for value in template]
    return template


def _fill_text(template: str, row: Row) -> Any:
    whole = _COLUMN.fullmatch(template)
    if whole is not None and whole[1]:
        return _value(whole[1], row)

    def replaced(match: re.Match[str]) -> str:
        return _text(_value(match[1], row)) if match[1] else match[0][0]

    return _COLUMN.sub(replaced, template)


def _value(column: str, row: Row) -> Any:
    if column in row:
        return row[column]
    close = get_close_matches(column, list(row), n=1)
    advice = f"did you mean {{{close[0]}}}? " if close else "for braces write {{ and }}; "
    raise UnknownColumnError(f"there is no column {column!r}; {advice}columns: {', '.join(row)}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _csv_rows(content: str) -> Iterator[Row]:
    reader = csv.DictReader(io.StringIO(content), strict=True)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(f"line {reader.line_num} has not as many cells as there are columns")
            yield dict(row)
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error


def _json_rows(content: str) -> Iterator[Row]:
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number} is no JSON: {error}") from error
        if not isinstance(row, dict):
            raise ValueError(f"line {number} holds no object")
        yield row
