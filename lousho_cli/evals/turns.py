"""What a case says, as messages: texts, and files as parts beside them."""

from __future__ import annotations

import base64
import mimetypes
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError
from ..execution.intake import Input
from ..regular_file import read_regular
from .cases import Case, Turn
from .playing import Script

LARGEST_PART = 64 * 1024 * 1024
"""Bytes of the largest file that a message may have as a part."""


def script_of(case: Case, folder: Path) -> Script:
    """What happens in a case. Files are looked up from `folder`.

    Raises:
        ConfigurationError: a file cannot be read; code `LOUSHO_EVALS_INVALID`.
    """
    turns = [message_of(turn, folder) for turn in case.input]
    limits = [turn.max_steps for turn in case.input]
    return Script(turns, dict(case.decisions), case.business_state, limits)


def message_of(turn: Turn, folder: Path) -> Input:
    """What is said in a turn, as a run takes it. Files are looked up from `folder`.

    Raises:
        ConfigurationError: a file cannot be read; code `LOUSHO_EVALS_INVALID`.
    """
    if turn.messages:
        return turn.messages
    if not turn.files:
        return turn.text
    text = [{"type": "text", "text": turn.text}] if turn.text else []
    return {"role": "user", "content": [*text, *(_file_part(folder / name) for name in turn.files)]}


def _file_part(file: Path) -> dict[str, Any]:
    try:
        content = read_regular(file, LARGEST_PART)
    except OSError as error:
        raise ConfigurationError(
            f"the file {file} cannot be read: {error.strerror}",
            code="LOUSHO_EVALS_INVALID",
            hint="files of a turn are looked up beside the eval",
        ) from error
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    uri = f"data:{kind};base64,{base64.b64encode(content).decode()}"
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": uri}}
    return {"type": "file", "file": {"filename": file.name, "file_data": uri}}
