"""A cassette file in use: played, recorded, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import CassetteError
from ..execution.protocols import Provider
from .cassette import Cassette, CassetteRun
from .cassette_file import check_writable, copy_of, keep_copy, remove_copy
from .cassette_model import CassetteModel, Mode, Tape


class Recording:
    """A cassette file while models use the first run in it.

    The file is replaced in one step after each answer, so it holds whole answers at every instant, and what
    an interrupted recording has got is not lost. Before a recording changes a file that is there, the file is
    copied to `<name>.old`; closing a finished recording removes the copy. One that a recording before left
    behind is kept instead of a new one. A file that need not change is not written to.

    Args:
        path: the file.
        mode: `record`, `replay` or `auto`.
        anew: a recording begins with an empty cassette instead of taking the place of answers one by one.
        volatile: regular expressions of what is to make no difference between requests.

    Attributes:
        replaces: whether a recording is going to change a cassette that is there.

    Raises:
        CassetteError: the file cannot be used; or there is none, and it is to be replayed.
        ConfigurationError: the mode or a pattern is none.
        StorageError: the file cannot be read.
    """

    def __init__(self, path: Path, mode: Mode, *, anew: bool = False, volatile: Iterable[str] = ()) -> None:
        found = Cassette.load(path)
        if found is None and mode == "replay":
            raise CassetteError(
                f"there is no cassette {path}", hint="check the path, or record it: --record, or mode record"
            )
        self.replaces = mode == "record" and found is not None
        self._path = path
        self._cassette = Cassette() if found is None or (mode == "record" and anew) else found
        if not self._cassette.runs:
            self._cassette.runs.append(CassetteRun())
        self._tape = Tape(
            self._cassette.runs[0], mode, changed=self._change, name=f"the cassette {path}", volatile=volatile
        )
        self._checked = self._kept = False

    @property
    def copy(self) -> Path:
        """Where the cassette is kept as it was before a recording."""
        return copy_of(self._path)

    def model(self, provider: Callable[[], Provider] | Provider | None) -> CassetteModel:
        """A model on the cassette. All of them share its answers.

        Args:
            provider: the live model, or a function that makes it when it is first needed.
        """
        return self._tape.model(provider)

    def close(self, *, finished: bool) -> Path | None:
        """End the use of the file.

        Args:
            finished: whether the run came to its end, so that a recording is whole.

        Returns:
            The copy of the cassette before an interrupted recording, or None.
        """
        if not self._kept:
            return None
        if finished:
            remove_copy(self._path)
            return None
        return self.copy

    def _change(self, answered: bool) -> None:
        if answered:
            if self.replaces and not self._kept:
                keep_copy(self._path)
                self._kept = True
            self._cassette.save(self._path)
        elif not self._checked:
            # Before money is spent on an answer that could not be kept.
            check_writable(self._path)
            self._checked = True
