"""The values of a KVStore as JSON texts, and back. What is read is checked.

A checkpoint is what `Checkpoint.model_dump(mode="json", by_alias=True, exclude_none=True)` gives. An entry is
`{seq, step, savedAt, status, event, lastStep, checkpoint}`, the index a list of entry ids. The TypeScript SDK
writes the same, without `seq`, `event`, `lastStep` and the checkpoint's `engine`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import StorageError
from ..execution.checkpoint import ENGINE_KEY, checkpoint_of, state_of
from ..execution.codec import KINDS
from ..execution.conversation import Messages
from ..execution.log import Log
from ..execution.messages import JsonObject
from ..execution.records import Checkpoint, HistoryEntry
from ..execution.state import State
from .trail import Save

_OURS = re.compile(r"[0-9]{12}")
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True)
class Entry:
    """A kept save, as its key holds it.

    Attributes:
        step, saved_at, status: of the save.
        event: the kind of its record; `save` where nobody noted it.
        last_step: the largest step of any save of the session up to this one.
    """

    step: int
    saved_at: str
    status: str
    event: str
    last_step: int
    state: State

    def public(self) -> HistoryEntry:
        return HistoryEntry.model_construct(
            seq=self.state.seq, step=self.step, saved_at=self.saved_at, status=self.status,
            checkpoint=checkpoint_of(self.state),
        )  # fmt: skip


def encode(data: Any) -> str:
    """A JSON text of ASCII characters, which every store can keep."""
    return _encode(data)


def decode(key: str, text: str, kind: type[dict[str, Any]] | type[list[Any]]) -> Any:
    """The JSON value that a key's text is.

    Raises:
        StorageError: it is none of that kind.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(key, str(error)) from error
    if not isinstance(data, kind):
        raise damaged(key, f"not a JSON {'object' if kind is dict else 'array'}")
    return data


def damaged(key: str, why: str) -> StorageError:
    return StorageError(
        f"key {key!r} is damaged: {why}",
        code="LOUSHO_SESSION_FILE_CORRUPT",
        hint="restore its value from a copy; it was not changed",
    )


def checkpoint_text(state: State) -> str:
    return encode(checkpoint_of(state).model_dump(mode="json", by_alias=True, exclude_none=True))


def entry_text(save: Save, last_step: int, checkpoint: str) -> str:
    """An entry around a checkpoint that is encoded already."""
    head = encode(
        {
            "seq": save.seq, "step": save.step, "savedAt": save.at, "status": save.status,
            "event": save.kind, "lastStep": last_step,
        }
    )  # fmt: skip
    return f'{head[:-1]},"checkpoint":{checkpoint}}}'


def entry_id(seq: int) -> str:
    """The id of a save's entry: of fixed width, so that ids sort like saves and no counter looks like one."""
    return f"{seq:012d}"


def index_text(ids: Sequence[str]) -> str:
    return encode(list(ids))


def read_index(key: str, text: str | None) -> dict[int, str]:
    """The ids of the kept entries by seq, oldest first.

    Entries of the TypeScript SDK have no seq: they count on from the one before, up to the first of ours.

    Raises:
        StorageError: it is no index.
    """
    data = [] if text is None else decode(key, text, list)
    if not all(isinstance(each, (str, int)) for each in data):
        raise damaged(key, "an id is neither a text nor a number")
    ids = [str(each) for each in data]
    first = next((place for place, id in enumerate(ids) if _OURS.fullmatch(id)), None)
    seq = 0 if first is None else int(ids[first]) - first - 1
    numbered: dict[int, str] = {}
    for id in ids:
        seq = int(id) if _OURS.fullmatch(id) else seq + 1
        numbered[seq] = id
    return numbered


def read_entry(key: str, text: str, session_id: str, seq: int) -> Entry:
    """The kept save that an entry's text is, given its seq.

    Raises:
        StorageError: it is no entry.
    """
    data = decode(key, text, dict)
    state = read_state(key, data.get("checkpoint"), session_id, seq)
    step, event = data.get("step", state.step), data.get("event")
    last_step = data.get("lastStep", step)
    if not isinstance(step, int) or not isinstance(last_step, int):
        raise damaged(key, "a step is not a number")
    return Entry(
        step, str(data.get("savedAt", state.saved_at)), state.status, event if event in KINDS else "save",
        last_step, replace(state, seq=seq),
    )  # fmt: skip


def read_state(key: str, data: Any, session_id: str, seq: int) -> State:
    """The state of a stored checkpoint.

    Args:
        key: for error messages.
        data: the checkpoint as JSON.
        seq: its number, where it does not say it itself.

    Raises:
        StorageError: it is no checkpoint, or is about another session.
    """
    if not isinstance(data, dict):
        raise damaged(key, "the checkpoint is not an object")
    if data.get("sessionId") not in (None, session_id):
        raise damaged(key, f"it is about session {data['sessionId']!r}")
    ours = isinstance(data.get(ENGINE_KEY), dict)
    try:
        checkpoint = Checkpoint.model_validate(_unchecked(data) if ours else data)
        state = state_of(checkpoint, session_id)
        # A parent that does not say which save it was would be met only by the next save.
        first_own_seq(state)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(key, str(error).partition("\n")[0]) from error
    return state if ours else replace(state, seq=seq)


def first_own_seq(state: State) -> int:
    """The seq of a session's own first save: a fork's follows on its parent's, a copied one's begins at 1."""
    own = state.parent is not None and state.seq > int(state.parent["seq"])
    return int(state.parent["seq"]) + 1 if own and state.parent is not None else 1


def _unchecked(data: JsonObject) -> JsonObject:
    """The same with its messages taken as they are: making the state checks them, and keeps every field."""
    messages, system = list(data.get("messages", ())), None
    if messages and messages[0]["role"] == "system":
        system = messages.pop(0)["content"]
    fields = {name: value for name, value in data.items() if name != "toolCalls"}
    return {**fields, "messages": Messages(Log(messages), system)}
