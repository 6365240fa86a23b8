"""Tools that come from elsewhere and last as long as a run: opened when needed, closed when it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from .tools import Tool

if TYPE_CHECKING:
    from .agent import Agent

logger = logging.getLogger("lousho")


class OpenToolset(Protocol):
    """A toolset in use.

    Attributes:
        tools: what it offers, for as long as it is open.
    """

    @property
    def tools(self) -> Sequence[Tool]: ...

    async def close(self) -> None: ...


class Toolset(Protocol):
    """Where an agent has further tools from, a server for instance.

    A run opens it once, before it takes its message in, and closes it at its end.
    """

    async def open(self) -> OpenToolset:
        """Its tools, ready to be called in the running loop.

        Raises:
            ConfigurationError: it cannot be opened.
        """
        ...


class OpenToolsets:
    """The toolsets that a run, its sub-agents included, has opened."""

    def __init__(self) -> None:
        # The toolset itself is kept, so that its id cannot become another's.
        self._open: dict[int, tuple[Toolset, OpenToolset]] = {}
        self._opening = asyncio.Lock()

    @property
    def are_open(self) -> bool:
        """Whether there is anything to close."""
        return bool(self._open)

    async def tools_of(self, agent: Agent) -> list[Tool]:
        """The tools of an agent's toolsets, which are opened if they are not.

        Raises:
            ConfigurationError: one cannot be opened.
        """
        async with self._opening:
            missing = [each for each in agent.toolsets if id(each) not in self._open]
            answers = await asyncio.gather(
                *(self._open_one(each) for each in missing), return_exceptions=True
            )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return [tool for each in agent.toolsets for tool in self._open[id(each)][1].tools]

    async def close(self) -> None:
        """Close what is open; what goes wrong then is only logged."""
        opened, self._open = self._open, {}
        closing = (each.close() for _, each in opened.values())
        for problem in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(problem, BaseException):
                logger.warning("a toolset was not closed cleanly: %s", problem)

    async def _open_one(self, toolset: Toolset) -> None:
        self._open[id(toolset)] = (toolset, await toolset.open())
