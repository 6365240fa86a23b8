"""Reading the kept saves of a session, and a session as it was at one of them.

The history file says where each kept save ends in the journal. It is used only if its newest save is the
journal's own, and a save only if its record is where the file says. Else the whole journal answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import StorageError
from ..execution.kept import KeptSaves, not_kept
from ..execution.messages import JsonObject
from ..execution.state import State
from .files import open_file, read_file
from .folder import AgentFolder
from .history_file import parse_history
from .journal_fold import fold_journal
from .reader import SessionSummary, load_journal, no_session, session_summary
from .trail import Save


@dataclass(frozen=True, slots=True)
class SavesIndex:
    """What a history file that is up to date says.

    Attributes:
        saves: the kept saves, newest first; at least one.
        first: the seq of the session's own first save.
        last_step: the largest step of any save; None if the file does not say.
    """

    saves: tuple[Save, ...]
    first: int
    last_step: int | None

    def at(self, seq: int) -> Save | None:
        return next((save for save in self.saves if save.seq == seq), None)


def read_index(folder: AgentFolder, session_id: str, limit: int) -> SavesIndex | None:
    """The kept saves as the history file has them; None unless it is whole, up to date and of that limit.

    Raises:
        StorageError: the journal's end cannot be read.
    """
    index = _history_file(folder, session_id, limit)
    newest = session_summary(folder, session_id) if index is not None else None
    if index is None or newest is None or _instant(index.saves[0]) != _instant(newest):
        return None
    return index


def _instant(save: Save | SessionSummary) -> tuple[int, str]:
    """Tells saves apart, also those of a session that took the name of a deleted one."""
    return save.seq, save.at


def read_history(folder: AgentFolder, session_id: str, limit: int) -> list[Save]:
    """The kept saves, newest first."""
    index = read_index(folder, session_id, limit)
    if index is not None:
        return list(index.saves)
    return [save for save, _ in load_journal(folder, session_id, limit).trail.newest_first()]


def read_kept(folder: AgentFolder, session_id: str, limit: int) -> KeptSaves | None:
    """Which saves are kept, and which there were; None if there is no such session."""
    index = read_index(folder, session_id, limit)
    if index is not None and index.last_step is not None:
        kept = tuple((save.seq, save.step) for save in index.saves)
        return KeptSaves(index.saves[0].seq, kept, index.first, index.last_step)
    journal = load_journal(folder, session_id, limit)
    known = journal.header is not None or journal.state.exists
    return journal.trail.kept_saves() if known else None


def read_state(folder: AgentFolder, session_id: str, limit: int, seq: int | None = None) -> State:
    """A session now, or at one of its kept saves, of which the journal is read up to its record.

    Raises:
        NotFoundError: there is no such session or save.
        StorageError: its file is damaged.
    """
    if seq is not None:
        index = read_index(folder, session_id, limit)
        save = index.at(seq) if index is not None else None
        state = state_up_to(folder, session_id, save) if save is not None else None
        if state is not None:
            return state
    journal = load_journal(folder, session_id, limit if seq is not None else 0)
    if seq is None:
        if not journal.state.exists:
            raise no_session(session_id)
        return journal.state
    found = journal.trail.at(seq)
    if found is None:
        raise not_kept(session_id, journal.trail.kept_saves(), at=seq)
    return found[1]


def state_up_to(folder: AgentFolder, session_id: str, save: Save) -> State | None:
    """The session after a save; None if the journal has no such record where `save` says that it ends."""
    path, end = folder.journal(session_id), save.end
    with open_file(path) as file:
        if file is None or not 0 < end <= file.size:
            return None
        try:
            journal = fold_journal(
                path, lambda offset, length: file.read(offset, min(length, end - offset)), session_id, 0
            )
        except StorageError:
            return None  # Reading all of it says what is damaged.
    return journal.state if (journal.state.seq, journal.end) == (save.seq, end) else None


def _history_file(folder: AgentFolder, session_id: str, limit: int) -> SavesIndex | None:
    try:
        content = parse_history(read_file(folder.history(session_id)) or b"")
        if content["version"] != 1 or content["sessionId"] != session_id or content["limit"] != limit:
            return None
        saves = tuple(_save(entry) for entry in reversed(content["entries"]))
        first = int(content["parent"]["seq"]) + 1 if "parent" in content else 1
        last_step = content.get("lastStep")
        known = type(last_step) is int
        return SavesIndex(saves, first, last_step if known else None) if saves else None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, StorageError):
        return None


def _save(entry: JsonObject) -> Save:
    return Save(
        int(entry["seq"]), int(entry["step"]), str(entry["status"]), str(entry["savedAt"]),
        str(entry["event"]), int(entry["messages"]), int(entry["end"]), tuple(entry.get("tools", ())),
        entry.get("finishReason"), entry.get("approvalId"), entry.get("note"), tuple(entry.get("failed", ())),
    )  # fmt: skip
