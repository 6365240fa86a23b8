"""Cassettes: model calls and their answers, kept in a file for replays.

    {
      "version": 1,
      "runs": [
        {
          "calls": [
            {
              "key": "<SHA-256 of the canonical request>",
              "model": "<the model asked>",
              "request": {"messages": [...], "tools": [...], "settings": {...}},
              "response": {"content": "...", "toolCalls": [...], "usage": {...}, ...}
            },
            {
              "key": "...",
              "model": "...",
              "request": {"continues": 1, "messages": [...]},
              "response": {...}
            }
          ],
          "data": {...}
        }
      ],
      "data": {...}
    }

A request that goes on with the transcript of an earlier call of its run says which one it `continues`,
counted from 1, and holds only the messages since, the model's turn among them; tools and settings are that
one's. A response is the model's turn as it came. `data`, of the whole or of a run, is what the cassette's
maker keeps there; it is left out where it is empty.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..errors import CassetteError
from ..execution.messages import JsonObject
from ..execution.records import ModelResponse
from ..execution.values import clean
from .cassette_file import read_json, write_json
from .cassette_request import CanonicalRequest

VERSION = 1
LONGEST_NAME = 80

_RESERVED = re.compile(r"con|prn|aux|nul|com\d|lpt\d")


@dataclass(eq=False)
class RecordedCall:
    """One call of a model.

    Attributes:
        key: of the canonical request.
        request: what was asked.
        response: the model's turn, as JSON; None while it is waited for.
        model: the model that was asked, or None.
    """

    key: str
    request: CanonicalRequest
    response: JsonObject | None
    model: str | None = None


@dataclass(eq=False)
class CassetteRun:
    """The model calls of one run, in the order they were asked.

    Attributes:
        calls: the calls.
        data: JSON that its maker keeps with the run.
    """

    calls: list[RecordedCall] = field(default_factory=list)
    data: JsonObject = field(default_factory=dict)


@dataclass(eq=False)
class Cassette:
    """What a cassette file holds.

    Attributes:
        runs: one or several runs.
        data: JSON that its maker keeps with the whole.
    """

    runs: list[CassetteRun] = field(default_factory=list)
    data: JsonObject = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Cassette | None:
        """The cassette in a file; None if there is no file.

        Raises:
            CassetteError: it is no cassette, a damaged one, or one of a newer version.
            StorageError: it cannot be read.
        """
        found = read_json(path)
        return None if found is None else _Reader(path).cassette(clean(found))

    def save(self, path: Path) -> None:
        """Put the cassette into a file, in one step: the old content or the new, never a part.

        Raises:
            CassetteError: it is too large to be read again.
            StorageError: it cannot be written.
        """
        write_json(
            path, {"version": VERSION, "runs": [_run_json(run) for run in self.runs], **_data(self.data)}
        )


def slug(label: str) -> str:
    """A file name for a label, without an ending: `Forty two!` is `forty-two`.

    Letters and digits stay, in lower case; anything else is a dash. A label of which too little is left, or
    too much, and a name that Windows keeps for itself, get a hash of the label. Different labels may have
    the same name.
    """
    name = "-".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFC", label).lower()))
    if name and len(name.encode()) <= LONGEST_NAME and not _RESERVED.fullmatch(name):
        return name
    short = name.encode()[: LONGEST_NAME - 9].decode("utf-8", "ignore").rstrip("-") or "case"
    return f"{short}-{hashlib.sha256(label.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _run_json(run: CassetteRun) -> JsonObject:
    answered = [call for call in run.calls if call.response is not None]
    numbers = {id(call.request): number for number, call in enumerate(answered, 1)}
    return {"calls": [_call_json(call, numbers) for call in answered], **_data(run.data)}


def _call_json(call: RecordedCall, numbers: dict[int, int]) -> JsonObject:
    request = call.request
    written: JsonObject = {"messages": request.messages, "tools": request.tools, "settings": request.settings}
    if request.base is not None:
        written = {"continues": numbers[id(request.base)], "messages": request.messages}
    return {"key": call.key, "model": call.model, "request": written, "response": call.response}


def _data(data: JsonObject) -> JsonObject:
    return {"data": data} if data else {}


class _Reader:
    """Checks what a file holds on the way into records."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def cassette(self, value: Any) -> Cassette:
        version = value.get("version") if isinstance(value, dict) else None
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise self._error("it is no cassette: it says no `version`")
        if version > VERSION:
            raise CassetteError(
                f"the cassette {self._path} is of version {version}, and this lousho knows {VERSION}",
                hint="use the newer version",
            )
        fields = self._object(value, "the cassette", ("version", "runs"), ("data",))
        runs = self._list(fields["runs"], "runs")
        return Cassette(
            [self._run(run, f"runs[{n}]") for n, run in enumerate(runs)],
            self._object(fields.get("data", {}), "data"),
        )

    def _run(self, value: Any, where: str) -> CassetteRun:
        fields = self._object(value, where, ("calls",), ("data",))
        run = CassetteRun(data=self._object(fields.get("data", {}), f"{where}.data"))
        for n, call in enumerate(self._list(fields["calls"], f"{where}.calls")):
            run.calls.append(self._call(call, f"{where}.calls[{n}]", run.calls))
        return run

    def _call(self, value: Any, where: str, earlier: list[RecordedCall]) -> RecordedCall:
        fields = self._object(value, where, ("key", "model", "request", "response"))
        key, model, response = fields["key"], fields["model"], fields["response"]
        if not isinstance(key, str) or not re.fullmatch(r"[0-9a-f]{64}", key):
            raise self._error(f"{where}.key is no SHA-256")
        if model is not None and not isinstance(model, str):
            raise self._error(f"{where}.model is no text")
        try:
            ModelResponse.model_validate(self._object(response, f"{where}.response"))
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"])
            raise self._error(f"{where}.response{place}: {problem['msg']}") from error
        return RecordedCall(
            key, self._request(fields["request"], f"{where}.request", earlier), response, model
        )

    def _request(self, value: Any, where: str, earlier: list[RecordedCall]) -> CanonicalRequest:
        if isinstance(value, dict) and "continues" in value:
            fields = self._object(value, where, ("continues", "messages"))
            number = fields["continues"]
            if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(earlier):
                raise self._error(f"{where}.continues is no number of an earlier call")
            base = earlier[number - 1].request
            return CanonicalRequest(self._objects(fields, where, "messages"), base.tools, base.settings, base)
        fields = self._object(value, where, ("messages", "tools", "settings"))
        return CanonicalRequest(
            self._objects(fields, where, "messages"),
            self._objects(fields, where, "tools"),
            self._object(fields["settings"], f"{where}.settings"),
        )

    def _objects(self, fields: JsonObject, where: str, name: str) -> list[JsonObject]:
        items = self._list(fields[name], f"{where}.{name}")
        return [self._object(item, f"{where}.{name}[{n}]") for n, item in enumerate(items)]

    def _object(
        self, value: Any, where: str, required: Iterable[str] = (), optional: Iterable[str] | None = None
    ) -> JsonObject:
        """An object; with fields named, of exactly these."""
        if not isinstance(value, dict):
            raise self._error(f"{where} is no object")
        needed = set(required)
        if missing := needed - value.keys():
            raise self._error(f"{where} has no `{min(missing)}`")
        if (needed or optional) and (unknown := value.keys() - needed - set(optional or ())):
            raise self._error(f"{where} has an unknown field `{min(unknown)}`")
        return value

    def _list(self, value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise self._error(f"{where} is no list")
        return value

    def _error(self, problem: str) -> CassetteError:
        return CassetteError(
            f"the cassette {self._path} cannot be used: {problem}",
            hint="restore it from version control, or delete it and record it again",
        )
