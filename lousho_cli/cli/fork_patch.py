"""What the options of `lousho fork` say is to be changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from ..execution.log import Log
from ..execution.messages import MessageData
from .run_options import parse_json
from .streams import read_message

if TYPE_CHECKING:
    from ..execution.fork_stores import ForkSource
    from ..execution.state import Record


@dataclass(frozen=True, slots=True)
class Changes:
    """What to change. None and UNSET: not given.

    Attributes:
        tool_result: a call's id or a tool's name, and the result as a JSON value.
        append_input: what to say behind the calls that are open there.
        messages: the transcript to use instead.
        business_state: any JSON value.
    """

    tool_result: tuple[str, Any] | None
    append_input: str | None
    messages: list[MessageData] | None
    business_state: Any


def read_options(
    tool_result: str | None, append_input: str | None, messages: str | None, business_state: str | None
) -> Changes:
    """The changes of a command line. Of its texts, `-` reads standard input.

    Raises:
        ConfigurationError: one of them is wrong.
    """
    if messages == append_input == "-":
        raise ConfigurationError(
            "--messages and --append-input cannot both read standard input", hint="give one of them a value"
        )
    text = read_message(append_input)
    if text is not None and not text.strip():
        raise ConfigurationError("--append-input is empty", hint="say something, or leave it out")
    return Changes(
        None if tool_result is None else _tool_result(tool_result),
        text,
        None if messages is None else _messages(messages),
        parse_json(business_state, "--business-state"),
    )


def patched(source: ForkSource, changes: Changes) -> Record:
    """The first save of a fork of `source` with these changes, the tool named resolved to its call.

    Raises:
        ConfigurationError: no call or several calls of that name were made up to there.
    """
    from ..execution.forking import call_named, fork_record
    from ..execution.records import ForkPatch

    patch: dict[str, Any] = {"append_input": changes.append_input, "business_state": changes.business_state}
    replaced = changes.messages
    if replaced is not None:
        patch["messages"] = lambda stored: replaced
    if changes.tool_result is not None:
        name, result = changes.tool_result
        log = source.read().log if replaced is None else Log(m for m in replaced if m["role"] != "system")
        patch["tool_result"] = {"tool_call_id": call_named(log, name), "result": result}
    return fork_record(source, ForkPatch.of(patch))


def _tool_result(given: str) -> tuple[str, Any]:
    """`CALL=JSON` in two. A call's id may hold `=` itself: the first one with JSON behind it counts."""
    start = given.find("=")
    if start < 1:
        raise ConfigurationError(
            f"--tool-result {given!r} is not CALL=JSON",
            hint='for example get_weather=\'{"forecast": "rain"}\'',
        )
    while start > 0:
        try:
            return given[:start], parse_json(given[start + 1 :], "--tool-result")
        except ConfigurationError:
            start = given.find("=", start + 1)
    call, _, text = given.partition("=")
    raise ConfigurationError(
        f"--tool-result {call}: {text!r} is not JSON",
        hint=f"a text needs double quotes: --tool-result {call}='{json.dumps(text, ensure_ascii=False)}'",
    )


def _messages(file: str) -> list[MessageData]:
    from pydantic import ValidationError

    from ..execution.conversation import plain

    where = "standard input" if file == "-" else file
    try:
        data = json.loads(_read(file))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"--messages: {where} is not JSON: {error}", hint=_MESSAGES_HINT) from error
    if not isinstance(data, list):
        raise ConfigurationError(f"--messages: {where} is not a JSON list", hint=_MESSAGES_HINT)
    found = []
    for number, message in enumerate(data, 1):
        try:
            found.append(plain(message))
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(map(str, problem["loc"]))
            raise ConfigurationError(
                f"--messages: message {number} of {where}: {place}: {problem['msg']}", hint=_MESSAGES_HINT
            ) from error
    return found


_MESSAGES_HINT = 'give a list as in "messages" of lousho show SESSION --json'


def _read(file: str) -> str:
    if file == "-":
        return read_message(file) or ""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"--messages: {file} cannot be read: {why}") from error
