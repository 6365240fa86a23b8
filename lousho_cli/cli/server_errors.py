"""What MCP servers write to their standard error, on ours: with `--verbose`."""

from __future__ import annotations

import logging

from .output import notice

_LOGGER = "lousho.mcp"


class _Notices(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        notice(record.getMessage())


def show_server_errors() -> None:
    """From now on, print each line as `NAME: line`."""
    logger = logging.getLogger(_LOGGER)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.handlers = [_Notices()]
