"""Which saves of a session are kept, and what became of one that is not (R3.10, R3.21)."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ConfigurationError, NotFoundError


@dataclass(frozen=True, slots=True)
class KeptSaves:
    """The kept saves of a session.

    Attributes:
        newest: the newest seq, kept or not.
        saves: `(seq, step)`, newest first.
        first: the seq of the session's own first save; a fork's follows on its parent's.
        last_step: the largest step of any save of the session, kept or not.
    """

    newest: int
    saves: tuple[tuple[int, int], ...]
    first: int = 1
    last_step: int = -1


def choose_save(session_id: str, kept: KeptSaves, *, from_step: int | None, at: int | None) -> int:
    """The seq of the save to fork from, given exactly one of a step and a seq.

    Raises:
        NotFoundError: it is not kept.
        ConfigurationError: not exactly one of `from_step` and `at` was given.
    """
    if (from_step is None) == (at is None):
        raise ConfigurationError("say where to fork: a step or a save", hint="give from_step or at")
    for seq, step in kept.saves:
        if step == from_step or seq == at:
            return seq
    raise not_kept(session_id, kept, from_step=from_step, at=at)


def not_kept(
    session_id: str, kept: KeptSaves, *, from_step: int | None = None, at: int | None = None
) -> NotFoundError:
    """Says whether a step or save was dropped, absorbed or never was, and lists what is kept."""
    steps = ", ".join(str(step) for step in sorted({step for _, step in kept.saves})) or "none"
    why = _why_no_step(kept, from_step) if from_step is not None else _why_no_save(kept, at or 0)
    return NotFoundError(
        f"session {session_id!r}: {why} (steps kept: {steps})",
        code="LOUSHO_CHECKPOINT_NOT_FOUND",
        hint=f"lousho history {session_id} lists what is kept",
    )


def _why_no_save(kept: KeptSaves, at: int) -> str:
    if not kept.first <= at <= kept.newest:
        return f"there is no save {at}"
    oldest = kept.saves[-1][0] if kept.saves else kept.newest + 1
    successor = min((seq for seq, _ in kept.saves if seq > at), default=None)
    if at < oldest or successor is None:
        return f"save {at} was dropped by the history limit"
    return f"save {at} was absorbed by save {successor}: a turn's results share one save"


def _why_no_step(kept: KeptSaves, from_step: int) -> str:
    if 0 <= from_step <= kept.last_step:
        return f"step {from_step} was dropped by the history limit"
    return f"there is no step {from_step}"
