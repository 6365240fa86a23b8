"""What an agent was when a run started, and what changed since (R3.12)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from .messages import JsonObject
from .tools import ToolRegistry

VERSION = 2


def fingerprint(instructions: str | None, registry: ToolRegistry, model: str) -> JsonObject:
    """A JSON object: version, model, a hash per tool schema, a hash of the instructions, a hash over all."""
    tools = {tool.name: _hash(_canonical(tool.parameters)) for tool in registry}
    parts: JsonObject = {"model": model, "tools": tools, "instructions": _hash(instructions or "")}
    return {"version": VERSION, "hash": _hash(_canonical(parts)), **parts}


def drift(stored: Mapping[str, Any] | None, current: Mapping[str, Any]) -> list[str]:
    """What differs, in plain words; nothing if `stored` is missing or of another version."""
    if stored is None or stored.get("version") != VERSION or stored.get("hash") == current["hash"]:
        return []
    changes = []
    if stored.get("model") != current["model"]:
        changes.append(f"model was {stored.get('model')}, is {current['model']}")
    if stored.get("instructions") != current["instructions"]:
        changes.append("instructions changed")
    before, now = stored.get("tools") or {}, current["tools"]
    for name in sorted(before.keys() | now.keys()):
        if name not in now:
            changes.append(f"tool {name} is gone")
        elif name not in before:
            changes.append(f"tool {name} is new")
        elif before[name] != now[name]:
            changes.append(f"tool {name} takes other arguments")
    return changes


def missing_tools(
    stored: Mapping[str, Any] | None, registry: ToolRegistry, called: Sequence[str]
) -> list[str]:
    """The called tools that the agent had when the run started and no longer has."""
    if stored is None or stored.get("version") != VERSION:
        return []
    return [name for name in called if name in stored["tools"] and registry.get(name) is None]


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
