"""The cassette of a command that runs an agent: `--cassette FILE`, with `--record` or `--replay`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

from ..execution.protocols import Provider
from .output import notice
from .run_options import CassetteFlags


class CassetteTape:
    """Makes the models of a run: the live ones, or on the cassette that was asked for.

    A context manager: when it ends, a recording that did not come to its end is told of.

    Raises:
        CassetteError: the cassette cannot be used.
    """

    def __init__(self, flags: CassetteFlags | None, volatile: Sequence[str]) -> None:
        self._flags = flags
        self._finished = False
        if flags is None:
            self._recording = None
            return
        from ..providers.recording import Recording

        self._recording = Recording(flags.path, flags.mode, anew=flags.anew, volatile=volatile)

    def provider(self, live: Callable[[], Provider]) -> Provider:
        """The model that `live` looks up. A replay needs none, so it is not even looked for."""
        if self._recording is None or self._flags is None:
            return live()
        return self._recording.model(None if self._flags.mode == "replay" else live())

    def ended(self, finish_reason: str) -> None:
        """The run, or the part of it that was possible, came to its end."""
        self._finished = finish_reason not in ("aborted", "error")

    def __enter__(self) -> CassetteTape:
        if self._recording is not None and self._recording.replaces:
            notice(f"recording; until the run is done the old cassette is kept as {self._recording.copy}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._recording is None:
            return
        kept = self._recording.close(finished=self._finished and error is None)
        if kept is not None:
            notice(f"the recording was interrupted; {kept} is the cassette as it was before")
