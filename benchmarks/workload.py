"""The work that everything here is measured on, and what a measurement says.

A run is N turns of one tool call each, about 500 bytes of model text and 500 bytes of result, then an answer.
A save is due for the input, after each model turn, after each result, and at the end: 2N + 2.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

TEXT_BYTES = 500
RESULT_BYTES = 500
TOOL = "look_up"
QUESTION = "Go on until you are done."
ANSWER = "Done."

_WORDS = "the run goes on and each of its steps is on disk before the next one starts; "


def filler(n: int, size: int, what: str) -> str:
    """A text of `size` bytes that no other `n` has."""
    head = f"{what} {n}: "
    return (head + _WORDS * (size // len(_WORDS) + 1))[:size]


def model_text(n: int) -> str:
    return filler(n, TEXT_BYTES, "turn")


def result_text(n: int) -> str:
    return filler(n, RESULT_BYTES, "result")


def call_id(n: int) -> str:
    return f"call_{n}"


def turn(n: int, turns: int) -> dict[str, Any] | str:
    """The n-th model turn, counted from 1: text and one call; the one after the last is the answer."""
    if n > turns:
        return ANSWER
    call = {"name": TOOL, "args": {"n": n}, "id": call_id(n)}
    return {"text": model_text(n), "tool_calls": [call], "usage": {"input_tokens": 900, "output_tokens": 120}}


def saves(turns: int) -> int:
    return 2 * turns + 2


def transcript(turns: int) -> Iterator[dict[str, Any]]:
    """The messages of a whole run, as they are stored."""
    yield {"role": "user", "content": QUESTION}
    for n in range(1, turns + 1):
        function = {"name": TOOL, "arguments": json.dumps({"n": n})}
        call = {"id": call_id(n), "type": "function", "function": function}
        yield {"role": "assistant", "content": model_text(n), "toolCalls": [call]}
        yield {
            "role": "tool", "content": json.dumps(result_text(n)), "toolCallId": call_id(n), "toolName": TOOL,
        }  # fmt: skip
    yield {"role": "assistant", "content": ANSWER}


def transcript_bytes(turns: int) -> int:
    """The size of the transcript as JSON."""
    return 2 + sum(len(json.dumps(message)) + 2 for message in transcript(turns))


@dataclass
class Segments:
    """The wall and CPU seconds of a run, in pieces of equal numbers of turns.

    What is done between the pieces is not counted, so two contenders can take turns on one disk.

    Attributes:
        length: turns in a piece.
    """

    length: int
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    _wall: float = 0.0
    _cpu: float = 0.0

    def start(self) -> None:
        """A piece begins."""
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def stop(self) -> None:
        """A piece ends."""
        self.wall.append(time.perf_counter() - self._wall)
        self.cpu.append(time.process_time() - self._cpu)


def ratio(ours: list[float], bare: list[float]) -> float:
    """The median of the ratios of pieces that were measured one right after the other."""
    return median(a / b for a, b in zip(ours, bare, strict=True))


@dataclass
class Peak:
    """The most memory in use at once, in bytes, above what was in use at the beginning."""

    bytes: int = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    peak = Peak()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield peak
        peak.bytes = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
