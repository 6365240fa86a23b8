"""What a server writes to its standard error: its last lines are kept, and none is put on our terminal."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from typing import TextIO

LINES_KEPT = 20
MAX_LINE_BYTES = 4096

logger = logging.getLogger("lousho.mcp")


class ErrorOutput:
    """The standard error of one process. Each line is logged at level INFO as `NAME: line`.

    Attributes:
        stream: for the process; close it with `handed_over` once it has been started.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        reading, writing = os.pipe()
        self.stream: TextIO = os.fdopen(writing, "w", encoding="utf-8")
        # A daemon: a process that the server left behind may hold the pipe open for ever.
        self._reader = threading.Thread(
            target=self._read, args=(reading,), name="lousho-mcp-stderr", daemon=True
        )
        self._reader.start()

    def handed_over(self) -> None:
        """The process has the stream, or there is none: the end of its output is the end of the process."""
        self.stream.close()

    async def last_line(self) -> str:
        """The last line that is not blank, or nothing. What an ended process has written is waited for."""
        await asyncio.to_thread(self._reader.join, 0.5)
        return next((line for line in reversed(self._lines) if line), "")

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, "rb") as stream:
            while line := stream.readline(MAX_LINE_BYTES):
                text = line.decode("utf-8", "replace").strip()
                self._lines.append(text)
                logger.info("%s: %s", self._name, text)
