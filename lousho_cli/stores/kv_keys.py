"""Which keys a KVStore uses.

    <prefix><session>                    the latest checkpoint
    <prefix><session>#history            the index: ids of the kept entries, oldest first
    <prefix><session>#history/<id>       an entry: one kept save
    <prefix><session>#lease              who runs the session, where the store can compare and set
    <prefix>#approvals                   ids of the approvals, oldest first
    <prefix>#approvals/<id>              what is asked
    <prefix>#approvals/<id>/decision     what was decided

`#` and `%` are percent-encoded in session ids, and `/` too in approval ids, so no two of them share a key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import ConfigurationError
from .ids import check_id


@dataclass(frozen=True)
class Keys:
    """The keys behind one prefix."""

    prefix: str

    def checkpoint(self, session_id: str) -> str:
        """The key of the latest checkpoint; the session's other keys begin with it.

        Raises:
            ConfigurationError: the id cannot name a session.
        """
        return self.prefix + _encode(check_id(session_id))

    def sessions(self, keys: Iterable[str]) -> list[str]:
        """The sessions whose newest checkpoints are at these keys; keys of other things are skipped."""
        return [session_id for key in keys if (session_id := self._session_of(key)) is not None]

    def _session_of(self, key: str) -> str | None:
        session_id = key.removeprefix(self.prefix).replace("%23", "#").replace("%25", "%")
        try:
            return session_id if self.checkpoint(session_id) == key else None
        except ConfigurationError:
            return None

    def index(self, session_id: str) -> str:
        return f"{self.checkpoint(session_id)}#history"

    def entry(self, session_id: str, entry_id: str) -> str:
        return f"{self.index(session_id)}/{entry_id}"

    def lease(self, session_id: str) -> str:
        return f"{self.checkpoint(session_id)}#lease"

    def approvals(self) -> str:
        return f"{self.prefix}#approvals"

    def request(self, approval_id: str) -> str:
        return f"{self.approvals()}/{_encode(approval_id).replace('/', '%2F')}"

    def decision(self, approval_id: str) -> str:
        return f"{self.request(approval_id)}/decision"


def _encode(id: str) -> str:
    return id.replace("%", "%25").replace("#", "%23")
