"""For the tests of agents and stores."""

from __future__ import annotations

from ..providers.scripted import ScriptedModel

__all__ = ["ScriptedModel"]
