"""A session of the file store that this process holds: one write and one data sync a save."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ..errors import StorageError
from ..execution.session import stamp, to_the_end
from ..execution.state import Record, State, apply
from .committers import enter_committers
from .folder import AgentFolder
from .history_file import HistoryFile
from .journal import Header, record_line
from .journal_fold import Journal
from .lease import Lease
from .reader import is_unchanged, load_journal
from .trail import Recent
from .writer import JournalWriter

_FLUSHED_KINDS = frozenset(("pause", "finish", "abort", "fork", "delete"))


class FileSession:
    """A session held by this process.

    A save runs to its end, also if the task that asks for it is cancelled meanwhile.

    Args:
        seen: the journal as it was before the session was held; it is not read again if nothing was added.
    """

    suspends = False

    def __init__(
        self, folder: AgentFolder, session_id: str, limit: int, lease: Lease, seen: Journal | None = None
    ) -> None:
        if seen is not None and is_unchanged(folder, session_id, seen):
            journal = seen
        else:
            journal = load_journal(folder, session_id, limit)
        self.state = journal.state
        self.fence = self.state.fence + 1
        self._lease = lease
        self._header = journal.header
        self._upgrade = journal.upgrade
        self._agent = folder.agent
        self._recent = Recent(journal.trail, limit)
        self._writer = JournalWriter(
            folder.journal(session_id), session_id, lambda: lease.is_held, journal.end, journal.whole
        )
        parent = journal.header.parent if journal.header else None
        self._history = HistoryFile(
            folder.history(session_id), session_id, limit, self._recent.trail, parent, lambda: lease.is_held
        )
        self._timer: asyncio.TimerHandle | None = None
        self._turn = asyncio.Lock()
        self._committers = enter_committers()

    async def save(self, record: Record) -> State:
        if self._turn.locked():
            return await to_the_end(self._save_in_thread(record))
        if self._committers.is_crowded:
            return await self._save_in_thread(record)
        state = self._next(record)
        self._writer.append(self._line(record))
        self._flush_in(self._keep(record, state))
        return state

    async def close(self) -> None:
        if self._turn.locked():
            await to_the_end(self._close_in_turn())
        else:
            self._close()

    async def _save_in_thread(self, record: Record) -> State:
        async with self._turn:
            state, line = self._next(record), self._line(record)

            def commit() -> float:
                self._writer.append(line)
                return self._keep(record, state)

            self._flush_in(await self._committers.run(commit))
            return state

    def _next(self, record: Record) -> State:
        return apply(self.state, stamp(record, self.state, self.fence))

    def _line(self, record: Record) -> bytes:
        """What a save appends; before the first one stand the header and what an older layout knew."""
        line = record_line(record)
        if self._header is not None:
            return line
        if not self._upgrade:
            self._history.remove_leftover()
        older = b"".join(record_line(each) for each in self._upgrade)
        return self._new_header(record).line() + older + line

    def _new_header(self, record: Record) -> Header:
        assert self.state.session_id is not None
        return Header(self.state.session_id, self._agent, record.at)

    def _keep(self, record: Record, state: State) -> float:
        """A save is durable; in how many seconds the history file is due, 0 for not at all."""
        if self._header is None:
            self._header = self._new_header(record)
            if self._upgrade and self._upgrade[-1].seq > self._recent.trail().newest:
                # The older layout kept no save of the state it ended in; the journal does.
                self._recent.add(self._upgrade[-1], self.state)
        self.state = state
        self._recent.add(record, state, self._writer.end)
        return self._history.changed(flush=record.kind in _FLUSHED_KINDS)

    def _flush_in(self, seconds: float) -> None:
        if seconds > 0 and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._flush)

    def _flush(self) -> None:
        self._timer = None
        if self._turn.locked():
            # The save that is being made replaces the file itself: it is due.
            return
        # A failure here is met again by the flush that pauses, ends or closes the run.
        with suppress(StorageError):
            self._history.flush()

    async def _close_in_turn(self) -> None:
        async with self._turn:
            self._close()

    def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._committers.leave()
        try:
            self._history.flush()
        finally:
            try:
                self._writer.close()
            finally:
                self._lease.release()
