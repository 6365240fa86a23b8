"""What pruning needs of a store: how much a session is, removing it, compacting what is left of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Weight:
    """How much a session is.

    Attributes:
        saves: how many are kept.
        bytes: what its stored data take.
    """

    saves: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """A journal that was rewritten, or would be.

    Attributes:
        before, after: its size in bytes.
        through: the newest save of those that became one record.
    """

    before: int
    after: int
    through: int


class Pruner(Protocol):
    """The pruning of one store. Errors are those of its sessions: one that fails leaves the others alone."""

    def weigh(self, session_id: str) -> Weight: ...

    def is_running(self, session_id: str) -> bool:
        """Whether somebody runs it, as far as can be told without holding it."""
        ...

    def remove(self, session_id: str, seq: int) -> bool:
        """Remove a session with its history and its approvals, if `seq` still is its newest save.

        Raises:
            SessionBusyError: somebody runs it.
        """
        ...

    def compact(self, session_id: str, *, dry_run: bool) -> Compaction | None:
        """Compact what is stored of a session; None where there is nothing to gain.

        Raises:
            SessionBusyError: somebody runs it.
        """
        ...
