"""Errors at the edge: one short paragraph or one JSON object, and an exit code; never a traceback."""

from __future__ import annotations

import errno
import json
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import typer

from ..errors import (
    AgentChangedError,
    ConfigurationError,
    NotFoundError,
    SDKError,
    SessionAwaitingApprovalError,
    SessionBusyError,
    StorageError,
)
from ..render.text import escape_json
from .output import OutputFailed, notice, print_json

FAILED, WRONG_USAGE, AWAITING_APPROVAL, NOT_FOUND, BUSY, AGENT_CHANGED, STORAGE, NOTHING_DONE = range(1, 9)
INTERRUPTED = 130
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)

_BY_CODE = {
    "LOUSHO_SESSION_AWAITING_APPROVAL": AWAITING_APPROVAL,
    "LOUSHO_SESSION_NOT_FOUND": NOT_FOUND,
    "LOUSHO_CHECKPOINT_NOT_FOUND": NOT_FOUND,
    "LOUSHO_APPROVAL_NOT_FOUND": NOT_FOUND,
    "LOUSHO_AGENT_NOT_FOUND": NOT_FOUND,
    "LOUSHO_SESSION_BUSY": BUSY,
    "LOUSHO_AGENT_DRIFT": AGENT_CHANGED,
    "LOUSHO_RESUME_TOOL_MISSING": AGENT_CHANGED,
    "LOUSHO_STORAGE_FAILED": STORAGE,
    "LOUSHO_SESSION_FILE_CORRUPT": STORAGE,
    "LOUSHO_CHECKPOINT_VERSION": STORAGE,
    "LOUSHO_PROVIDER_MISSING_API_KEY": WRONG_USAGE,
    "LOUSHO_PEER_MISSING": WRONG_USAGE,
    "LOUSHO_CASSETTE_INVALID": WRONG_USAGE,
}
_BY_CLASS: dict[type[SDKError], int] = {
    ConfigurationError: WRONG_USAGE,
    SessionAwaitingApprovalError: AWAITING_APPROVAL,
    NotFoundError: NOT_FOUND,
    SessionBusyError: BUSY,
    AgentChangedError: AGENT_CHANGED,
    StorageError: STORAGE,
}


def exit_code(error: SDKError) -> int:
    """The exit code of a deliberate error: by its code where that says enough, else by its class."""
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    return next((code for kind, code in _BY_CLASS.items() if isinstance(error, kind)), FAILED)


def guarded(action: Callable[[], int | None], *, as_json: bool, verbose: bool) -> int:
    """Run `action` and return its exit code, or report its error and return that one's.

    An output that cannot be written is left to the caller: nothing more can be said there.
    """
    try:
        return action() or 0
    except typer.Exit as asked:
        return asked.exit_code
    except (KeyboardInterrupt, typer.Abort):
        notice("interrupted")
        return INTERRUPTED
    except (BrokenPipeError, OutputFailed):
        raise
    except Exception as error:
        if verbose:
            notice("".join(traceback.format_exception(error)))
        return _report(_describe(error), as_json)


def error_line(error: SDKError) -> str:
    """A deliberate error as one line of JSON."""
    data = {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    return escape_json(json.dumps(data)) + "\n"


@dataclass(frozen=True, slots=True)
class _Report:
    code: str
    message: str
    hint: str
    exit_code: int


def _report(report: _Report, as_json: bool) -> int:
    if as_json:
        print_json({"error": {"code": report.code, "message": report.message, "hint": report.hint}})
    else:
        hint = f" {_sentence(report.hint)}" if report.hint else ""
        notice(f"{_sentence(report.message)} [{report.code}]{hint}")
    return report.exit_code


def _describe(error: Exception) -> _Report:
    if isinstance(error, SDKError):
        attempts = getattr(error, "attempts", 1)
        tried = f" (asked {attempts} times)" if attempts > 1 else ""
        return _Report(error.code, error.message + tried, error.hint, exit_code(error))
    if isinstance(error, typer.TyperException):
        context: typer.Context | None = getattr(error, "ctx", None)
        path = context.command_path if context else "lousho"
        message = _without_type(error.format_message())
        return _Report("LOUSHO_USAGE_INVALID", message, f"see {path} --help", error.exit_code)
    if isinstance(error, OSError) and isinstance(error.filename, str | os.PathLike):
        from ..stores.files import storage_error

        return _describe(storage_error(Path(error.filename), "used", error))
    if isinstance(error, OSError) and error.errno in _FULL:
        # What the stores write has errors of their own: this is the output.
        text = f"the output could not be written: {error.strerror}"
        return _Report("LOUSHO_STORAGE_FAILED", text, "free some space, then run the command again", STORAGE)
    return _Report(
        "LOUSHO_INTERNAL",
        f"unexpected {''.join(traceback.format_exception_only(error)).strip()}",
        "this is a fault in lousho: run the command again with --verbose and report what it shows",
        FAILED,
    )


def _without_type(message: str) -> str:
    """Typer's message without the name of the exception that its validation raised."""
    return message.replace("Value error, ", "")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", ")")) else f"{text}."
