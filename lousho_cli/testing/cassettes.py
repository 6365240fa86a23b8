"""Tests on recorded answers: the model is asked once, its answers are played from then on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from ..execution.protocols import Provider
    from ..providers.cassette_model import CassetteModel, Mode
    from ..providers.recording import Recording

MODE_VARIABLE = "LOUSHO_CASSETTE_MODE"


class record_replay:
    """A model whose answers are kept in a cassette file, for the length of a `with` block.

        def test_the_bot_knows_the_weather():
            cassette = Path(__file__).parent / "cassettes" / "weather.json"
            with record_replay(cassette, provider="openai:gpt-5-mini") as model:
                agent = create_agent(provider=model, tools=[get_weather])
                assert "sunny" in agent.send_sync("How is the weather in Rome?").text

    `async with` does the same.

    Args:
        path: the cassette; its folder is made when something is recorded.
        mode: `replay` never asks the model, a request without a recorded answer is an error; `record` asks it
            every time and begins the cassette anew; `auto` asks it for what the cassette lacks. Default: the
            environment variable LOUSHO_CASSETTE_MODE; else `replay` where the variable CI is set, so that no
            build waits for a model or pays for one; else `auto`.
        provider: the model, or its name, as in `agent.toml`; it is looked up when it is first asked. A replay
            needs none and does not touch it.
        volatile: regular expressions of texts that differ from run to run and are to make no difference.

    If the block raises while a cassette is recorded anew, the old one stays as `<path>.old`.

    Raises:
        CassetteError: the cassette cannot be used; on entering the block.
        ConfigurationError: the mode is none, or there is no model to record.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: Mode | None = None,
        provider: Provider | str | None = None,
        *,
        volatile: Iterable[str] = (),
    ) -> None:
        self._path = Path(path)
        self._mode = mode or mode_from(os.environ)
        self._provider = provider
        self._volatile = tuple(volatile)
        self._recording: Recording | None = None

    def __enter__(self) -> CassetteModel:
        from ..providers.recording import Recording

        self._recording = Recording(self._path, self._mode, anew=True, volatile=self._volatile)
        name = self._provider
        if not isinstance(name, str):
            return self._recording.model(name)
        from ..providers.resolve import resolve_model

        return self._recording.model(lambda: resolve_model(name, Path.cwd()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._recording is not None:
            self._recording.close(finished=error is None)

    async def __aenter__(self) -> CassetteModel:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def mode_from(environ: Mapping[str, str]) -> Mode:
    """The mode that the environment asks for: LOUSHO_CASSETTE_MODE, `replay` under CI, else `auto`.

    Raises:
        ConfigurationError: the variable holds no mode.
    """
    from ..providers.cassette_model import MODES

    given = environ.get(MODE_VARIABLE)
    if given:
        if given not in MODES:
            raise ConfigurationError(f"{MODE_VARIABLE} is {given!r}", hint=f"use {', '.join(MODES)}")
        return given
    return "replay" if environ.get("CI", "").lower() not in ("", "0", "false") else "auto"
