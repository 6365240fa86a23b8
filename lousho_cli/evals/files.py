"""Reading the eval files of an agent, strictly: what is wrong is told with its file and line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..agents.definition import list_folder
from ..errors import ConfigurationError, SDKError
from ..providers.cassette import slug
from ..toml_file import read_text
from .cases import Eval
from .datasets import UnknownColumnError, fill, read_rows
from .places import line_of

EVALS_FOLDER = "evals"
CASSETTES_FOLDER = "__cassettes__"
Location = Sequence[str | int]


@dataclass(frozen=True, slots=True)
class EvalFile:
    """An eval and the file it is from."""

    path: Path
    eval: Eval

    def cassette(self, label: str) -> Path:
        """Where the recording of the case with that label lies."""
        return self.path.parent / CASSETTES_FOLDER / slug(self.eval.name) / f"{slug(label)}.json"


def read_evals(agent_folder: Path) -> list[EvalFile]:
    """The evals of an agent, by file name; none if it has no folder `evals`.

    Raises:
        ConfigurationError: a file is wrong (`LOUSHO_EVALS_INVALID`), or two evals would share recordings.
        StorageError: a file cannot be read.
    """
    folder = agent_folder / EVALS_FOLDER
    found: list[EvalFile] = []
    names: dict[str, EvalFile] = {}
    for name in list_folder(folder):
        if not name.endswith(".toml") or name.startswith("."):
            continue
        read = read_eval(folder / name)
        first = names.setdefault(slug(read.eval.name), read)
        if first is not read:
            raise ConfigurationError(
                f"{read.path}: the eval {read.eval.name!r} is named like {first.eval.name!r} in {first.path}",
                code="LOUSHO_EVALS_INVALID",
                hint="rename one: names that differ in case or punctuation only would share recordings",
            )
        found.append(read)
    return found


def read_eval(path: Path) -> EvalFile:
    """The eval in a file.

    Raises:
        ConfigurationError: it is wrong; code `LOUSHO_EVALS_INVALID`, with file, line and what to write.
    """
    try:
        content = read_text(path)
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{path} is not there: it vanished, or is a link that leads nowhere",
            code="LOUSHO_EVALS_INVALID",
            hint="take the link away, or restore the file",
        ) from error
    except ConfigurationError as error:
        raise ConfigurationError(str(error), code="LOUSHO_EVALS_INVALID", hint=error.hint) from error
    try:
        table = tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path} is not valid TOML: {error}", code="LOUSHO_EVALS_INVALID", hint="correct the file"
        ) from error
    return EvalFile(path, _Reading(path, content).eval(table))


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a case comes from: which of the file's cases, and which row of which dataset."""

    index: int
    row: str = ""


class _Reading:
    """One file being read."""

    def __init__(self, path: Path, content: str) -> None:
        self._path = path
        self._content = content

    def eval(self, table: Mapping[str, Any]) -> Eval:
        cases, origins = table.get("cases"), []
        if isinstance(cases, list):
            expanded = [each for index, case in enumerate(cases) for each in self._expanded(index, case)]
            cases, origins = [case for _, case in expanded], [origin for origin, _ in expanded]
            table = {**table, "cases": cases}
        try:
            read = Eval.model_validate({"name": self._path.stem, **table})
        except ValidationError as error:
            raise self._invalid(error, origins) from error
        self._check_labels(read, origins)
        return read

    def _expanded(self, index: int, case: Any) -> Iterator[tuple[_Origin, Any]]:
        if not isinstance(case, Mapping) or "dataset" not in case:
            yield _Origin(index), case
            return
        at: Location = ["cases", index, "dataset"]
        template = {key: value for key, value in case.items() if key != "dataset"}
        for number, row in enumerate(self._rows(case["dataset"], at), 1):
            origin = _Origin(index, f"row {number} of {case['dataset']}")
            try:
                filled = fill(template, row)
            except UnknownColumnError as error:
                raise self._error(["cases", index], f"{origin.row}: {error}") from error
            if filled.get("label") == template.get("label"):
                filled["label"] = f"{template.get('label', 'row')} {number}"
            yield origin, filled

    def _rows(self, name: Any, at: Location) -> Sequence[Mapping[str, Any]]:
        if not isinstance(name, str):
            raise self._error(at, f"dataset cannot be {name!r}", hint="it takes a file: rows.jsonl, rows.csv")
        problem = partial(self._error, at)
        try:
            rows = read_rows(self._path.parent / name)
        except FileNotFoundError:
            raise problem(f"there is no file {name}", hint="a dataset lies beside its eval") from None
        except (ValueError, SDKError) as error:
            raise problem(f"dataset {name}: {error}", hint="correct the dataset") from error
        if not rows:
            raise problem(f"dataset {name} has no rows", hint="an eval with nothing to run is never green")
        return rows

    def _check_labels(self, read: Eval, origins: Sequence[_Origin]) -> None:
        labels: dict[str, str] = {}
        for case, origin in zip(read.cases, origins, strict=True):
            first = labels.setdefault(slug(case.label), case.label)
            if first is not case.label:
                raise self._error(
                    ["cases", origin.index, "label"],
                    f"the label {case.label!r} is taken by {first!r}",
                    hint="rename one: labels that differ in case or punctuation only would share recordings",
                )

    def _invalid(self, error: ValidationError, origins: Sequence[_Origin]) -> ConfigurationError:
        problem = error.errors()[0]
        context = problem.get("ctx", {})
        location = list(problem["loc"])
        if problem["type"] == "unknown_key":
            location.append(context["key"])
        row = ""
        if len(location) > 1 and location[0] == "cases" and isinstance(location[1], int):
            origin = origins[location[1]]
            location[1], row = origin.index, f"{origin.row}: " if origin.row else ""
        name = ".".join(str(key) for key in location[2 if location[:1] == ["cases"] else 0 :]) or "cases"
        if "hint" in context:
            return self._error(location, f"{row}{problem['msg']}", hint=context["hint"])
        if problem["type"] == "missing":
            return self._error(location, f"{row}{name} is missing")
        wanted = problem["msg"].removeprefix("Value error, ").replace("tuple", "list")
        hint = wanted[:1].lower() + wanted[1:]
        return self._error(location, f"{row}{name} cannot be {_shown(problem['input'])}", hint=hint)

    def _error(self, location: Location, message: str, hint: str = "see docs/evals.md") -> ConfigurationError:
        line = line_of(self._content, location)
        where = f"{self._path}, line {line}" if line else str(self._path)
        return ConfigurationError(f"{where}: {message}", code="LOUSHO_EVALS_INVALID", hint=hint)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
