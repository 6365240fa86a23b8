"""Models that play a script: written in Python for tests, or kept in a file for the command line."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Literal

from ..errors import ConfigurationError, ProviderError, StorageError
from ..execution.messages import MessageData
from ..execution.protocols import ModelDelta, ModelRequest
from ..execution.records import ModelResponse
from ..regular_file import read_regular
from .turns import ScriptedTurn, parse_turn, play_turn, told_pieces

Reply = str | Mapping[str, Any]
Turn = Reply | Callable[[ModelRequest], Reply | Awaitable[Reply]]


class ScriptedModel:
    """A deterministic model for tests: the n-th request gets the n-th turn.

    >>> model = ScriptedModel([{"tool_calls": [{"name": "search", "args": {"q": "tea"}}]}, "Found it."])

    Args:
        turns: each a text, a mapping (`text`, `tool_calls`, `usage`, `finish_reason`, `error`, `delay` in
            seconds, `chunks`, `cut`, `fails`, further fields), or a function of the request, sync or async,
            that returns one of these.
        on_exhausted: `error` fails when the turns have run out, `repeat-last` plays the last one again.

    Calls without an id are named call_1, call_2, ... over the life of the model; `"id": ""` stays missing.

    Attributes:
        calls: the requests seen, in order.

    Raises:
        ConfigurationError: a turn has the wrong shape.
    """

    model = "scripted"

    def __init__(
        self, turns: Iterable[Turn], on_exhausted: Literal["error", "repeat-last"] = "error"
    ) -> None:
        if isinstance(turns, str | Mapping):
            raise ConfigurationError("the turns are not a list", hint="write ScriptedModel([turn])")
        if on_exhausted not in ("error", "repeat-last"):
            raise ConfigurationError(
                f"on_exhausted is {on_exhausted!r}", hint='it must be "error" or "repeat-last"'
            )
        self._turns = [
            played
            for n, turn in enumerate(turns, 1)
            for played in ([turn] if callable(turn) else _with_failures(parse_turn(turn, f"turn {n}")))
        ]
        self._repeat_last = on_exhausted == "repeat-last"
        self._played = 0
        self._numbers = count(1)
        self.calls: list[ModelRequest] = []

    def __repr__(self) -> str:
        return f"<ScriptedModel: {self._played} requests, {len(self._turns)} turns>"

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """The next turn.

        Raises:
            ProviderError: the turns have run out, or the turn says so.
        """
        return await play_turn(await self._next(request), self._new_id)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelResponse]:
        """The next turn, in as many pieces as its `chunks` says, then whole.

        Raises: as `generate`.
        """
        turn = await self._next(request)
        for piece in told_pieces(turn):
            yield piece
        yield await play_turn(turn, self._new_id)

    async def _next(self, request: ModelRequest) -> ScriptedTurn:
        index = self._played
        self._played += 1
        self.calls.append(request)
        if index >= len(self._turns):
            if not (self._repeat_last and self._turns):
                raise _ran_out("the scripted model", len(self._turns), index + 1)
            index = len(self._turns) - 1
        turn = self._turns[index]
        if isinstance(turn, ScriptedTurn):
            return turn
        reply = turn(request)
        if isinstance(reply, Awaitable):
            reply = await reply
        return parse_turn(reply, f"what the function of turn {index + 1} returned")

    def assert_exhausted(self) -> None:
        """Fail unless every turn was played.

        Raises:
            AssertionError: says how many turns are left.
        """
        left = len(self._turns) - self._played
        if left > 0:
            raise AssertionError(f"{left} of {len(self._turns)} scripted turns were never asked for")

    def _new_id(self) -> str:
        return f"call_{next(self._numbers)}"


class ScriptFile:
    """The model `script:FILE`: a JSON list of turns.

    The turn played is the one whose index is the number of assistant turns in the transcript, so a script
    goes on in another process where it stopped. Calls without an id are named call_1, call_2, ... in the
    order of the file.

    Args:
        path: the file; it is read when the first turn is asked for.
        model: the model's id as the configuration gives it, default `script:` and the path.
    """

    def __init__(self, path: str | os.PathLike[str], model: str | None = None) -> None:
        self.path = Path(path)
        self.model = model or f"script:{path}"
        self._turns: list[ScriptedTurn] | None = None
        self._counter = TurnCounter()
        self._failed: Counter[tuple[str | None, int]] = Counter()

    def __repr__(self) -> str:
        return f"ScriptFile({str(self.path)!r})"

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """The turn that follows the transcript.

        Raises:
            ConfigurationError: the file cannot be read or is no list of turns; says where.
            ProviderError: the script has no such turn, or the turn says so.
        """
        return await play_turn(self._next(request), str)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta | ModelResponse]:
        """The turn that follows the transcript, in as many pieces as its `chunks` says, then whole.

        Raises: as `generate`.
        """
        turn = self._next(request)
        for piece in told_pieces(turn):
            yield piece
        yield await play_turn(turn, str)

    def _next(self, request: ModelRequest) -> ScriptedTurn:
        """The turn to play; a turn's failures come first, once each in the life of this object."""
        turns = self.load()
        index = self._counter.count(request)
        if index >= len(turns):
            raise _ran_out(f"the script {self.path}", len(turns), index + 1)
        turn = turns[index]
        place = (request.session_id, index)
        if self._failed[place] < len(turn.fails):
            self._failed[place] += 1
            return turn.fails[self._failed[place] - 1]
        return turn

    def load(self) -> list[ScriptedTurn]:
        """Read the file, once.

        Raises:
            ConfigurationError: it cannot be read or is no list of turns; says where.
        """
        if self._turns is None:
            self._turns = read_script(self.path)
        return self._turns


class TurnCounter:
    """Counts the assistant turns of growing transcripts, looking at each message once.

    Sessions may take turns. A transcript that does not continue the one seen before is counted anew.
    """

    SESSIONS = 100

    def __init__(self) -> None:
        self._seen: dict[str | None, tuple[int, MessageData | None, int]] = {}

    def count(self, request: ModelRequest) -> int:
        log = request.messages.log
        length, end, turns = self._seen.pop(request.session_id, (0, None, 0))
        if len(log) < length or (length and log[length - 1] is not end):
            length, turns = 0, 0
        turns += sum(message["role"] == "assistant" for message in log.slice(length))
        self._seen[request.session_id] = (len(log), log[-1] if len(log) else None, turns)
        if len(self._seen) > self.SESSIONS:
            del self._seen[next(iter(self._seen))]
        return turns


def read_script(path: Path) -> list[ScriptedTurn]:
    """The turns in a script file, every call with an id of its own.

    Raises:
        ConfigurationError: names the file and, as far as known, line and column or turn and key.
        StorageError: the file is there and cannot be read.
    """
    try:
        script = json.loads(read_regular(path).decode("utf-8-sig"))
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as problem:
        raise ConfigurationError(
            f"cannot read the script {path}: {problem.strerror or problem}",
            hint="`script:FILE` is looked up in the agent's folder",
        ) from problem
    except OSError as problem:
        raise StorageError(f"the script {path} could not be read: {problem.strerror or problem}") from problem
    except json.JSONDecodeError as problem:
        raise ConfigurationError(
            f"{path} is no JSON: {problem.msg} at line {problem.lineno}, column {problem.colno}",
            hint="a script is a JSON list of turns",
        ) from problem
    except (ValueError, RecursionError) as problem:
        raise ConfigurationError(
            f"{path} cannot be read: {problem}", hint="save it as JSON in UTF-8"
        ) from problem
    if not isinstance(script, list):
        raise ConfigurationError(f"{path} holds no list", hint='a script is a list of turns: ["Done."]')
    return _with_ids([parse_turn(turn, f"{path}: turn {n}") for n, turn in enumerate(script, 1)])


def _with_ids(turns: list[ScriptedTurn]) -> list[ScriptedTurn]:
    given = {call.id for turn in turns for call in turn.calls}
    free = (name for n in count(1) if (name := f"call_{n}") not in given)
    return [
        replace(
            turn,
            calls=tuple(replace(call, id=next(free)) if call.id is None else call for call in turn.calls),
        )
        for turn in turns
    ]


def _with_failures(turn: ScriptedTurn) -> list[ScriptedTurn]:
    """The requests that a turn answers: those that fail, and then the turn itself."""
    return [*turn.fails, turn]


def _ran_out(script: str, turns: int, asked: int) -> ProviderError:
    return ProviderError(
        f"{script} has {turns} turn{'s' if turns != 1 else ''}, and turn {asked} was asked for",
        hint="add the missing turn, or find out why the model is asked once more than expected",
    )
